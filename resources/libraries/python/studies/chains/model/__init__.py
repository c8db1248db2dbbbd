"""Types of the specification and of the record."""
