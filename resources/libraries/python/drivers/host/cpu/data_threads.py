"""Data threads: the kernel threads that receive from ports, made, found, pinned to their planned CPUs and checked."""

import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.links import namespace_syscalls
from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.plan import Port

_NAME = re.compile(r"napi/(.+?)(?:-\d*)?$")
"""`napi/<interface>-<id>`; kernels before 5.17 show its first 15 characters only."""
_SHOWN = 15
_DEADLINE_S = 0.5


def find(interfaces: Iterable[str], root: Path = Path("/proc")) -> dict[str, int]:
    """Thread ids by interface, in one pass over /proc.

    Raises:
        Unsupported: Some are not to be seen, as in a container with its own PID namespace.
        CsitError: Another interface has the same name.
    """
    wanted = set(interfaces)
    found: dict[str, list[int]] = {}

    def missing() -> str:
        found.clear()
        found.update(_scan(wanted, root))
        left = sorted(wanted - found.keys())
        return f"none for {', '.join(left[:3])}{f' and {len(left) - 3} more' if len(left) > 3 else ''}" if left else ""

    def missing_or_ending() -> str:  # the thread of a port that was removed just now still has its name
        return missing() or next((name for name, threads in found.items() if len(threads) > 1), "")

    try:
        wait_until("data threads (kernel threads napi/...)", missing_or_ending, _DEADLINE_S)
    except NotReady as error:
        if not missing():
            raise CsitError(
                f"two kernel threads are called napi/{error.last_seen}: another namespace has such a port"
            ) from error
        raise Unsupported(
            f"data threads cannot be pinned: {error.last_seen} in /proc; kernel threads are visible in the root PID "
            "namespace only, for containers that is --pid=host"
        ) from error
    return {name: threads[0] for name, threads in found.items()}


def find_all(names: Mapping[str, str], root: Path = Path("/proc")) -> dict[str, tuple[int, ...]]:
    """Thread ids of physical ports by interface. One may have several queues, and so several threads.

    A thread has the name that its interface had when the thread was created: the original one or the one in use.

    `names`: Original interface names by the names in use.
    `root`: Where processes are; another one for tests.

    Raises:
        Unsupported: A port has none that is to be seen.
    """
    known = {text: interface for interface, device in names.items() for text in (interface, device)}
    found: dict[str, tuple[int, ...]] = {}

    def missing() -> str:
        found.clear()
        for entry in os.listdir(root):  # noqa: PTH208 - as below
            if entry.isdigit() and (interface := _interface(name(int(entry), root), known)):
                found[interface] = (*found.get(interface, ()), int(entry))
        left = [f"{interface} ({device})" for interface, device in sorted(names.items()) if interface not in found]
        return f"none for {', '.join(left)}" if left else ""

    try:
        wait_until("data threads (kernel threads napi/...)", missing, _DEADLINE_S)
    except NotReady as error:
        raise Unsupported(
            f"data threads of physical ports cannot be pinned: {error.last_seen} in /proc. If the interface was "
            "renamed after threaded NAPI was enabled, unbind its driver and bind it again"
        ) from error
    return found


def _interface(thread: str, known: Mapping[str, str]) -> str | None:
    """The interface in use that a thread of that name belongs to; None for another thread."""
    if (match := _NAME.match(thread)) and match[1] in known:
        return known[match[1]]
    if len(thread) == _SHOWN:
        return next((interface for text, interface in known.items() if f"napi/{text}-".startswith(thread)), None)
    return None


