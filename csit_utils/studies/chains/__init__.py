"""Reading side of chain studies."""
