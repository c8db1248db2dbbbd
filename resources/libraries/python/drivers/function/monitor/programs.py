"""Programs that look at packets, as they are run here: none has a terminal, and each counts in its own way. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from resources.libraries.python.model.kinds import NfKind

_FOR_EVER_S = 2_000_000_000
_BUFFER_KIB = 4096
"""Of tcpdump's and netsniff's rings; of the others it is the library's 2 MB."""
_SPREAD = 2_654_435_761
"""Odd and near 2^32 divided by the golden ratio: multiples of it, modulo 2^32, have little in common."""


@dataclass(frozen=True, slots=True)
class Program:
    """A monitor."""

    name: str
    """What is run."""
    package: str
    """Of Debian, that has it."""
    does: str
    """With each packet; for a person."""
    argv: Callable[[str], list[str]]
    """The argument vector, for an interface."""
    tells: str
    """The argument with which it tells its version."""


def patterns(count: int) -> tuple[str, ...]:
    """Contents that no packet of a generator has: eight hexadecimal digits each, all different.

    Args:
        count: How many, up to 2^32.
    """
    return tuple(f"{number * _SPREAD % 2**32:08x}" for number in range(1, count + 1))


def programs(pattern_count: int) -> Mapping[NfKind, Program]:
    """All of them.

    Args:
        pattern_count: What the payload is searched for.
    """
    return {
        NfKind.TCPDUMP: Program(
            "tcpdump",
            "tcpdump",
            "decodes headers and writes a line for each packet",
            lambda interface: ["tcpdump", "-nn", "-v", "-B", str(_BUFFER_KIB), "-i", interface],
            "--version",
        ),
        NfKind.NETSNIFF: Program(
            "netsniff-ng",
            "netsniff-ng",
            "keeps each packet as in a file of captures, which is thrown away",
            lambda interface: [
                "netsniff-ng", "--in", interface, "--out", "/dev/null", "--silent", "--ring-size",
                f"{_BUFFER_KIB}KiB", "--no-sock-mem", "--no-hwtimestamp",
            ],
            "--version",
        ),
        NfKind.PKTSTAT: Program(
            "pktstat",
            "pktstat",
            "adds each packet to its flow",
            # In the mode for one report: else it draws on a terminal, which is not there. The report is never due.
            lambda interface: ["pktstat", "-1", "-n", "-w", str(_FOR_EVER_S), "-i", interface],
            "-?",
        ),
        NfKind.NGREP: Program(
            "ngrep",
            "ngrep",
            f"searches each payload for {pattern_count} patterns; a stand-in for an intrusion detection system",
            lambda interface: ["ngrep", "-q", "-d", interface, "|".join(patterns(pattern_count))],
            "-V",
        ),
    }  # fmt: skip
