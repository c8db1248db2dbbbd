"""CPUs, data threads and memory of a machine."""
