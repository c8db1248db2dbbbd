"""Network functions that are VPPs, a process or a container each."""
