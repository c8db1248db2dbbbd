"""Search of the capacity of connection tables."""
