"""The study of outages on the reading side."""
