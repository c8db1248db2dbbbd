"""Sending, receiving, counting and watching of packets on this machine."""
