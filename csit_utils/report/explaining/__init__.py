"""Explanations of metrics and marks, a file for each kind; `report.explain` has all of them."""
