"""Control groups."""
