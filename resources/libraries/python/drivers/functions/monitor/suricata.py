"""Suricata: its configuration (one worker, rules that search each payload for a pattern), and its command socket."""

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from resources.libraries.python.dialogue import record_of
from resources.libraries.python.drivers.host.sockets.answers import receive
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.counters import ProcessedPackets
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

    `count`: How many, up to 2^32.
    """
    return tuple(f"{number * _SPREAD % 2**32:08x}" for number in range(1, count + 1))


def argv(interface: str, place: Path) -> list[str]:
    """How it is started.

    `place`: its own folder, with `files`.
    """
    return ["suricata", "-c", str(place / _CONFIGURATION), "-l", str(place), f"--af-packet={interface}"]


def files(interface: str, place: Path, rules: int) -> Mapping[str, str]:
    """What it reads.

    `rules`: how many, each with a pattern of its own; all of them alert, none drops.

    Returns:
        Texts by name of the file.
    """
    return {
        _CONFIGURATION: render(
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
        ),
        _RULES: "".join(map(_rule, range(1, rules + 1), patterns(rules))),
    }


def _rule(number: int, pattern: str) -> str:
    return f'alert ip any any -> any any (msg:"pattern {number}"; content:"{pattern}"; sid:{number}; rev:1;)\n'


_ANSWER_S = 5.0
GREETING = json.dumps({"version": "0.2"})
"""The first line to Suricata, with the version of the protocol."""


def taken(place: Path, interface: str) -> ProcessedPackets:
    """What it has taken out of the counters of its packet socket by itself, which it does each second.

    Raises:
        CsitError: It does not answer, or something else.
    """
    message = None
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(place))
            for line in (GREETING, counters_of(interface)):
                link.sendall(line.encode() + b"\n")
                message = accepted(line, _answer(link))
    except OSError as error:
        raise CsitError(f"suricata does not answer at {place}: {error.strerror or error}") from error
    return counted(message, interface)


def counters_of(interface: str) -> str:
    """The request for the counters of an interface, as a line."""
    return json.dumps({"command": "iface-stat", "arguments": {"iface": interface}})


def accepted(line: str, answer: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """The message of an answer.

    Raises:
        CsitError: Suricata refused the request.
    """
    if answer.get("return") != "OK":
        raise CsitError(f"suricata refuses {line}: {answer.get('message')!r:.200}")
    return answer.get("message")


def counted(message: Any, interface: str) -> ProcessedPackets:  # noqa: ANN401 - as it came
    """Packets of an interface: those that Suricata got, and those that it dropped.

    Raises:
        CsitError: The message has no counters.
    """
    try:
        packets, dropped = int(message["pkts"]), int(message["drop"])
    except (KeyError, TypeError, ValueError) as error:
        raise CsitError(f"suricata's counters of {interface} cannot be understood: {message!r:.200}") from error
    return ProcessedPackets(packets - dropped, dropped)


def _answer(link: socket.socket) -> dict[str, Any]:
    """A line of it; older versions leave the end of a line out, and then a whole object is one."""
    return record_of(receive(link, "an answer of suricata", _is_object, _ANSWER_S))


def _is_object(text: bytes) -> bool:
    if text.rstrip().endswith(b"}"):
        with suppress(CsitError):
            return bool(record_of(text))
    return False
