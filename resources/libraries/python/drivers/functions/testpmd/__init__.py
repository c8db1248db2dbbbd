"""DPDK testpmd as an NF, a process each."""
