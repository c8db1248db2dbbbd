"""Finding of the doctor about kinds of cores and last-level caches of a node."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from resources.libraries.python.drivers.host.cpu.cpu import kinds_of
from resources.libraries.python.model.findings.check_finding import CheckFinding, ok, warning
from resources.libraries.python.model.testbed.cpu import KINDS
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode


def check(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Say which kinds of cores there are, and how many groups with a last-level cache of their own.

    Args:
        place: Of the node.
        node: It.
        answer: Of `core_facts`.
    """
    counts = Counter(kinds_of(answer).values())
    parts = [f"{counts[rank]} CPUs of {KINDS[min(rank, len(KINDS) - 1)]} cores" for rank in sorted(counts)]
    caches = len(set(answer["last_caches"].values()))
    one_cache = "data threads of a service instance share one where one has enough cores"
    found = (
        ("kinds of cores", ", ".join(parts), "data threads of a cell are on one kind, the fastest that has enough"),
        ("last-level caches", str(caches) if caches > 1 else "", one_cache),
    )
    for item, there, use in found:
        if there and node.cpus == "discover":
            yield ok(place, item, f"{there}: {use}")
        elif there:
            yield warning(place, item, f"{there}, which plans do not see: the file lists CPUs", "say cpus: discover")
