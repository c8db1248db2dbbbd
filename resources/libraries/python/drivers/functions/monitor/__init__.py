"""Network functions as monitors: programs that look at all packets of a network namespace."""
