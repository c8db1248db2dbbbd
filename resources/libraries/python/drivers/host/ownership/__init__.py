"""Ownership of a machine by one run, and the record of what it made."""
