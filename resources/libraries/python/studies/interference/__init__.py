"""Interference study: co-located NFs and their effect on each other (Zeng et al.)."""
