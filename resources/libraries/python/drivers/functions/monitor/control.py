"""Asking Suricata by its control socket: JSON lines, after a greeting with the version of the protocol."""

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import Processed

_ANSWER_S = 5.0
GREETING = json.dumps({"version": "0.2"})
"""The first line to Suricata, with the version of the protocol."""


def taken(place: Path, interface: str) -> Processed:
    """What it has taken out of the counters of its packet socket by itself, which it does each second.

    Args:
        place: Its control socket.
        interface: That it looks at.

    Raises:
        CsitError: It does not answer, or something else.
    """
    message = None
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(_ANSWER_S)
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


def counted(message: Any, interface: str) -> Processed:  # noqa: ANN401 - as it came
    """Packets of an interface: those that Suricata got, and those that it dropped.

    Raises:
        CsitError: The message has no counters.
    """
    try:
        packets, dropped = int(message["pkts"]), int(message["drop"])
    except (KeyError, TypeError, ValueError) as error:
        raise CsitError(f"suricata's counters of {interface} cannot be understood: {message!r:.200}") from error
    return Processed(packets - dropped, dropped)


def _answer(link: socket.socket) -> dict[str, Any]:
    """A line of it; older versions leave the end of a line out, and then a whole object is one."""
    text = b""
    while piece := link.recv(65536):
        text += piece
        with suppress(ValueError):
            found = json.loads(text)
            if isinstance(found, dict):
                return found
    raise CsitError(f"suricata ended its answer early: {text!r:.200}")
