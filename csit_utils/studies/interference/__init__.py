"""Reading side of interference studies."""
