"""What all studies share: Robot base library, user choices, console, records in the making."""
