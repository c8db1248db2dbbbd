#!/usr/bin/env python3
"""Serves the counters of an IDS over TCP, a JSON object per connection; the IDS's own statistics are their source.

The generator cannot read them otherwise: it is in another network namespace, or on another machine.

Usage: counters.py ENGINE FOLDER ADDRESS
"""

import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

PORT = 8020
REPORT_WITHIN_S = 4.0
"""Snort writes its report when it has handled the present packets."""
ANSWER_WITHIN_S = 5.0
"""More than a report takes, so that its error is still answered."""
_POLL_S = 0.02
_TAIL_BYTES = 65536
Counters = dict[str, float]
"""`inspected`: UDP packets that were searched. `missed`: packets that it was too
slow for. `hits`: matches of rules. `blocked`: packets that were not forwarded."""


class LateReportError(Exception):
    """An engine did not write the report that it was asked for."""


def of_suricata(eve: str) -> Counters | None:
    """Counters of the last whole statistic in the end of an eve.json; None where there is none yet."""
    for line in reversed(eve[: eve.rfind("\n") + 1].splitlines()):
        if line.startswith("{") and '"event_type":"stats"' in line:
            stats = json.loads(line)["stats"]
            return {
                "inspected": _number(stats, "decoder", "udp"),
                "missed": _number(stats, "capture", "kernel_drops"),
                "hits": _number(stats, "detect", "alert"),
                "blocked": _number(stats, "ips", "blocked"),
            }
    return None


def _number(stats: Mapping[str, Mapping[str, float]], group: str, name: str) -> float:
    return stats.get(group, {}).get(name, 0)


def of_snort(log: str) -> Counters | None:
    """Counters of the last whole report that Snort 2 prints on SIGUSR1; None where there is none yet."""
    reports = log.split("Packet I/O Totals:")[1:]
    whole = [text for text in reports if "Action Stats:" in text and "Verdicts:" in text]
    if not whole:
        return None
    return {
        "inspected": _count("UDP", whole[-1]),
        "missed": _count("Dropped", whole[-1]),
        "hits": _count("Alerts", whole[-1]),
        "blocked": 0,
    }


def _count(name: str, report: str) -> float:
    found = re.search(rf"^\s*{name}:\s+(\d+)", report, re.MULTILINE)
    return float(found[1]) if found else 0.0


def reader(engine: str, folder: Path) -> Callable[[], Counters | None]:
    """What reads the present counters of an engine."""

    def suricata() -> Counters | None:
        return of_suricata(_tail(folder / "eve.json"))

    def snort() -> Counters | None:
        log = folder / "ids.log"
        before = log.stat().st_size
        os.kill(int((folder / "ids.pid").read_text(encoding="ascii")), signal.SIGUSR1)
        deadline = time.monotonic() + REPORT_WITHIN_S
        while (found := of_snort(_from(log, before))) is None:
            if time.monotonic() > deadline:
                raise LateReportError(f"Snort wrote no report within {REPORT_WITHIN_S:g} s after SIGUSR1")
            time.sleep(_POLL_S)
        return found

    return snort if engine == "snort" else suricata


def _tail(path: Path) -> str:
    return _from(path, max(0, path.stat().st_size - _TAIL_BYTES)) if path.exists() else ""


def _from(path: Path, begin: int) -> str:
    """What a file has from a byte on."""
    with path.open("rb") as file:
        file.seek(begin)
        return file.read().decode("utf-8", errors="replace")


def serve(read: Callable[[], Counters | None], address: str) -> None:
    """Answer one after the other, for ever."""
    with socket.create_server((address, PORT)) as server:
        while True:
            client, _ = server.accept()
            with client:
                found: Counters | str | None
                try:
                    found = read()
                except LateReportError as error:
                    found = str(error)
                except (OSError, ValueError, KeyError):  # the IDS has just begun, or has ended
                    found = None
                with suppress(OSError):  # the client has closed its end
                    client.sendall(json.dumps(found).encode())


def ask(address: str) -> Counters:
    """The counters of the IDS at an address.

    Raises:
        OSError: It does not answer.
        ValueError: It has none yet, or its engine reports none.
    """
    with socket.create_connection((address, PORT), ANSWER_WITHIN_S) as server:
        found = json.loads(b"".join(iter(lambda: server.recv(4096), b"")))
    if isinstance(found, str):
        raise ValueError(f"the IDS at {address}: {found}")
    if not isinstance(found, dict):
        raise ValueError(f"the IDS at {address} has no statistics yet")
    return found


if __name__ == "__main__":
    engine, place, own = sys.argv[1:]
    serve(reader(engine, Path(place)), own)
