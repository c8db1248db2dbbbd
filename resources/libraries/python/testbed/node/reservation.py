"""The reservation of a testbed: all of its nodes with one token, or none."""

import hashlib
import logging
import os
import platform
import random
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict

from resources.libraries.python.drivers.host.ownership.processes import Process, process, user
from resources.libraries.python.errors import CsitError, InUse, NotReady
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.scripts import leases
from resources.libraries.python.testbed.roles.connection import Connection

VARIABLE = "CSIT_RESERVATION"
"""Of the environment: the token of a reservation that runs join."""
_ASK_AGAIN_S = 5.0
_ROOT_S = 20.0
_log = logging.getLogger(__name__)


class HoldingProcess(Frozen):
    """What tells a process from others of the same number: after a restart, in a container, later on."""

    model_config = ConfigDict(extra="ignore")

    boot_id: str
    """Of its machine's kernel."""
    pid_namespace: int
    start_ticks: int
    """Since that start."""

    @classmethod
    def of(cls, pid: int) -> "HoldingProcess":
        """Describe a process of this machine; raises ProcessLookupError if there is none."""
        return cls(
            boot_id=Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
            pid_namespace=Path("/proc/self/ns/pid").stat().st_ino,
            start_ticks=process(pid).start_ticks,
        )


class Holder(Frozen):
    """Holder of a node. Times are the node's, UTC, ISO 8601."""

    model_config = ConfigDict(extra="ignore")  # a node may have been reserved by another version of this program

    testbed: str
    owner: str
    """user@host"""
    pid: int
    process: HoldingProcess | None = None
    """None if it is not known."""
    reason: str
    heartbeat: bool
    """Renewed while its process lives; else it runs for its time."""
    since: str
    renewed: str
    until: str
    left_s: float
    """Seconds until it runs out; below zero since when it has."""

    def __str__(self) -> str:
        what = f"{self.owner} (pid {self.pid}) since {self.since} for {self.reason!r}"
        if self.left_s <= 0:
            return f"{what}, which ran out at {self.until}"
        return f"{what}, until {self.until}{' unless renewed' * self.heartbeat}"


@dataclass(frozen=True, slots=True)
class ReservableNode:
    """A machine that can be reserved."""

    connection: Connection
    python: str = "python3"
    directory: str | None = None
    """Where the record is; None for where all runs look for it."""
    of_controller: bool = False
    """The record is on this machine for something beyond it, and a reservation made on another machine lacks it: a run
    that joins such a reservation takes it where it is free."""

    def ask(self, do: str, **asked: object) -> dict[str, object]:
        """Do one operation of `sent.leases`; raises as `asking.ask`."""
        arguments = {"do": do, "directory": self.directory, **asked}
        return ask(self.connection, leases, arguments, python=self.python, within_s=20.0, root=do != "status")


def reservable_generator(
    name: str, address: str, connection: Connection, *, to_write: bool = True
) -> dict[str, ReservableNode]:
    """Return what to reserve of a generator that is driven over its API: a record on this machine, by name.

    `address`: URL of the API; testbeds that have the same one exclude each other.

    Returns:
        Empty where this process may not write the record; a warning is logged.
    """
    try:
        if to_write:
            connection.run(["true"], within_s=_ROOT_S, root=True)
    except CsitError as error:
        _log.debug("%s", error)
        _log.warning("%s cannot be reserved without root or sudo here: other runs are noticed while they send", address)
        return {}
    folder = hashlib.sha256(address.encode()).hexdigest()[:32]  # an address may be longer than the name of a folder
    node = ReservableNode(connection, sys.executable, f"{leases.DIRECTORY}/generators/{folder}", of_controller=True)
    return {f"{name} ({address})": node}


