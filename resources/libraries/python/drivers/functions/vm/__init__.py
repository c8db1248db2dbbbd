"""Network functions as virtual machines, each with a Linux kernel of its own that routes IPv4."""
