"""Configuration of Suricata: one worker, rules that search each payload for a pattern, a command socket. Pure."""

from collections.abc import Mapping
from pathlib import Path

from resources.libraries.python.rendering import render

CONTROL = "control"
"""Name of the socket by which it answers."""
ALERTS = "alerts"
"""Name of the file that it writes them to."""
SETTLES_S = 0.3
"""Seconds. Suricata discards packets until all its threads run and one poll of 0.1 s has returned none. Without the
pause, 3 of 15 tests of exact counts missed a packet; with it, none of 20."""
_TEMPLATE = "suricata.yaml.j2"
_CONFIGURATION, _RULES = "suricata.yaml", "suricata.rules"
_RING_PACKETS = 4096
_FLOWS = 4096
"""That it has memory for from the beginning: enough for those of a generator."""


_SPREAD = 2_654_435_761
"""Odd and near 2^32 divided by the golden ratio: multiples of it, modulo 2^32, have little in common."""


def patterns(count: int) -> tuple[str, ...]:
    """Contents that no packet of a generator has: eight hexadecimal digits each, all different.

    Args:
        count: How many, up to 2^32.
    """
    return tuple(f"{number * _SPREAD % 2**32:08x}" for number in range(1, count + 1))


def argv(interface: str, place: Path) -> list[str]:
    """How it is started.

    Args:
        interface: That it looks at.
        place: Its own folder, with `files`.
    """
    return ["suricata", "-c", str(place / _CONFIGURATION), "-l", str(place), f"--af-packet={interface}"]


def files(interface: str, place: Path, rules: int) -> Mapping[str, str]:
    """What it reads.

    Args:
        interface: That it looks at.
        place: Where the files will be.
        rules: How many, each with a pattern of its own; all of them alert, none drops.

    Returns:
        Texts by name of the file.
    """
    return {
        _CONFIGURATION: _configuration(interface, place),
        _RULES: "".join(map(_rule, range(1, rules + 1), patterns(rules))),
    }


def _rule(number: int, pattern: str) -> str:
    return f'alert ip any any -> any any (msg:"pattern {number}"; content:"{pattern}"; sid:{number}; rev:1;)\n'


def _configuration(interface: str, place: Path) -> str:
    return render(
        _TEMPLATE,
        {
            "name": place.name,
            "place": place,
            "rules": _RULES,
            "interface": interface,
            "ring_packets": _RING_PACKETS,
            "flows": _FLOWS,
            "alerts": ALERTS,
            "control": place / CONTROL,
        },
    )
