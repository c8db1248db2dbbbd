"""Probes: samplers of resource use and the tracer of kernel events."""
