"""Routing in the Linux kernel, a network namespace each."""
