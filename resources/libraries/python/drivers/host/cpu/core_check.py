"""Findings of the doctor about kinds of cores and last-level caches of a node."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from resources.libraries.python.drivers.host.cpu.cpu import kinds_of
from resources.libraries.python.model.findings import CheckFinding, ok, problem, warning
from resources.libraries.python.model.ranges import ranges
from resources.libraries.python.model.testbed.cpu import KINDS
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode

_UNSEEN = "which plans do not see: the file lists CPUs"


def check(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Compare kinds of cores, and groups with a last-level cache of their own, with those that the file states.

    `answer`: of `core_facts`.
    """
    yield from _kinds(place, node, answer)
    yield from _caches(place, node, {int(cpu): first for cpu, first in answer["last_caches"].items()})


def _kinds(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    there, item = kinds_of(answer), "kinds of cores"
    counts = Counter(there.values())
    text = ", ".join(f"{counts[rank]} CPUs of {_kind(rank)} cores" for rank in sorted(counts))
    if node.cpus == "discover":
        if text:
            yield ok(place, item, f"{text}: data threads of a cell are on one kind, the fastest that has enough")
    elif not any(group.kind for group in node.cpus):
        if text:
            yield warning(place, item, f"{text}, {_UNSEEN}", "state `kind`, or say cpus: discover")
    elif answer["units"] or answer["khz"]:
        differing: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in node.layout.cpus:
            pair = there.get(row.cpu, 0), node.layout.kinds.get(row.cpu, 0)
            differing[pair].append(row.cpu)
        wrong = {pair: cpus for pair, cpus in differing.items() if pair[0] != pair[1]}
        for (here, stated), cpus in sorted(wrong.items()):
            what = f"CPUs {ranges(cpus)} are listed as {_kind(stated)} cores, and are {_kind(here)} cores"
            yield problem(f"{place}.cpus", item, what, "correct `kind`, or say cpus: discover")
        if not wrong:
            yield ok(place, item, f"{text or 'one'}, as listed")


def _caches(place: str, node: TgNode | DutNode, there: Mapping[int, int]) -> Iterator[CheckFinding]:
    count, item = len(set(there.values())), "last-level caches"
    if node.cpus == "discover":
        if count > 1:
            what = f"{count}: data threads of a service instance share one where one has enough cores"
            yield ok(place, item, what)
    elif not any(group.cores_per_cache for group in node.cpus):
        if count > 1:
            yield warning(place, item, f"{count}, {_UNSEEN}", "state `cores_per_cache`, or say cpus: discover")
    elif there:
        known = [row.cpu for row in node.layout.cpus if row.cpu in there]
        here, listed = (_sharing(known, caches) for caches in (there, node.layout.last_caches))
        wrong = sorted({here[cpu] for cpu in known if here[cpu] != listed[cpu]})
        for group in wrong:
            what = f"CPUs {ranges(group)} share one; the file has CPU {group[0]} with {ranges(listed[group[0]])}"
            yield problem(f"{place}.cpus", item, what, "correct `cores_per_cache`, or say cpus: discover")
        if not wrong:
            yield ok(place, item, f"{len(set(here.values()))}, as listed")


def _kind(rank: int) -> str:
    return KINDS[min(rank, len(KINDS) - 1)]


def _sharing(cpus: list[int], caches: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """By CPU those that share its cache; all share one where none is known."""
    return {cpu: tuple(other for other in cpus if caches.get(other) == caches.get(cpu)) for cpu in cpus}
