"""Common parts of all studies: Robot base library, user choices, console, records in the making."""
