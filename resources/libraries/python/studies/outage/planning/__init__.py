"""Cost and order of a study of outages."""
