"""Multi-component services on the nodes of a testbed."""