@dataclass(frozen=True, slots=True)
class Claim:
    """Request of a testbed: user, reason and duration."""

    testbed: str
    reason: str
    lease_s: float
    heartbeat: bool
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    owner: str = field(default_factory=lambda: f"{user()}@{platform.node()}")
    pid: int = field(default_factory=os.getpid)
    process: HoldingProcess = field(default_factory=lambda: HoldingProcess.of(os.getpid()))

    def words(self) -> dict[str, object]:
        """As `sent.leases` wants it."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "process": self.process.model_dump()}


def acquire(nodes: Mapping[str, ReservableNode], claim: Claim) -> tuple[str, ...]:
    """Reserve all nodes or none.

    Returns:
        A sentence for each node whose earlier lease had run out, or was that of a run that was killed here.

    Raises:
        InUse: One of them is reserved; the text says by whom, since when and why.
        CsitError: One cannot be asked.
    """
    lines = []
    with ExitStack() as taken:
        # All commands use the same order, so of two that want the same nodes one has the first and goes on.
        for name, node in sorted(nodes.items()):
            # Before it is asked: its answer may be lost on the way, and a signal may end the command.
            taken.callback(_give_up, node, claim)
            answer = node.ask("acquire", **claim.words())
            if not answer["won"] and _has_ended(holder := Holder.model_validate(answer["holder"]), claim):
                ended = [holder.owner, holder.pid, holder.since]
                answer = node.ask("acquire", ended=ended, **claim.words())
            if not answer["won"]:
                raise InUse(f"{name} is reserved by {Holder.model_validate(answer['holder'])}")
            if answer["took_over"]:
                lines.append(f"{name} is taken over from {Holder.model_validate(answer['took_over'])}")
        taken.pop_all()
    return tuple(lines)


def _give_up(node: ReservableNode, claim: Claim) -> None:
    with suppress(CsitError):
        node.ask("release", token=claim.token, owner=claim.owner)


def _has_ended(holder: Holder, claim: Claim) -> bool:
    """Whether a lease is that of a run by the same user whose process is known to be gone: it was killed.

    Containers and cloned machines share names, and numbers of processes say nothing about those of another kernel or
    PID namespace: then the lease runs out by itself.
    """
    if not holder.heartbeat or holder.owner != claim.owner or holder.process is None:
        return False
    theirs, mine = holder.process, claim.process
    if (theirs.boot_id, theirs.pid_namespace) != (mine.boot_id, mine.pid_namespace):
        return False
    return not Process(pid=holder.pid, start_ticks=theirs.start_ticks, command="").alive


def acquire_within(
    nodes: Mapping[str, ReservableNode], claim: Claim, wait_s: float, report: Callable[[str], None]
) -> tuple[str, ...]:
    """As `acquire`, and wait for others.

    Raises:
        NotReady: It was not given in time; the text says who has it.
        InUse: It is reserved, and `wait_s` is zero.
    """
    begin, reported = time.monotonic(), ""
    while True:
        try:
            return acquire(nodes, claim)
        except InUse as error:
            waited_s = time.monotonic() - begin
            if wait_s <= 0:
                raise
            if waited_s >= wait_s:
                raise NotReady(f"testbed {claim.testbed}", waited_s, str(error)) from error
            if str(error) != reported:
                reported = str(error)
                report(reported)
            # Of several that wait none should always come right after another.
            time.sleep(min(wait_s - waited_s, random.uniform(0.5, 1.0) * _ASK_AGAIN_S))  # noqa: S311


def renew(node: ReservableNode, token: str, lease_s: float) -> tuple[Holder | None, str]:
    """Renew the lease of a node.

    Returns:
        The renewed lease; None when it is no longer ours, and then what has become of it.
    """
    answer = node.ask("renew", token=token, lease_s=lease_s)
    return (Holder.model_validate(answer["holder"]), "") if answer["held"] else (None, str(answer["why"]))


def release(nodes: Mapping[str, ReservableNode], token: str) -> tuple[str, ...]:
    """Give nodes back.

    Returns:
        A sentence for each node that was not ours; empty when all were.

    Raises:
        CsitError: One cannot be asked; the others were given back.
    """
    lines, failed = [], []
    for name, node in sorted(nodes.items()):
        try:
            answer = node.ask("release", token=token, owner=f"{user()}@{platform.node()}")
        except CsitError as error:
            failed.append(f"{name}: {error}")
            continue
        if not answer["released"] and not (node.of_controller and answer["holder"] is None):
            lines.append(f"{name} is not reserved with this token: {answer['why']}")
    if failed:
        raise CsitError("; ".join(failed))
    return tuple(lines)


def break_open(nodes: Mapping[str, ReservableNode]) -> dict[str, Holder | None]:
    """Take nodes away from their holders; return these by node, None where there is none or its record is damaged."""
    owner, holders = f"{user()}@{platform.node()}", dict[str, Holder | None]()
    for name, node in sorted(nodes.items()):
        answer = node.ask("break", owner=owner)
        holders[name] = Holder.model_validate(answer["broken"]) if answer["broken"] else None
        if "damaged" in answer:
            _log.warning("%s: the record of the reservation was removed: %s", name, answer["damaged"])
    return holders


def holder_of(node: ReservableNode, token: str | None = None) -> tuple[Holder | None, bool]:
    """Holder of a node, also after that lease has expired; and whether it is the one with the token."""
    answer = node.ask("status", token=token)
    holder = answer["holder"]
    return (Holder.model_validate(holder) if holder else None), bool(answer["mine"])
