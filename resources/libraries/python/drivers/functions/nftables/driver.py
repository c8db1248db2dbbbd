"""Network functions as Linux routers with rules of nftables, in a network namespace each or in guests."""

import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import MERGED, NamespaceFunctions, passed_by
from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.drivers.functions.nftables.rulesets import TABLE, family, ruleset_of
from resources.libraries.python.drivers.functions.vm.applications import Application
from resources.libraries.python.drivers.host.cpu.thread_scheduling import go_first
from resources.libraries.python.drivers.host.kernel_files import number_of
from resources.libraries.python.drivers.host.links.routing import configure_routers, router_steps
from resources.libraries.python.drivers.host.programs.disturbances import Steps
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import ConnectionTable, Deletion
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.testbed.nodes import DutNode

_AGAIN = 3
"""Deletions of entries that packets on their way have made since the last one."""
_SETTINGS = Path("/proc/sys/net/netfilter")
_STATISTICS = Path("/proc/thread-self/net/stat/nf_conntrack")
_TIMEOUTS = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream", "nf_conntrack_tcp_timeout_time_wait")
_NETFILTER = 12
_DELETE = 1 << 8 | 2
"""IPCTNL_MSG_CT_DELETE of NFNL_SUBSYS_CTNETLINK; without a tuple it deletes all entries of the namespace."""
_REQUEST_AND_ACK = 5
_ACK = 2
_WITHIN_S = 60.0
_EMPTY_S = 0.2
"""Entries in use by a packet on its way are freed a moment later."""
_POLL_S = 0.0005


def connection_table() -> ConnectionTable:
    """Return the state of the connection tracking in the network namespace that the calling thread is in.

    Raises:
        Unsupported: The kernel tracks no connections here.
    """
    count = _entries()
    try:
        found = read_statistics(_STATISTICS.read_text(encoding="ascii"))
    except (OSError, ValueError, IndexError):  # counters of a kernel that does not have them, or not in this form
        found = {}
    return ConnectionTable(
        entries=count,
        limit=_number("nf_conntrack_max"),
        buckets=_number("nf_conntrack_buckets"),
        timeout_s=_number(_TIMEOUTS[0]),
        failed=found.get("insert_failed"),
        dropped=found.get("drop"),
        evicted=found.get("early_drop"),
    )


def _entries() -> int:
    """Return the number of entries in that table.

    Raises:
        Unsupported: The kernel tracks no connections here.
    """
    count = _number("nf_conntrack_count")
    if count is None:
        raise Unsupported(f"the kernel tracks no connections: there is no {_SETTINGS / 'nf_conntrack_count'}")
    return count


def read_statistics(text: str) -> Mapping[str, int]:
    """Sums over CPUs by name of the counter, from the kernel's table of hexadecimal numbers with a line per CPU."""
    names, *rows = (line.split() for line in text.splitlines())
    return {name: sum(int(row[place], 16) for row in rows) for place, name in enumerate(names) if name != "entries"}


def _number(name: str) -> int | None:
    return number_of(_SETTINGS / name)


def hold_timeouts(timeout_s: int) -> ConnectionTable:
    """Let entries of UDP and of closed TCP connections expire after some seconds without a packet; return the table.

    Raises:
        CsitError: The kernel refused.
    """
    for name in _TIMEOUTS:
        try:
            (_SETTINGS / name).write_text(str(timeout_s), encoding="ascii")
        except OSError as error:
            raise CsitError(f"{_SETTINGS / name} cannot be set to {timeout_s}: {error.strerror}") from error
    return connection_table()


def delete_entries() -> Deletion:
    """Delete all entries of that table, in real time: what else runs on the machine would be counted as time of it.

    To be called by a thread that ends afterwards: it goes before all ordinary ones.

    Raises:
        Unsupported: The kernel has no sockets for this, or tracks no connections.
        CsitError: It refused.
    """
    go_first()
    count = _entries()
    request = struct.pack("=IHHIIBBH", 20, _DELETE, _REQUEST_AND_ACK, 1, 0, 0, 0, 0)
    try:
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER)
    except OSError as error:
        raise Unsupported(f"the kernel deletes no connections on request: {error.strerror}") from error
    with netlink:
        netlink.settimeout(_WITHIN_S)
        began_ns = time.monotonic_ns()
        try:
            netlink.send(request)
            answer = netlink.recv(1 << 12)
        except OSError as error:
            raise CsitError(f"connections cannot be deleted: {error}") from error
        ended_ns = time.monotonic_ns()
    if struct.unpack_from("=H", answer, 4)[0] == _ACK and (code := -struct.unpack_from("=i", answer, 16)[0]):
        raise CsitError(f"the kernel does not delete connections: {os.strerror(code)}")
    return Deletion(entries=count, left=_entries(), began_ns=began_ns, ended_ns=ended_ns)


