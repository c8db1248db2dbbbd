"""Division of the last-level cache of this machine."""
