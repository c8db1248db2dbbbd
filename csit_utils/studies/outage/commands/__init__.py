"""Commands of the study of outages."""
