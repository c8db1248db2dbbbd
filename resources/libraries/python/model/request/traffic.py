"""Protocols and departures of the packets of a load."""

from enum import StrEnum


class Protocol(StrEnum):
    """Protocol of the packets of a load."""

    IP = "IP"
    """IPv4 packets of protocol 61 (any host internal protocol), with nothing behind the IP header that a network
    function looks at: what our own generators send."""
    UDP = "UDP"
    TCP = "TCP"
    """Segments of connections of the generator, or such as belong to none."""
    ICMP = "ICMP"


class Departures(StrEnum):
    """Distribution of the times between two packets that a sender sends; their mean follows from the load."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    """From half of the mean to one and a half of it."""
    EXPONENTIAL = "exponential"
    NORMAL = "normal"
    """With a standard deviation of a quarter of the mean."""
