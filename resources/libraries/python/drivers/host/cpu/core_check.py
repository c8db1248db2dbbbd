"""Finding of the doctor about kinds of cores and last-level caches of a node."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from resources.libraries.python.drivers.host.cpu.cpu import kinds_of
from resources.libraries.python.model.findings.check_finding import CheckFinding, ok
from resources.libraries.python.model.testbed.cpu import KINDS
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode


def check(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Say which kinds of cores there are, and how many groups with a last-level cache of their own.

    Args:
        place: Of the node.
        node: It.
        answer: Of `core_facts`.
    """
    del node
    counts = Counter(kinds_of(answer).values())
    if counts:
        parts = [f"{counts[rank]} CPUs of {KINDS[min(rank, len(KINDS) - 1)]} cores" for rank in sorted(counts)]
        text = f"{', '.join(parts)}: data threads of a cell are on one kind, the fastest that has enough"
        yield ok(place, "kinds of cores", text)
    caches = len(set(answer["last_caches"].values()))
    if caches > 1:
        text = f"{caches}: data threads of a service instance share one where one has enough cores"
        yield ok(place, "last-level caches", text)
