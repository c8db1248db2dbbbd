"""Cost of packets by stage of the PMD threads of Open vSwitch, from `pmd-stats-show` and `pmd-perf-show`. Pure."""

import re
from collections.abc import Iterator

from resources.libraries.python.model.measurements.node_costs import NodeCost

_THREAD = re.compile(r"^pmd thread .*core_id (\d{1,9}):")
_COUNT = re.compile(r"^\s+(?:- )?([A-Za-z][A-Za-z ]*[a-z]):\s*(\d{1,18})(?![\d.])")
_LOOKUPS = {
    "phwol hits": "hardware offload",
    "simple match hits": "simple match",
    "emc hits": "exact match cache",
    "smc hits": "signature match cache",
    "megaflow hits": "megaflow classifier",
    "miss with success upcall": "upcall",
}
"""Counted by packets only: the clocks of a packet are those of all of its stages together."""


def node_costs(part: str, *shown: str) -> tuple[NodeCost, ...]:
    """Read what both commands show: the stages of each PMD thread that had packets."""
    threads: dict[str, dict[str, int]] = {}
    for text in shown:
        counts: dict[str, int] | None = None
        for line in text.splitlines():
            if match := _THREAD.match(line):
                counts = threads.setdefault(f"core {match[1]}", {})
            elif line and not line[0].isspace():
                counts = None  # the main thread, or the head of the answer
            elif counts is not None and (match := _COUNT.match(line)):
                counts.setdefault(match[1].lower(), int(match[2]))
    return tuple(row for thread, counts in threads.items() for row in _stages(part, thread, counts))


def _stages(part: str, thread: str, counts: dict[str, int]) -> Iterator[NodeCost]:
    packets = counts.get("packets received", 0)
    if not packets:
        return
    clocks = counts.get("processing cycles")
    yield NodeCost(
        part=part,
        thread=thread,
        node="processing",
        packets=packets,
        calls=counts.get("busy iterations"),
        cost=None if clocks is None else clocks / packets,
    )
    for name, node in _LOOKUPS.items():
        if counts.get(name):
            yield NodeCost(part=part, thread=thread, node=node, packets=counts[name])
    if sent := counts.get("tx packets"):
        yield NodeCost(part=part, thread=thread, node="output", packets=sent, calls=counts.get("tx batches"))
