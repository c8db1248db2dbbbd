"""Validity and tables of a study of stateful density."""
