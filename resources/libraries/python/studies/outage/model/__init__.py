"""Specification and record of a study of outages."""
