#!/usr/bin/env python3
"""Offers connections with one request each to the proxies, evenly; prints the rate of replies with status 200.

The rate is over the time in which all of them came, also those that were late.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

MAX_UNSENT = 0.02
"""Of all connections: above it the indicator would be that of the generator, not of the service."""
REPLY_WITHIN_S = 2
NAMESPACE_SETTINGS = {"ip_local_port_range": "1024 65000", "tcp_tw_reuse": "1"}
"""Each connection takes a port, which then rests for a minute: too many for the few that are usual."""


def number(pattern: str, text: str) -> float:
    """The number after a phrase of the generator's report."""
    found = re.search(pattern + r"\s*([\d.]+)", text)
    if found is None:
        sys.exit(f"the generator's report says nothing of '{pattern}': {text[-300:]}")
    return float(found[1])


def start(proxy: str, rate: float, duration_s: float) -> subprocess.Popen[str]:
    """One generator that offers its part of the rate to one proxy."""
    argv = [
        "httperf", "--hog", "--server", proxy, "--port", "80", "--uri", "/", "--rate", f"{rate:g}",
        "--num-conns", str(max(1, round(rate * duration_s))), "--num-calls", "1", "--timeout", str(REPLY_WITHIN_S),
    ]  # fmt: skip
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main() -> None:
    """Offer, read, report."""
    load, duration_s = float(os.environ["CSIT_LOAD"]), float(os.environ["CSIT_DURATION_S"])
    proxies = os.environ["CSIT_ADDRESSES_PROXY"].split()
    for name, value in NAMESPACE_SETTINGS.items():
        Path("/proc/sys/net/ipv4", name).write_text(value, encoding="ascii")
    replied = unsent = 0.0
    processes = [start(proxy, load / len(proxies), duration_s) for proxy in proxies]
    for process in processes:
        report, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(f"the generator ended with {process.returncode}: {errors[-300:]}")
        replied += number("2xx=", report) / max(duration_s, number("test-duration", report))
        unsent += number("addrunavail", report) + number("ftab-full", report)
    if unsent > MAX_UNSENT * load * duration_s:
        sys.exit(f"{unsent:.0f} of {load * duration_s:.0f} connections had no port: the generator is at its limit")
    print(report)
    print(f"indicator {replied:.2f}")


if __name__ == "__main__":
    main()
