"""Benchmarks against peers or known truth, each as a ratio within one run."""
