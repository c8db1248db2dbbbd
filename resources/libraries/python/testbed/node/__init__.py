"""Queries of a node without a driver running there: its facts, its reservation, what was left on it."""
