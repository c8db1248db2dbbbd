"""Commands that run tests, and what became of the runs."""
