"""Losses over the density matrix: shares by owner, and busy time of its data threads."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csit_utils.dataset.rows import HopRow, ThreadRow
from resources.libraries.python.model.findings import ThreadLoad

LINK = "link"
"""Packets left for an owner, and no counter saw them arrive or be dropped."""
VSWITCH = "vSwitch"
_NF = re.compile(r"nf-\d+-(\d+)")


@dataclass(frozen=True)
class OwnerShare:
    """Losses of one kind of owner."""

    owner: str
    """`vSwitch`, `NF 2` for the second NF of any instance, `generator`, or `link`."""
    lost: int
    share: float
    """Share of the losses that were located, in [0, 1]."""
    busy: float | None
    """Share of the time in which its busiest data thread ran; None where that is not known."""


def owner_of(row: HopRow | ThreadRow) -> str:
    """The kind of owner, the same for all instances."""
    if isinstance(row, HopRow) and row.cause == "link":
        return LINK
    nf = _NF.fullmatch(row.owner)
    if nf:
        return f"NF {nf[1]}"
    return VSWITCH + row.owner.removeprefix("vswitch") if row.owner.startswith("vswitch") else row.owner


def shares(hops: Iterable[HopRow], threads: Iterable[ThreadRow] = ()) -> list[OwnerShare]:
    """Losses of one test by kind of owner, most packets first; empty where none were located.

    `threads`: its data threads in the same trials.
    """
    lost: dict[str, int] = {}
    for hop in hops:
        lost[owner_of(hop)] = lost.get(owner_of(hop), 0) + hop.lost
    total = sum(lost.values())
    if not total:
        return []
    own: dict[str, dict[str, list[ThreadRow]]] = {}
    for thread in threads:
        own.setdefault(owner_of(thread), {}).setdefault(thread.owner, []).append(thread)
    found = []
    for owner, count in sorted(lost.items(), key=lambda pair: (-pair[1], pair[0])):
        each = [busiest_cpu(of_one)[0] for of_one in own.get(owner, {}).values()]
        found.append(
            OwnerShare(owner, count, count / total, max((one for one in each if one is not None), default=None))
        )
    return found


def busiest_cpu(threads: Sequence[ThreadRow | ThreadLoad]) -> tuple[float | None, float | None]:
    """Running and waiting on the CPU where an owner does most; its kernel threads on a CPU are one data thread."""
    if not threads:
        return None, None
    cpus = {thread.cpu for thread in threads}
    running = {cpu: sum(thread.running for thread in threads if thread.cpu == cpu) for cpu in cpus}
    cpu = max(cpus, key=lambda each: running[each])
    wanted = max(thread.running + thread.waiting for thread in threads if thread.cpu == cpu)
    return min(1.0, running[cpu]), max(0.0, min(1.0, wanted) - running[cpu])


def order(owners: Iterable[str]) -> list[str]:
    """Owners along the path of packets: generator, vSwitch, NFs by position, link."""

    def key(owner: str) -> tuple[int, int, str]:
        if owner.startswith("NF "):
            return 2, int(owner[3:]), owner
        return {"generator": 0, VSWITCH: 1, LINK: 4}.get(owner, 1 if owner.startswith(VSWITCH) else 3), 0, owner

    return sorted(set(owners), key=key)
