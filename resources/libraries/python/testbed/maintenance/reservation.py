"""Reserving a testbed for longer than a run, and giving it back."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.maintenance.machines import Machines, MaintainedMachine
from resources.libraries.python.testbed.maintenance.preparation import is_prepared, restore
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.reservation import VARIABLE, Claim, Holder

ReportLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReservationState:
    """Reservation of a machine, and its holder."""

    machine: str
    holder: Holder | None
    """None where it is free."""
    ours: bool
    """Its token is in our environment."""
    problem: str = ""
    """Why it is not known."""


def reserve(topology: Topology, reason: str, lease_s: float, wait_s: float, report: ReportLine) -> str:
    """Reserve all machines of a testbed for a time; the reservation outlives this process.

    `wait_s`: How long to wait for others.

    Returns:
        The token, which belongs into the environment variable CSIT_RESERVATION.

    Raises:
        InUse: It is reserved, and no time to wait was given.
        NotReady: It was not given in time.
        CsitError: A machine cannot be asked.
    """
    claim = Claim(topology.metadata.name, reason, lease_s)
    with Machines(topology) as machines:
        if not machines.places:
            report(f"{topology.metadata.name} is simulated: it needs no reservation")
        for sentence in reservation.acquire_within(machines.reservable, claim, wait_s, report, machines.refuse_in_use):
            report(sentence)
    return claim.token


def release(topology: Topology, token: str | None, report: ReportLine = lambda _: None) -> tuple[str, ...]:
    """Give a testbed back, with the settings that its machines had before they were prepared.

    `token`: Of the reservation; None for the one in the environment.

    Returns:
        A sentence for each machine that was not ours.

    Raises:
        ConfigError: There is no token.
        InUse: A machine was prepared, and a run is alive there.
        CsitError: A setting could not be put back, or a machine cannot be asked.
    """
    token = token or os.environ.get(VARIABLE)
    with Machines(topology) as machines:
        if machines.places and not token:
            raise ConfigError(f"no token: export {VARIABLE}=… as ./csit reserve said, or say --token or --force")
        failed = _put_back(machines, lambda place: _is_ours(place, token) and is_prepared(place), report)
        strange = reservation.release(machines.reservable, token or "")
    if failed:
        raise CsitError("; ".join(failed))
    return strange


def break_open(topology: Topology, report: ReportLine = lambda _: None) -> dict[str, Holder | None]:
    """Take a testbed away from its holder and put its settings back; returns the holder, by machine."""
    with Machines(topology) as machines:
        broken = reservation.break_open(machines.reservable)
        failed = _put_back(machines, lambda _: True, report)
    if failed:
        raise CsitError("; ".join(failed))
    return broken


def _is_ours(place: MaintainedMachine, token: str | None) -> bool:
    return reservation.holder_of(place.reservable, token)[1]


def _put_back(machines: Machines, wanted: Callable[[MaintainedMachine], bool], report: ReportLine) -> list[str]:
    """Put back the settings of machines; a sentence for each where that failed."""
    failed = []
    # The other way round than they were prepared, as two nodes may have one kernel.
    for place in reversed(machines.places.values()):
        try:
            for sentence in restore(place) if wanted(place) else ():
                report(sentence)
        except InUse:
            raise
        except CsitError as error:
            failed.append(str(error))
    return failed


def reservation_states(machines: Machines) -> list[ReservationState]:
    """Holders of the machines."""
    found = []
    for name, node in machines.reserved.items():
        try:
            holder, ours = reservation.holder_of(node, os.environ.get(VARIABLE))
            found.append(ReservationState(name, holder, ours))
        except CsitError as error:
            found.append(ReservationState(name, None, ours=False, problem=str(error)))
    return found
