"""Delay of packets between the hops of a path."""
