"""Events of the kernel, from its ring buffers to a graph of state transitions for each NF."""
