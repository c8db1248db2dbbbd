"""Placement of threads on CPUs, and of queues on threads."""
