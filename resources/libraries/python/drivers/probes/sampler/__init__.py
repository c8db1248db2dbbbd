"""Use of CPUs, read from the system."""
