"""Reading side of density tests."""