def _scan(wanted: set[str], root: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for entry in os.listdir(root):  # noqa: PTH208 - names are enough, and there are many
        if entry.isdigit() and (match := _NAME.match(name(int(entry), root))) and match[1] in wanted:
            found.setdefault(match[1], []).append(int(entry))
    return found


def running(interfaces: Iterable[str], root: Path = Path("/proc")) -> list[str]:
    """Return the interfaces that have a data thread, also one of another program."""
    return sorted(_scan(set(interfaces), root))


def name(thread: int, root: Path = Path("/proc")) -> str:
    """The name of a thread; empty when it is gone."""
    try:
        descriptor = os.open(f"{root}/{thread}/comm", os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 64).decode(errors="replace").rstrip("\n")
    except OSError:  # it ended between the two
        return ""
    finally:
        os.close(descriptor)


def pin(thread: int, cpu: int) -> None:
    """Let a thread run on one CPU only.

    Raises:
        Unsupported: The kernel refuses.
    """
    try:
        os.sched_setaffinity(thread, {cpu})
    except OSError as error:
        raise Unsupported(f"data thread {name(thread)} cannot be pinned to CPU {cpu}: {error.strerror}") from error


def make_realtime(thread: int, priority: int = 1) -> None:
    """Let a thread go before every ordinary one on its CPU (SCHED_FIFO, by default with the lowest priority).

    Raises:
        Unsupported: The kernel refuses.
    """
    try:
        os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        raise Unsupported(f"data thread {name(thread)} cannot run at SCHED_FIFO: {error.strerror}") from error


def make_ordinary(process: int) -> None:
    """Let no thread of a process go before every ordinary one any more (SCHED_OTHER).

    Raises:
        Unsupported: The kernel refuses.
    """
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(ProcessLookupError):  # it has ended in the meantime
                if os.sched_getscheduler(int(task.name)) == os.SCHED_FIFO:
                    os.sched_setscheduler(int(task.name), os.SCHED_OTHER, os.sched_param(0))
    except OSError as error:
        raise Unsupported(f"threads of process {process} cannot leave SCHED_FIFO: {error.strerror}") from error


def affinity(threads: Mapping[str, Iterable[int]]) -> dict[str, frozenset[int]]:
    """CPUs on which the threads of each port may really run; empty where one of them is gone."""
    read: dict[str, frozenset[int]] = {}
    for interface, row in threads.items():
        read[interface] = frozenset()
        with suppress(ProcessLookupError):
            read[interface] = frozenset(cpu for thread in row for cpu in os.sched_getaffinity(thread))
    return read


def wait_gone(threads: Mapping[str, int], within_s: float = 30.0) -> None:
    """Wait until the threads have ended.

    Raises:
        NotReady: Some have not.
    """
    left = dict(threads)

    def missing() -> str:
        for interface in list(left):
            if not name(left[interface]).startswith("napi/"):
                del left[interface]
        return f"{len(left)} left, {next(iter(left))} among them" if left else ""

    wait_until("end of data threads", missing, within_s)


class DataThreads:
    """Kernel threads that receive from ports: one for a port that was made here, one or several for a physical one."""

    def __init__(self) -> None:
        self._physical: frozenset[str] = frozenset()
        self._found: dict[str, tuple[int, ...]] = {}
        self._receivers: dict[str, str] = {}

    def place(self, ports: Mapping[str, Sequence[Port]], cores: CoreMap, physical: Mapping[str, str]) -> None:
        """Find the threads of ports and let each run on its planned CPU, before every ordinary thread.

        `physical`: Physical ports: original interface names by the names in use.

        Raises:
            Unsupported: They are not to be seen, or cannot be pinned.
        """
        self._physical = frozenset(physical)
        self._receivers = {port.interface: port.receiver for row in ports.values() for port in row}
        made = find(name for name in self._receivers.values() if name not in self._physical)
        self._found = {name: (thread,) for name, thread in made.items()} | find_all(physical)
        for owner, row in ports.items():
            cpus = cores.cpus(owner)
            # Ports on a trunk have one receive thread, and so the same data thread in the plan.
            for receiver, data_thread in {port.receiver: port.data_thread for port in row}.items():
                for thread in self._found[receiver]:
                    pin(thread, cpus[data_thread])
                    # The generator's share its core with its sending loop, which does not sleep in a trial: as ordinary
                    # threads they would get their turns late, and their rings would overflow. Those of the system under
                    # test share cores with each other where it is oversubscribed, and ordinary threads then preempt
                    # each other with work left to do. Measured side by side on 2 CPUs, 64 B, 0.5 s trials with a loss
                    # of 1e-4 at most: CSC 1x3 74 kpps ordinary and 188 kpps in real time, CSC 2x4 66 and 261 kpps; at
                    # overload CSC 1x8 gave back 85 and 159 kpps.
                    make_realtime(thread)

    def renew(self, ports: Sequence[Port], cpus: Sequence[int]) -> None:
        """Find and place the threads of virtual ports that have been brought up again: the kernel has made new ones.

        Raises:
            Unsupported: As `place`.
        """
        made = find({port.receiver for port in ports})
        self._found |= {name: (thread,) for name, thread in made.items()}
        for port in ports:
            pin(made[port.receiver], cpus[port.data_thread])
            make_realtime(made[port.receiver])

    def move(self, interfaces: Iterable[str], cpu: int) -> None:
        """Pin the threads of ports to a CPU.

        Raises:
            Unsupported: The kernel refuses.
        """
        for receiver in {self._receivers[name] for name in interfaces}:
            for thread in self._found[receiver]:
                pin(thread, cpu)

    def ids(self) -> dict[str, tuple[int, ...]]:
        """Thread ids by receiving device."""
        return dict(self._found)

    def affinity(self, interfaces: Iterable[str]) -> dict[str, frozenset[int]]:
        """CPUs on which the threads of ports may really run; empty where one of them is gone."""
        receivers = {name: self._receivers[name] for name in interfaces if name in self._receivers}
        return affinity({name: self._found[receiver] for name, receiver in receivers.items()})

    def wait_gone(self) -> None:
        """Wait until the threads of ports that were made here have ended.

        Those of physical ports may outlive their use: it is their driver's affair when they end.

        Raises:
            NotReady: Some have not.
        """
        wait_gone({name: row[0] for name, row in self._found.items() if name not in self._physical})


def receive_by_napi(netlink: Netlink, interface: str) -> None:
    """Let a port receive through NAPI, which can have a thread, and not in the context of the sender.

    Two switches are needed: generic receive offload on at the receiver, and segmentation offload off at the sender,
    for veth passes NAPI by when the sender could have segmented (veth_skb_is_eligible_for_gro). A thread is there
    either way; it just never runs. Both are set at each port, as each sends and receives.

    `netlink`: opened in the port's namespace.

    Raises:
        CommandFailed: The kernel refused.
    """
    ethtool.set_offload(netlink.socket, interface, "gro", on=True)
    ethtool.set_offload(netlink.socket, interface, "tso", on=False)


def enable_threads(ports: Iterable[tuple[Namespace, Iterable[str]]]) -> None:
    """Give every port's NAPI a kernel thread. To be called by a thread that ends afterwards.

    `ports`: Interfaces by namespace, up and received by NAPI (before that there is none).

    Raises:
        Unsupported: The kernel has no threaded NAPI (before 5.12), or mounts are not allowed here.
        CommandFailed: The kernel refused for an interface.
    """
    namespace_syscalls.own_mounts()
    for namespace, interfaces in ports:
        with namespace_syscalls.sysfs_of(namespace.descriptor, namespace.name) as root:
            for interface in interfaces:
                try:
                    namespace_syscalls.set_threaded(root, interface, "1")
                except OSError as error:
                    raise _refused(interface, error) from error


def _refused(interface: str, error: OSError) -> Unsupported | CommandFailed:
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.EACCES):
        return Unsupported(f"{interface} cannot have a data thread (threaded NAPI): {error.strerror}")
    return CommandFailed(("write", str(error.filename or interface)), error.errno or 1, str(error.strerror))
