"""Trends as text and plots."""
