"""Parts of a testbed: processors, memory, NICs, cables, access to nodes, and settings."""
