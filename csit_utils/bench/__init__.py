"""Benchmarks of this project against its peers, always as a ratio in one run."""
