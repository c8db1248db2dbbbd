"""Offline tools over plans and results: `./csit --help`."""
