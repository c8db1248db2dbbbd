"""Sending out of a ring of prebuilt frames (`TPACKET_V2`): the way that every Linux kernel has."""
