"""Features of network functions, vSwitch and machine, read once per second by one thread.

Packets in queues without a counter of their length are received packets minus sent and dropped ones. A veth port takes
a packet from its ring when its data thread does, and both ends count it then. So packets in the rings behind the
vSwitch have been received by one of its ports and not yet been sent by another. All ports are read in one answer of the
kernel, within microseconds.

A vSwitch that forwards in user space loses packets between its ports. With AF_XDP the rings of its sockets count how
many, and the sum closes. With packet sockets it is unknown: Open vSwitch sends through one socket that does not wait,
which the kernel refuses while too many of its packets are in the rings of ports, and throws the rest of a batch away.
Of 60,000 packets at 20 kpps into a router with 2 % of a CPU these were 38,292, and no counter had them. So there the
bytes that wait in the sockets stand for the queues.
"""

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, Controllers
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on, took, where
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.sockets.program_sockets import ReceivingSockets, SocketCounters
from resources.libraries.python.drivers.probes.sampler.accounts import (
    LEVELS,
    Account,
    Amounts,
    GroupAccount,
    MachineAccount,
    NeverThrottled,
    PortAccount,
    TaskAccount,
    VcpuAccount,
)
from resources.libraries.python.drivers.probes.sampler.tasks import PROC, Tasks, tasks_on
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.features import HOST, VSWITCH, FeatureSeries
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import is_vswitch

INTERVAL_S = 1.0
_PRIORITY = 2
"""Above the data threads, which in overload leave ordinary threads no time for seconds. A reading takes about 1 ms."""
_log = logging.getLogger(__name__)


Reading = tuple[float, Mapping[str, Amounts]]
"""When, in seconds since the beginning; what, by owner."""
_LATE_S = 0.5
"""A reading that comes later than this after a second's end is not that second's."""


def series_of(readings: Sequence[Reading]) -> tuple[FeatureSeries, ...]:
    """A value for each whole second: what a counter gained since the reading before, per second; a level as it is.

    If a reading is missing because it was too late, the second has None, and what was counted meanwhile is
    part of the next second's mean.

    `readings`: In order of time; the first one is the beginning.
    """
    if not readings:
        return ()
    seconds = int(readings[-1][0] + 1e-6)
    names = dict.fromkeys((owner, name) for _, row in readings for owner, found in row.items() for name in found)
    found = []
    for owner, name in names:
        points = [(at_s, row.get(owner, {}).get(name)) for at_s, row in readings]
        found.append(FeatureSeries(owner=owner, feature=name, values=_values(points, name, seconds)))
    return tuple(found)


def _values(points: Sequence[tuple[float, float | None]], name: str, seconds: int) -> tuple[float | None, ...]:
    values: list[float | None] = [None] * seconds
    before: tuple[float, float] | None = None
    for at_s, amount in points:
        second = int(at_s + 1e-6)
        if amount is None:
            continue
        if before is not None and 1 <= second <= seconds and at_s - second <= _LATE_S and at_s > before[0]:
            values[second - 1] = amount if name in LEVELS else max(0.0, (amount - before[1]) / (at_s - before[0]))
        before = (at_s, amount)
    return tuple(values)


_KIB = 1024


class SocketAccount:
    """The sockets of a vSwitch that forwards in user space, all together: what is lost there and counted by no port."""

    def __init__(self, sockets: ReceivingSockets) -> None:
        self._sockets = sockets

    def read(self) -> Amounts:
        """See Account. Nothing once the vSwitch has ended."""
        seen = self.seen()
        if seen is None:
            return {}
        # What a socket of AF_XDP refuses the port counts as dropped itself.
        found = {"socket_dropped_pps": float(seen.refused if seen.kept is None else seen.kept)}
        if seen.waiting_bytes is not None:
            found["queued_kib"] = seen.waiting_bytes / _KIB
        return found

    def seen(self) -> SocketCounters | None:
        """Counters of all sockets; None after the vSwitch has exited."""
        try:
            return self._sockets.read()
        except CsitError:
            return None

    def in_rings(self) -> int:
        """Packets that are in rings now; 0 once the vSwitch has ended."""
        try:
            return self._sockets.in_rings()
        except CsitError:
            return 0

    @property
    def closes(self) -> bool:
        """Whether all that is lost is known, so that what waits is what remains."""
        seen = self.seen()
        return seen is not None and seen.kept is not None

    def close(self) -> None:
        self._sockets.close()


