"""Preparation of the machines of a testbed: settings for repeatable figures, until the testbed is released."""

import os
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.maintenance.machines import Machines, MaintainedMachine
from resources.libraries.python.testbed.node import preparation, reservation
from resources.libraries.python.testbed.node.fact_collection import gather
from resources.libraries.python.testbed.node.preparation import Preparation, SettingChange, changes, prepare
from resources.libraries.python.testbed.node.reservation import VARIABLE, Claim

Report = Callable[[str], None]


def is_prepared(place: MaintainedMachine) -> bool:
    """Whether a machine has settings to put back.

    Raises:
        InUse: It has, and a run is alive there that began with them.
    """
    left = place.leftovers(root=False)
    if left.prepared and left.in_use:
        raise InUse(f"{place.name}: a run is active; restore its settings after it ends, or use --force")
    return left.prepared is not None


def restore(place: MaintainedMachine) -> tuple[str, ...]:
    """Put the settings of a machine back; a sentence for each.

    Raises:
        CsitError: Some could not be put back; the text says which. They stay on record.
    """
    done = preparation.restore(place.connection, place.python)
    if done.refused:
        raise CsitError(f"{place.name}: {'; '.join(done.refused)}")
    return (*(f"{place.name}: {each}" for each in done.done), *(f"{place.name}: {note}" for note in done.notes))


@dataclass(frozen=True, slots=True)
class Proposal:
    """Required and present settings of a machine."""

    machine: str
    wanted: Preparation
    changes: tuple[SettingChange, ...]
    busy: str
    """Why nothing can be changed now; empty where it can."""
    prepared: bool
    """It was prepared before, and its settings of before that are on record."""


@dataclass(frozen=True, slots=True)
class PreparationResult:
    """Outcome of preparing a machine."""

    proposal: Proposal
    lines: tuple[str, ...]
    """Changes, and refusals of the kernel; a sentence each."""
    short: tuple[str, ...]
    """Settings that got less than asked for, a sentence each."""


def propose(machines: Machines, cells: Collection[Cell] = ()) -> list[Proposal]:
    """Look at all machines side by side. Nothing is changed.

    `cells`: What is going to be measured; empty for what the topology declares, else the smallest cell.

    Raises:
        CsitError: One cannot be asked.
    """
    with ThreadPoolExecutor(max(1, len(machines.places))) as pool:
        return list(pool.map(lambda place: _propose(machines.topology, place, cells), machines.places.values()))


def _propose(topology: Topology, place: MaintainedMachine, cells: Collection[Cell]) -> Proposal:
    root = place.nodes[0].access is not None
    facts = gather(place.connection, place.nodes, place.python, root=root)
    files = preparation.look(place.connection, place.python)
    wanted = prepare(topology, place.name, facts, files, cells)
    rows = [(setting.path, files[setting.path], setting.value) for setting in wanted.settings]
    left, busy = facts.leftovers, ""
    if left.in_use:
        busy = f"a run is alive there, {left.who}"
    elif left.settings:
        busy = "a run that was killed has left settings changed; ./csit cleanup TOPOLOGY --yes puts them back"
    return Proposal(place.name, wanted, tuple(changes(rows, wanted.settings)), busy, prepared=left.prepared is not None)


def apply(
    machines: Machines, proposals: Collection[Proposal], reason: str, lease_s: float, *, wait_s: float, report: Report
) -> tuple[str | None, list[PreparationResult]]:
    """Change what was proposed, under a reservation: the one in the environment, or one that is taken now.

    All machines or none: where one fails, the others are put back, and a reservation taken for this is given back. A
    machine that was prepared before stays so.

    `lease_s`: For how long a new reservation is.
    `wait_s`: How long to wait for others.

    Returns:
        The token of a reservation that was taken, which belongs into the environment variable CSIT_RESERVATION; and
        what came of it.

    Raises:
        InUse: A machine is reserved by another user, or a run is alive there.
        CsitError: A machine cannot be asked or changed.
    """
    claim = Claim(machines.topology.metadata.name, reason, lease_s)
    with ExitStack() as undo:
        joined = bool(os.environ.get(VARIABLE)) and reservation.join(machines.reservable)
        if not joined:
            for sentence in reservation.acquire_within(
                machines.reservable, claim, wait_s, report, machines.refuse_in_use
            ):
                report(sentence)
            undo.callback(reservation.release, machines.reservable, claim.token)
        for each in proposals:
            if each.busy:
                raise InUse(f"{each.machine}: {each.busy}")
        done = []
        for each in proposals:
            place = machines.places[each.machine]
            if not each.prepared:
                undo.callback(restore, place)
            tuned = preparation.apply(place.connection, place.python, each.wanted, claim.owner)
            lines = (*map(str, tuned.done), *tuned.notes, *tuned.refused)
            done.append(PreparationResult(each, lines, tuned.short))
        undo.pop_all()
    return (None if joined else claim.token), done
