"""Detection and removal of what killed runs have left on the machines of a testbed, by the records of their locks."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CommandFailed, CsitError, InUse
from resources.libraries.python.quantities import counted
from resources.libraries.python.testbed.connection.command import python_failure
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.connection.runtime import Runtimes
from resources.libraries.python.testbed.maintenance.machines import Machines, MaintainedMachine
from resources.libraries.python.testbed.maintenance.preparation import restore
from resources.libraries.python.testbed.node.checks.system import STALE_DAYS
from resources.libraries.python.testbed.node.facts import Leftovers, StoredRuntime
from resources.libraries.python.testbed.node.node_query import MARK, ask, read_answer
from resources.libraries.python.testbed.node.reservation import join
from resources.libraries.python.testbed.node.scripts import runtimes

_PAUSE_S = 1.0


_WITHIN_S = 180.0
_PROGRAM = """\
import json, sys
sys.path[:0] = json.loads({paths})
from resources.libraries.python.testbed.maintenance.cleanup import cleanup_of_this_node
sys.stdout.write({mark!r} + json.dumps(cleanup_of_this_node({wait_s})) + "\\n")
"""


def clean_up_here(wait_s: float = 0.0) -> list[str]:
    """Remove what a killed run left on this machine.

    `wait_s`: How long to wait for a run that is ending.

    Returns:
        A sentence for each thing that was removed.

    Raises:
        InUse: A run is alive.
        CsitError: Something could not be removed.
    """
    end = time.monotonic() + wait_s
    while True:
        try:
            with MachineLock() as lock:
                return lock.remove_leftovers()
        except InUse:
            if time.monotonic() >= end:
                raise
            time.sleep(0.5)


def cleanup_of_this_node(wait_s: float) -> dict[str, object]:
    """As `clean_up_here`, for a caller on another machine."""
    try:
        return {"removed": clean_up_here(wait_s)}
    except CsitError as error:
        return {"failed": str(error)}


def clean_up_there(connection: Connection, python: str, runtime: PurePosixPath, wait_s: float = 0.0) -> list[str]:
    """Remove what a killed run left on a node.

    `wait_s`: How long to wait for a run that is ending.

    Raises:
        CsitError: A run is alive there, or something could not be removed.
    """
    paths = ascii(json.dumps([str(runtime / "project"), str(runtime / "packages")]))
    text = _PROGRAM.format(paths=paths, mark=MARK, wait_s=wait_s)
    try:
        done = connection.run([python, "-I", "-"], stdin=text.encode(), within_s=_WITHIN_S + wait_s, root=True)
    except CommandFailed as failed:
        raise python_failure(connection.name, python, failed) from failed
    answered = read_answer(connection, python, done)
    if "failed" in answered:
        raise CsitError(f"{connection.name}: {answered['failed']}")
    return list(answered["removed"])


@dataclass(frozen=True, slots=True)
class MachineLeftovers:
    """Leftovers of earlier runs on a machine."""

    machine: str
    left: Leftovers
    stale: tuple[StoredRuntime, ...]
    """Runtimes of agents, unused for long."""

    @property
    def clean(self) -> bool:
        """Whether there is nothing to remove."""
        return not self.left.lines() and not self.stale and not self.left.prepared


def find(machines: Machines, *, all_runtimes: bool = False) -> list[MachineLeftovers]:
    """Look at all machines.

    Raises:
        CsitError: One cannot be asked.
    """
    return [_find(place, all_runtimes=all_runtimes) for place in machines.places.values()]


def _find(place: MaintainedMachine, *, all_runtimes: bool) -> MachineLeftovers:
    left = place.leftovers()
    stale = tuple(each for each in left.runtimes if all_runtimes or each.unused_days > STALE_DAYS)
    return MachineLeftovers(place.name, left, stale)


def remove(machines: Machines, found: list[MachineLeftovers], wait_s: float) -> list[str]:
    """Remove what was found; returns a sentence for each thing.

    `wait_s`: How long a run may take to end by itself: one that was cut off is cleaning up.

    Raises:
        InUse: A run is alive there, or another owner has the reservation.
        CsitError: Something could not be removed.
    """
    # Nothing is removed from a generator that is driven over its API: another testbed may be using it.
    joined = join({name: place.reservable for name, place in machines.places.items()})
    for each in found:
        _wait_for_end(machines.places[each.machine], each, wait_s)
    placed = [(machines.places[each.machine], each) for each in found]
    return take_all(
        (
            *(partial(_remove_objects, place, wait_s) for place, each in placed if each.left.lines()),
            *(partial(_remove_runtimes, place, each) for place, each in placed if each.stale),
            *(partial(_put_back, place, joined=joined) for place, each in reversed(placed) if each.left.prepared),
        )
    )


def _remove_objects(place: MaintainedMachine, wait_s: float) -> list[str]:
    return [f"{place.name}: {line}" for line in _tidy(place, wait_s)]


def _remove_runtimes(place: MaintainedMachine, found: MachineLeftovers) -> list[str]:
    names = [runtime.name for runtime in found.stale]
    ask(place.connection, runtimes, {"names": names}, python=place.python)
    return [f"{place.name}: removed {counted(len(names), 'folder')} of agent runtimes"]


def _put_back(place: MaintainedMachine, *, joined: bool) -> Iterable[str]:
    if joined:
        return [f"{place.name}: prepared for this reservation; ./csit release puts its settings back"]
    return restore(place)


def _wait_for_end(place: MaintainedMachine, found: MachineLeftovers, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    left = found.left
    while left.in_use:
        if time.monotonic() >= end:
            raise InUse(f"{place.name}: a run is alive there, {left.who}")
        time.sleep(_PAUSE_S)
        left = _find(place, all_runtimes=False).left


def _tidy(place: MaintainedMachine, wait_s: float) -> list[str]:
    if place.nodes[0].access is None:
        return clean_up_here(wait_s)
    _, program = Runtimes().install(place.connection, place.python)
    return clean_up_there(place.connection, place.python, program.parent, wait_s)
