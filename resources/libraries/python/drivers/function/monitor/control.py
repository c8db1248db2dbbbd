"""Asking Suricata by its control socket: JSON lines, after a greeting with the version of the protocol."""

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import Processed

_ANSWER_S = 5.0
_VERSION = "0.2"


def taken(place: Path, interface: str) -> Processed:
    """What it has taken out of the counters of its packet socket by itself, which it does each second.

    Args:
        place: Its control socket.
        interface: That it looks at.

    Raises:
        CsitError: It does not answer, or something else.
    """
    counts = _asked(place, {"command": "iface-stat", "arguments": {"iface": interface}})
    try:
        packets, dropped = int(counts["pkts"]), int(counts["drop"])
    except (KeyError, TypeError, ValueError) as error:
        raise CsitError(f"suricata's counters of {interface} cannot be understood: {counts!r:.200}") from error
    return Processed(packets - dropped, dropped)


def _asked(place: Path, question: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever it says
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(_ANSWER_S)
            link.connect(str(place))
            for line in ({"version": _VERSION}, question):
                link.sendall(json.dumps(line).encode() + b"\n")
                answer = _answer(link)
                if answer.get("return") != "OK":
                    raise CsitError(f"suricata refuses {json.dumps(line)}: {answer.get('message')!r:.200}")
    except OSError as error:
        raise CsitError(f"suricata does not answer at {place}: {error.strerror or error}") from error
    return answer.get("message")


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
