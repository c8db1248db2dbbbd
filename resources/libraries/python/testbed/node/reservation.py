"""The reservation of a testbed: all of its nodes with one token, or none."""

import fcntl
import hashlib
import logging
import os
import platform
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict

from resources.libraries.python.drivers.host.ownership.processes import user
from resources.libraries.python.errors import CsitError, InUse, NotReady
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.redaction import keep_secret
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.scripts import leases

VARIABLE = "CSIT_RESERVATION"
"""Of the environment: the token of a reservation that runs join."""
_ASK_AGAIN_S = 5.0
_ROOT_S = 20.0
_LOCKS = "/run/lock"
_log = logging.getLogger(__name__)


class Holder(Frozen):
    """Holder of a node. Times are the node's, UTC, ISO 8601."""

    model_config = ConfigDict(extra="ignore")  # a node may have been reserved by another version of this program

    testbed: str
    owner: str
    """user@host"""
    reason: str
    since: str
    until: str
    left_s: float
    """Seconds until it runs out; below zero since when it has."""

    def __str__(self) -> str:
        what = f"{self.owner} since {self.since} for {self.reason!r}"
        return f"{what}, which ran out at {self.until}" if self.left_s <= 0 else f"{what}, until {self.until}"


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
        """Do one operation of `scripts.leases`; raises as `asking.ask`."""
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
        _log.warning("%s cannot be reserved without root or sudo here", address)
        return {}
    folder = f"{leases.DIRECTORY}/generators/{_folder_of(address)}"
    return {f"{name} ({address})": ReservableNode(connection, sys.executable, folder, of_controller=True)}


def _folder_of(address: str) -> str:
    """An address may be longer than the name of a folder."""
    return hashlib.sha256(address.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Claim:
    """Request of a testbed: user, reason and duration."""

    testbed: str
    reason: str
    lease_s: float
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    owner: str = field(default_factory=lambda: f"{user()}@{platform.node()}")

    def words(self) -> dict[str, object]:
        """As `scripts.leases` wants it."""
        return {name: getattr(self, name) for name in self.__slots__}


def acquire(nodes: Mapping[str, ReservableNode], claim: Claim) -> tuple[str, ...]:
    """Reserve all nodes or none.

    Returns:
        A sentence for each node whose earlier lease had run out.

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
            if not answer["won"]:
                raise InUse(f"{name} is reserved by {Holder.model_validate(answer['holder'])}")
            if answer["took_over"]:
                lines.append(f"{name} is taken over from {Holder.model_validate(answer['took_over'])}")
        taken.pop_all()
    return tuple(lines)


def _give_up(node: ReservableNode, claim: Claim) -> None:
    with suppress(CsitError):
        node.ask("release", token=claim.token, owner=claim.owner)


def acquire_within(
    nodes: Mapping[str, ReservableNode],
    claim: Claim,
    wait_s: float,
    report: Callable[[str], None],
    refuse_in_use: Callable[[], None],
) -> tuple[str, ...]:
    """As `acquire`, and wait for others and for runs.

    `refuse_in_use`: Raises InUse while a run is alive on a node.

    Raises:
        NotReady: It was not given in time; the text says who has it.
        InUse: It is reserved, and `wait_s` is zero.
    """
    begin, reported = time.monotonic(), ""
    while True:
        try:
            refuse_in_use()
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


def join(nodes: Mapping[str, ReservableNode]) -> bool:
    """Whether the environment has the token of a reservation of all nodes; False where all are free and there is none.

    Raises:
        InUse: Another user has one, or the token is not that of one.
        CsitError: One cannot be asked.
    """
    token = os.environ.get(VARIABLE) or None
    if token is not None:
        keep_secret(token)
    for name, node in sorted(nodes.items()):
        holder, ours = holder_of(node, token)
        if ours:
            continue
        if holder is not None and holder.left_s > 0:
            raise InUse(f"{name} is reserved by {holder}")
        if token is not None and not node.of_controller:
            raise InUse(f"{name} is not reserved with the token in {VARIABLE}: {holder or 'it is free'}")
    return token is not None


@contextmanager
def sole_use(name: str, address: str) -> Iterator[None]:
    """Keep other runs on this machine from a generator that is driven over its API, while this process lives.

    Raises:
        InUse: Another run has it.
    """
    path = Path(f"{_LOCKS}/csit-density-{_folder_of(address)}.lock")
    # Another user may have put a link there, or a pipe whose other end is never opened.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        _log.warning("%s cannot be locked (%s): other runs are noticed while they send", address, error.strerror)
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InUse(f"{name} ({address}) is in use by another run on this machine") from error
        yield
    finally:
        os.close(descriptor)


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
