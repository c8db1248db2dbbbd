"""Network functions as virtual machines in which VPP routes IPv4."""