class QueueAccount:
    """The queues behind a vSwitch, all together; empty when it is first read, but for rings of AF_XDP sockets.

    In those packets stay for long: Open vSwitch has the kernel look into one only when it puts the next packet there.
    What a port drops as it comes in was never received, unless it was for a socket of AF_XDP.

    `ports`: Of the vSwitch, without those that send copies.
    `sockets`: Of a vSwitch that forwards in user space by AF_XDP; closed by their creator.
    """

    def __init__(self, ports: PortAccount, sockets: SocketAccount | None = None) -> None:
        self._ports = ports
        self._sockets = sockets
        self._empty: float | None = None

    def read(self) -> Amounts:
        row = self._ports.read()
        lost = SocketCounters(0, 0) if self._sockets is None else self._sockets.seen()
        if not row or lost is None:
            return {}
        inside = row["rx_pps"] - row["tx_pps"] - row["tx_dropped_pps"] - lost.refused - (lost.kept or 0)
        if self._empty is None:
            self._empty = inside - (0 if self._sockets is None else self._sockets.in_rings())
        return {"queued_packets": max(0.0, inside - self._empty)}

    def close(self) -> None:
        self._ports.close()


def forwarding(plan: Plan, owner: str) -> tuple[str, ...]:
    """Interfaces between which a vSwitch forwards, without those that send copies.

    Nothing where one is a physical port: what waits in a NIC is counted nowhere, and dropped without being received.
    """
    copies = {name for segment in plan.segments for name in segment.copies}
    ends = [(link.medium, port) for link in plan.links for port in (link.a, link.b) if port.owner == owner]
    if any(medium is not Medium.VETH for medium, _ in ends):
        return ()
    return tuple(port.interface for _, port in ends if port.interface not in copies)


