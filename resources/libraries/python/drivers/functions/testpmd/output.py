"""What testpmd prints when it starts, read."""

import re

_READY = "Press enter to exit"
_LCORE = re.compile(r"^Logical Core (\d+) .*forwards packets", re.MULTILINE)
_STREAM = re.compile(r"^\s+RX P=(\d+)/Q=(\d+)")
_VERSION = re.compile(r"(\d+\.\d+\S*)")


def not_ready(said: str) -> str:
    """What is missing until it forwards; empty when nothing is."""
    if _READY in said:
        return ""
    return "it does not forward yet"


def receiving_lcores(said: str) -> dict[tuple[int, int], int]:
    """Which lcore receives from each queue, by numbers of port and queue."""
    found: dict[tuple[int, int], int] = {}
    lcore: int | None = None
    for line in said.splitlines():
        if match := _LCORE.match(line):
            lcore = int(match[1])
        elif (match := _STREAM.match(line)) and lcore is not None:
            found[int(match[1]), int(match[2])] = lcore
    return found


def version(said: str) -> str:
    """DPDK's version in what `dpdk-testpmd -v` prints: `EAL: RTE Version: 'DPDK 22.11.11'`."""
    line = next((line for line in said.splitlines() if "Version" in line), "")
    match = _VERSION.search(line)
    return match[0].strip("'") if match else "unknown version"
