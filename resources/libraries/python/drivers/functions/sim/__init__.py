"""Simulated network functions."""