class LinuxFeatureSampler:
    """Fulfils `roles.watching.FeatureSampler` on this machine.

    `fabric`: Has the ports and their data threads; started before `start`.
    `cpu`: Where it reads: one without data threads. None: wherever it has its turn first.
    """

    def __init__(self, plan: Plan, fabric: Fabric, cpu: int | None = None, *, interval_s: float = INTERVAL_S) -> None:
        self.cpu_s = 0.0
        """Processor time of the last loop, in seconds; after `stop`."""
        self._cpu = cpu
        self._interval_s = interval_s
        self._plan = plan
        self._fabric = fabric
        self._accounts: list[tuple[str, Account]] = []
        self._readings: list[Reading] = []
        self._lasted_s = 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._open = ExitStack()
        self._tasks: Mapping[str, Tasks] = {}
        self._without: list[str] = []

    def start(self) -> None:
        self.stop()
        self._accounts = self._all_accounts()
        self._over.clear()
        self._thread = threading.Thread(target=self._run, name="features", daemon=True)
        begin = time.monotonic()
        self.cpu_s = self._lasted_s = 0.0
        self._readings = [(0.0, self._read())]
        self._begin = begin
        self._thread.start()

    def stop(self) -> tuple[FeatureSeries, ...]:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._open.close()
        self._accounts = []
        readings, self._readings = self._readings, []
        return series_of(readings)

    def facts(self) -> Mapping[str, str]:
        if not self._tasks:
            return {}
        facts = {"features": f"each {self._interval_s:g} s: accounts in /proc, control groups, interface counters"}
        if self._lasted_s:
            facts["reading features"] = f"{took(self.cpu_s, self._lasted_s)}, {where(self._cpu)}"
        helped = [name for name, tasks in self._tasks.items() if tasks.helpers]
        if helped:
            facts["charged"] = f"NAPI and vhost threads, to {', '.join(helped)}"
        if self._without:
            facts["features left out"] = "; ".join(self._without)
        return facts

    def _run(self) -> None:
        if not stay_on(self._cpu):
            self._cpu = None
        with suppress(OSError):  # an ordinary thread may come late, which the readings show
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        before_s = time.thread_time()
        due_s = self._interval_s
        while not self._over.wait(max(0.0, self._begin + due_s - time.monotonic())):
            self._readings.append((time.monotonic() - self._begin, self._read()))
            due_s = self._interval_s * (int((time.monotonic() - self._begin) / self._interval_s) + 1)
        self.cpu_s = time.thread_time() - before_s
        self._lasted_s = time.monotonic() - self._begin

    def _read(self) -> dict[str, Amounts]:
        found: dict[str, Amounts] = {}
        for owner, account in self._accounts:
            row = found.setdefault(owner, {})
            for name, amount in account.read().items():
                row[name] = row.get(name, 0.0) + amount
        return found

    def _all_accounts(self) -> list[tuple[str, Account]]:
        self._tasks = tasks_on(self._plan, self._fabric)
        self._without = []
        made: list[tuple[str, Account]] = [(HOST, MachineAccount())]
        groups = self._groups()
        for owner, tasks in self._tasks.items():
            name = VSWITCH if is_vswitch(owner) else owner
            made += [(name, account) for account in self._of_owner(owner, tasks, groups)]
        for _, account in made:
            self._open.callback(account.close)
        return made

    def _of_owner(self, owner: str, tasks: Tasks, groups: Controllers | None) -> Sequence[Account]:
        accounts: list[Account] = [TaskAccount(tasks)]
        if not tasks.processes and not tasks.helpers:
            self._without.append(f"CPU of {owner}: no process and no thread of it is to be seen")
        group = None if groups is None else group_of(tasks, groups)
        if group is None and (vcpus := tasks.vcpus()):
            accounts.append(VcpuAccount(vcpus))
        accounts.append(NeverThrottled() if group is None else GroupAccount(group))
        if indexes := self._indexes(port.interface for port in self._plan.ports(owner)):
            with suppress(CsitError):  # its namespace is gone, which its user reports
                accounts.append(self._ports(owner, indexes))
                accounts += self._queues(owner, tasks)
        return accounts

    def _queues(self, owner: str, tasks: Tasks) -> Iterator[Account]:
        if not is_vswitch(owner):
            return
        sockets = None
        if tasks.processes:  # it forwards in user space
            try:
                sockets = SocketAccount(ReceivingSockets(tasks.processes))
            except Unsupported as error:
                self._without.append(f"queues of {owner}: {error}")
                return
            if sockets.closes and any(segment.copies for segment in self._plan.segments):
                sockets.close()
                self._without.append(f"queues of {owner}: it sends copies, which its rings do not distinguish")
                return
            yield sockets
            if not sockets.closes:
                self._without.append(
                    f"queued_packets of {owner}: some of its losses are not counted; queued_kib is available"
                )
                return
        if indexes := self._indexes(forwarding(self._plan, owner)):
            yield QueueAccount(self._ports(owner, indexes), sockets)
        else:
            self._without.append(f"queues of {owner}: it has physical ports, whose queues are in their NICs")

    def _ports(self, owner: str, indexes: Sequence[int]) -> PortAccount:
        return PortAccount(self._fabric.run_inside(owner, Netlink), indexes)

    def _indexes(self, interfaces: Iterable[str]) -> list[int]:
        indexes = []
        for interface in interfaces:
            with suppress(KeyError):  # one that a program of user space has taken from the kernel
                indexes.append(self._fabric.index(interface))
        return indexes

    def _groups(self) -> Controllers | None:
        try:
            return cgroups.discover()
        except Unsupported as error:
            self._without.append(f"control groups: {error}")
            return None


def group_of(tasks: Tasks, controllers: Controllers, root: Path = PROC, mine: int | None = None) -> ControlGroup | None:
    """The control group that was made for an owner: of one of its threads, and neither ours nor the root."""
    own = _groups_of(root / str(os.getpid() if mine is None else mine))
    for task in (*tasks.processes, *tasks.helpers):
        for key, name in _groups_of(root / str(task)).items():
            wanted = key == "" if controllers.version == 2 else "cpu" in key.split(",")
            if wanted and name not in ("/", own.get(key)):
                return ControlGroup(controllers, name.strip("/"))
    return None


def _groups_of(place: Path) -> dict[str, str]:
    """Name of a task's group by controllers; those of version 2 are empty."""
    with suppress(OSError):
        rows = (line.split(":", 2) for line in (place / "cgroup").read_text(encoding="utf-8").splitlines())
        return {row[1]: row[2] for row in rows}
    return {}
