"""Call stacks of data CPUs, sampled by perf."""
