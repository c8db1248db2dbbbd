"""Parsers of rates and times such as `500kpps`, `1.2Gbit/s`, `80us`."""

import re
from dataclasses import dataclass

from resources.libraries.python.errors import ConfigError

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_TIMES_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_L1_BYTES = 20
"""Preamble, start delimiter and inter-frame gap of Ethernet."""


@dataclass(frozen=True)
class Rate:
    """A rate in packets or bits per second."""

    value: float
    bits: bool

    def pps(self, frame_mean_bytes: float, layer: str) -> float:
        """Return packets per second for a mean L2 frame size; `layer` of a bandwidth is `L1` or `L2`."""
        if not self.bits:
            return self.value
        return self.value / (8 * (frame_mean_bytes + (_L1_BYTES if layer == "L1" else 0)))


def parse_rate(text: str) -> Rate:
    """Return a rate; a plain number is in packets per second.

    Raises:
        ConfigError: Invalid, or not above 0.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)(pps|bps|bit/s|b/s)?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"no rate '{text}'; expected for example 500kpps, 1.2Mpps or 1Gbit/s")
    return Rate(float(match[1]) * _PREFIXES[match[2].lower()], (match[3] or "pps").lower() != "pps")


def parse_time_ns(text: str) -> float:
    """Return a time in nanoseconds.

    Raises:
        ConfigError: Invalid, or not above 0.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|μs|ms|s)\s*", text)
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"no time '{text}'; expected for example 80us or 1.5ms")
    return float(match[1]) * _TIMES_NS[match[2]]
