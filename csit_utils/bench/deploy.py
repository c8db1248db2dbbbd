"""Deploying and removing 100 NFs, against one `ip` command per object."""

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter
from statistics import median
from typing import Any

from csit_utils.bench.deploy_peer import Peer
from resources.libraries.python.drivers.functions.linux_router.driver import LinuxRouters
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import check
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.planning.plan import make_plan

_TOPOLOGY = PROJECT / "topologies" / "local.yaml"
_ROUNDS = 3
_QUICK_S, _QUICK_TIMES = 0.01, 5
"""The kernel is done with a removal when so many new namespaces in a row are made as quickly as that."""


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """One round of one side, in seconds."""

    deploy_s: float
    """Until every port has its pinned data thread and passes packets."""
    remove_s: float
    """Until no namespace has its name and no data thread is left, so that no port is."""
    freeing_s: float
    """How long the kernel then goes on freeing bridges, 17 ms each, and keeps everybody from making new links."""


def measure(rounds: int = _ROUNDS, side: int = 10) -> dict[str, Any]:
    """Deploy and remove a CSC 10R10C, our way and by `ip` commands in turns; medians of all rounds.

    Both sides make the same objects with the same settings. The peer gets the benefit of every doubt: it makes an
    object and brings it up in one command, sets all sysctls of a namespace in one and all its data threads in one, and
    sets offloads, affinity and priority by system calls, not by `ethtool`, `taskset` and `chrt`.

    Args:
        rounds: Of both sides.
        side: Rows and columns, fewer than 10 only to show that it works.

    Returns:
        `ours` and `peer` in seconds, deploying and removing; `ratio`: times faster; `detail` with the parts.

    Raises:
        Unsupported: Not root, no `ip`, or this machine lacks something.
        CsitError: Somebody else uses the machine, or the kernel refused something.
    """
    problems = check()
    if problems or not shutil.which("ip"):
        raise Unsupported("; ".join(map(str, problems)) or "the command ip (iproute2) is not installed")
    cell = Cell(service_type=ServiceType.CSC, nf_chains=side, nf_nodes=side)
    plan = make_plan(load_topology(_TOPOLOGY), cell, discover())
    ours, peer = [], []
    with MachineLock() as machine:
        machine.remove_leftovers()
        for _ in range(rounds):
            ours.append(_timed(_Ours(plan, machine)))
            peer.append(_timed(Peer(plan, machine)))
    return _figures(ours, peer)


def _figures(ours: list[RoundTimes], peer: list[RoundTimes]) -> dict[str, Any]:
    def middle(rows: list[RoundTimes], of: Callable[[RoundTimes], float]) -> float:
        return round(median(map(of, rows)), 4)

    def both(times: RoundTimes) -> float:
        return times.deploy_s + times.remove_s

    def all_three(times: RoundTimes) -> float:
        return both(times) + times.freeing_s

    sides = {"ours": ours, "peer": peer}
    parts = {
        f"{side}_{part}": middle(rows, attrgetter(part))
        for side, rows in sides.items()
        for part in RoundTimes.__slots__
    }
    with_freeing = round(middle(peer, all_three) / middle(ours, all_three), 2)
    return {
        "name": "deploy_10x10",
        "ours": middle(ours, both),
        "peer": middle(peer, both),
        "ratio": round(middle(peer, both) / middle(ours, both), 2),
        "unit": "s",
        "note": (
            f"until names, ports and threads are gone; ours leaves {parts['ours_freeing_s']:.2f} s of freeing "
            f"bridges to the kernel, for which the peer waits: with that counted for both, {with_freeing} x"
        ),
        "detail": {
            **parts,
            "deploy_ratio": round(parts["peer_deploy_s"] / parts["ours_deploy_s"], 2),
            "ratio_with_freeing": with_freeing,
            "rounds": len(ours),
        },
    }


class _Ours:
    def __init__(self, plan: Plan, machine: MachineLock) -> None:
        self._fabric = Fabric(plan, machine)
        self._parts = (self._fabric, LinuxBridge(plan, self._fabric), LinuxRouters(plan.functions, self._fabric))

    def deploy(self) -> None:
        for part in self._parts:
            part.start()

    def remove(self) -> None:
        for part in reversed(self._parts):
            part.stop()


def _timed(side: _Ours | Peer) -> RoundTimes:
    _settle()
    with ExitStack() as cleanup:
        cleanup.callback(side.remove)
        begin = time.monotonic()
        side.deploy()
        deployed = time.monotonic()
        cleanup.pop_all()
        side.remove()
        removed = time.monotonic()
    return RoundTimes(deployed - begin, removed - deployed, _settle())


def _settle() -> float:
    """Wait until the kernel has freed what was removed before; return how long it took in seconds."""
    begin = time.monotonic()
    row: list[bool] = []

    def missing() -> str:
        before = time.monotonic()
        aside(lambda: unshare(CLONE_NEWNET))
        took = time.monotonic() - before
        row.append(took < _QUICK_S)
        return "" if all(row[-_QUICK_TIMES:]) and len(row) >= _QUICK_TIMES else f"a new namespace took {took:.3f} s"

    wait_until("end of the kernel's work on what was removed", missing, 60.0, pause_s=0.02)
    return time.monotonic() - begin
