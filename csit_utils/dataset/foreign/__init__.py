"""Readers of the results of other tools."""
