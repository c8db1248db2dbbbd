"""Reading side of sizings."""
