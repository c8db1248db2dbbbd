"""Findings of studies of simulated systems, against the known truth."""
