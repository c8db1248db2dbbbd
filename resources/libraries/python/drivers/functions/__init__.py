"""Network functions."""
