"""Offline tools over plans and results: `python -m csit_utils --help`."""
