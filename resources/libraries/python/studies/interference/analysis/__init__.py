"""Analysis. Pure."""