def entries_left() -> int:
    """Entries that are left after a deletion: 0, or what is still there 0.2 s later."""
    deadline = time.monotonic() + _EMPTY_S
    while (left := _entries()) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return left


class NftablesRouters(NamespaceFunctions[NfPlan]):
    """NFs that route IPv4 in the kernel by rules for it."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions)
        self._ruleset = ruleset_of(functions[0].kind, node)
        self._rows = {owner: [each for each in functions if each.name == owner] for owner in self._owners}
        self._does = self._ruleset.about

    def start(self) -> None:
        """Give every NF its rules, then its addresses, neighbours and routes: no packet ever passes without rules.

        Raises:
            Unsupported: There is no nft.
            CsitError: The kernel refused something.
        """
        self._version = program.version()
        for owner, row in self._rows.items():
            try:
                self._fabric.run_inside(owner, partial(program.load, self._ruleset.text(row)))
            except CommandFailed as error:
                raise CsitError(f"the rules of {owner} were refused: {error.stderr}") from error
            configure_routers(row, self._fabric)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        row = self._rows.get(target)
        return router_steps(event, row, self._fabric, partial(self._reload, target, row)) if row else None

    def _reload(self, owner: str, row: Sequence[NfPlan]) -> None:
        rules = f"delete table {family(row)} {TABLE}\n{self._ruleset.text(row)}"
        self._fabric.run_inside(owner, partial(program.load, rules))

    def _looked_up(self, owner: str) -> int:
        """Packets that went through the rules of an NF since it was made."""
        found = self._fabric.run_inside(owner, program.counters)
        if self._ruleset.counter not in found:
            raise CsitError(f"there is no counter {self._ruleset.counter}")
        return found[self._ruleset.counter]

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        return self._fabric.run_inside_each(self._tracking, connection_table)

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        return self._fabric.run_inside_each(self._tracking, partial(hold_timeouts, timeout_s))

    def delete_connections(self) -> Mapping[str, Deletion]:
        """Delete the entries of all namespaces, and wait until they are freed.

        One table after another, by one thread: the kernel's lock of connections is that of all namespaces, and
        threads that wait for it use a CPU each without deleting anything.

        A packet that is still on its way makes an entry after the deletion: then all are deleted again, and the times
        are those of the first deletion.
        """
        deleted = self._fabric.run_inside_each(self._tracking, delete_entries)
        left = self._fabric.run_inside_each(self._tracking, entries_left)
        for _ in range(_AGAIN):
            if not any(left.values()):
                break
            self._fabric.run_inside_each(self._tracking, delete_entries)
            left = self._fabric.run_inside_each(self._tracking, entries_left)
        return {owner: row.model_copy(update={"left": left[owner]}) for owner, row in deleted.items()}

    @property
    def _tracking(self) -> Sequence[str]:
        return [owner for owner, row in self._rows.items() if row[0].kind.driver.tracks_connections]

    def problems(self) -> tuple[str, ...]:
        """Ports that have lost their data thread or their carrier, NFs that have lost their rules."""
        return super().problems() or tuple(self._passed_by())

    def _passed_by(self) -> Iterator[str]:
        for owner in self._owners:
            try:
                looked_up = self._looked_up(owner)
                received = self._received(owner)
            except CsitError as error:
                yield f"the rules of {owner} cannot be read: {error}"
                continue
            if passed_by(looked_up, received, merged=MERGED):
                yield f"{owner} received {received:,} packets, and only {looked_up:,} went through its rules"


def application(function: NfPlan, node: DutNode, _: int) -> Application:
    """Return the rules of an NF."""
    ruleset = ruleset_of(function.kind.in_guest or function.kind, node)
    return Application(ruleset.about, program.version, rules=ruleset.text([function]), counter=ruleset.counter)
