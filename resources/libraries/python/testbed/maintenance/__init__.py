"""Maintenance of a testbed: checks, reservation, cleanup."""
