"""Planning. Pure."""
