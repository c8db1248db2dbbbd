"""Comparisons of results: what is comparable, what has changed, and whether a candidate passes."""
