"""Network functions as DPDK testpmd: a process per NF, polling the NF's ports on its planned cores."""

import logging
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import NamespaceFunctions
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.memory import require_huge_pages
from resources.libraries.python.drivers.host.cpu.thread_scheduling import favour, threads_of
from resources.libraries.python.drivers.host.links.link_devices import foreign_macs
from resources.libraries.python.drivers.host.links.rtnetlink_messages import set_mac
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.disturbances import MOVED, Steps, process_steps
from resources.libraries.python.drivers.host.sockets.socket_paths import folder_of, socket_of
from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan, Port
from resources.libraries.python.model.testbed.nodes import DutNode

PROGRAM = "dpdk-testpmd"
_PLAIN_FRAME_BYTES = 1518
_BLOCK_BYTES = 65536
_RING_BYTES = 4 * 2**20
"""Of each ring of a port: 2,048 frames of up to 1518 B, at 100 kpps the turns of others on an oversubscribed core."""
_MBUFS = 16384
_MEMORY_MB = 128
"""Holds the mbufs of plain frames (36 MB) and what DPDK needs itself."""
_JUMBO_MEMORY_MB = 320
_VHOST_RING = 1024
"""Descriptors of a queue of shared memory, the most that virtio has."""
_HEADROOM_BYTES = 128
_FOLDER = "testpmd"
_READY_S = 30.0
_READY_MORE_S = 2.0
"""For each further NF: they start together, on as many cores as there are."""
_END_S = 10.0
_LCORE = re.compile(r"worker-?(\d+)$")
"""Threads are called `rte-worker-1`; in other versions `lcore-worker-1` or `dpdk-worker1`."""
_log = logging.getLogger(__name__)
_READY = "Press enter to exit"
_FORWARDING = re.compile(r"^Logical Core (\d+) .*forwards packets", re.MULTILINE)
_STREAM = re.compile(r"^\s+RX P=(\d+)/Q=(\d+)")
_VERSION = re.compile(r"(?<!\d)(\d++\.\d+\S*)")


def command(
    function: NfPlan,
    cores: CoreMap,
    *,
    ports: Sequence[Port] = (),
    largest_frame_bytes: int = _PLAIN_FRAME_BYTES,
    vhost: Mapping[str, Path] | None = None,
) -> list[str]:
    """The argument vector of an NF.

    It forwards from port 0 (left) to port 1 (right) and back, writes its own MAC as source and the next hop's as
    destination, and leaves the rest of a frame as it is.

    `ports`: Its ports, left first, with their receive queues; none where each has one.
    `largest_frame_bytes`: The largest L2 frame that will be sent, FCS included.
    `vhost`: Sockets by interface, of those that share memory with the vSwitch, which connects to them. Then memory is
      of huge pages.
    """
    data = cores.cpus(function.name)
    main = cores.cpus(function.name, ThreadRole.MAIN)[0]
    plain = largest_frame_bytes <= _PLAIN_FRAME_BYTES
    queues = min((len(port.queues) for port in ports), default=1)
    devices = _by_side(function, 2048 if plain else 16384, vhost or {}, queues)
    words = [PROGRAM, "-v", f"--lcores={_lcores(main, _by_stream(data, ports))}", "--main-lcore=0"]
    # Of shared memory the vSwitch maps all, so it is few and large pages, and no files that would be left. Ports of the
    # kernel need no huge pages, which a laptop has not. PCI devices are not ours.
    words += ["--in-memory", "--single-file-segments"] if vhost else ["--no-huge", "--no-shconf"]
    words += ["-m", str(memory_mb(largest_frame_bytes)), "--no-pci", "--no-telemetry", f"--file-prefix={function.name}"]
    words += [f"--vdev={device}" for device in devices]
    words += ["--", f"--nb-cores={min(2 * queues, len(data))}", f"--rxq={queues}", f"--txq={queues}"]
    words += ["--forward-mode=mac"]
    words += [f"--eth-peer=0,{function.left.route.mac}", f"--eth-peer=1,{function.right.route.mac}"]
    words += [f"--total-num-mbufs={_MBUFS}", "--no-mlockall"]
    if not plain:
        # AF_PACKET copies a frame into one mbuf and does not look whether it fits.
        words += [f"--mbuf-size={largest_frame_bytes + _HEADROOM_BYTES + 64}"]
        words += [f"--max-pkt-len={largest_frame_bytes}"]
    return words


def memory_mb(largest_frame_bytes: int) -> int:
    """Memory for the packet buffers of an NF."""
    return _MEMORY_MB if largest_frame_bytes <= _PLAIN_FRAME_BYTES else _JUMBO_MEMORY_MB


def _by_stream(data: Sequence[int], ports: Sequence[Port]) -> Sequence[int]:
    """CPUs of data threads in the order in which testpmd gives its streams to lcores.

    A stream is a queue of a port, and those of all first queues come first: so that lcore 1 is the thread that is
    planned for the first one, and so on. Threads without a queue are last.
    """
    streams = [
        port.queues[queue] for queue in range(max((len(port.queues) for port in ports), default=0)) for port in ports
    ]
    return [data[thread] for thread in dict.fromkeys((*streams, *range(len(data))))]


def _lcores(main: int, data: Sequence[int]) -> str:
    """DPDK's lcore 0 is the main thread, 1 and up the data threads in order: `0@4,1@6,2@7`."""
    return ",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate((main, *data)))


def _by_side(function: NfPlan, frame_bytes: int, vhost: Mapping[str, Path], queues: int) -> list[str]:
    ring = f"qpairs=1,qdisc_bypass=1,blocksz={_BLOCK_BYTES},framesz={frame_bytes},framecnt={_RING_BYTES // frame_bytes}"
    sides = (function.left, function.right)
    return [
        f"virtio_user{port},path={vhost[side.name]},server=1,queues={queues},queue_size={_VHOST_RING},mac={side.mac}"
        if side.name in vhost
        else f"net_af_packet{port},iface={side.name},{ring}"
        for port, side in enumerate(sides)
    ]


def not_ready(output: str) -> str:
    """Missing conditions until it forwards; empty when it does."""
    if _READY in output:
        return ""
    return "it does not forward yet"


def receiving_lcores(output: str) -> dict[tuple[int, int], int]:
    """Which lcore receives from each queue, by numbers of port and queue."""
    found: dict[tuple[int, int], int] = {}
    lcore: int | None = None
    for line in output.splitlines():
        if match := _FORWARDING.match(line):
            lcore = int(match[1])
        elif (match := _STREAM.match(line)) and lcore is not None:
            found[int(match[1]), int(match[2])] = lcore
    return found


def version(output: str) -> str:
    """DPDK's version in what `dpdk-testpmd -v` prints: `EAL: RTE Version: 'DPDK 22.11.11'`."""
    line = next((line for line in output.splitlines() if "Version" in line), "")
    match = _VERSION.search(line)
    return match[0].strip("'") if match else "unknown version"


class Testpmds(NamespaceFunctions[NfPlan]):
    """NFs that forward in user space.

    Of shared memory only the vSwitch's end counts packets.
    """

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions)
        self._plan, self._machine, self._groups = context.plan, context.lock, context.groups
        self._largest_frame_bytes = context.largest_frame_bytes
        self._folder: Path | None = None
        self._daemons: dict[str, Daemon] = {}
        self._vhost = {
            link.b.interface: link
            for link in context.plan.links
            if link.medium is Medium.VHOST_USER and link.b.owner in self._owners
        }
        """Links of shared memory by the NFs' interfaces."""
        self._lcores: dict[str, int] = {}
        """Thread ids of the lcores by the receive queue that they poll."""

    def start(self) -> None:
        """Start all of them together, and wait until each says that it forwards.

        Raises:
            CsitError: One ended; the text has its last words.
            NotReady: One does not forward in time.
            Unsupported: Its threads cannot be given their place.
        """
        if self._vhost:
            each_mb = memory_mb(self._largest_frame_bytes)
            require_huge_pages("testpmd over vhost-user", each_mb * len(self._functions), self._plan.cores.numa_node)
        self._folder = self._machine.folder(_FOLDER)
        for socket in self._sockets().values():
            socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            socket.unlink(missing_ok=True)
        for function in self._functions:
            self._start(function, self._folder)
        within_s = _READY_S + _READY_MORE_S * len(self._functions)
        for function in self._functions:
            self._wait_forwarding(function, within_s)
            self._hide_from_kernel(function)
        for thread in set(self._lcores.values()):
            favour(thread)
        _log.info("%d testpmd forward", len(self._functions))

    def _wait_forwarding(self, function: NfPlan, within_s: float) -> None:
        daemon = self._daemons[function.name]
        daemon.wait_for("forwarding", lambda: not_ready(daemon.output()), within_s)
        self._find_threads(function)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        function = next((each for each in self._functions if each.name == target), None)
        if function is None:
            return None
        if event is PartEvent.MOVE:
            return Steps(MOVED, partial(self._fabric.move_threads, target, self._threads(function)))
        return process_steps(event, target, lambda: [self._daemons[target].pid], partial(self._restart, function))

    def _restart(self, function: NfPlan) -> None:
        """Start an NF again that was killed, with the same threads and ports.

        Raises:
            CsitError: It ended, or its ports cannot be set up.
            NotReady: It does not forward in time.
        """
        self._daemons[function.name].wait_end(_END_S)
        sides = (function.left, function.right)
        planned = [side for side in sides if side.name not in self._vhost]
        index = self._fabric.index
        # It reads the MAC addresses of its ports when it starts.
        self._fabric.change(function.name, [set_mac(side.name, index(side.name), side.mac) for side in planned])
        for name, socket in self._sockets().items():
            if name in {side.name for side in sides}:
                socket.unlink(missing_ok=True)
        assert self._folder is not None  # noqa: S101 - started
        self._start(function, self._folder)
        self._wait_forwarding(function, _READY_S)
        self._hide_from_kernel(function)
        self._groups.take_in({function.name: (self._daemons[function.name].pid,)})
        for thread in self._threads(function):
            favour(thread)

    def _threads(self, function: NfPlan) -> set[int]:
        return {self._lcores[name] for port in self._ports(function) for name in port.queue_names}

    def _start(self, function: NfPlan, folder: Path) -> None:
        sides = {function.left.name, function.right.name}
        vhost = {name: socket for name, socket in self._sockets().items() if name in sides}
        argv = command(
            function,
            self._plan.cores,
            ports=self._ports(function),
            largest_frame_bytes=self._largest_frame_bytes,
            vhost=vhost,
        )
        daemon = Daemon(
            f"testpmd of {function.name}",
            # Into a file it would print when its buffer is full, and never that it is ready.
            ["stdbuf", "-oL", *argv],
            folder / f"{function.name}.log",
            {"RUNTIME_DIRECTORY": str(folder)},
            entry=self._groups.container(function.name),
        )
        self._daemons[function.name] = daemon
        main = self._plan.cores.cpus(function.name, ThreadRole.MAIN)[0]
        self._fabric.run_inside(function.name, partial(daemon.start, main, self._machine))

    def _sockets(self) -> dict[str, Path]:
        """Where NFs listen for the vSwitch, by interface."""
        if not self._vhost:
            return {}
        folder = folder_of(self._machine)
        return {name: socket_of(folder, link) for name, link in self._vhost.items()}

    def _find_threads(self, function: NfPlan) -> None:
        daemon = self._daemons[function.name]
        running = threads_of(daemon.pid, _LCORE)
        ports = self._ports(function)
        for (port, queue), lcore in receiving_lcores(daemon.output()).items():
            if lcore in running:
                self._lcores[ports[port].queue_names[queue]] = running[lcore]

    def _ports(self, function: NfPlan) -> tuple[Port, Port]:
        """The left and the right one."""
        ports = {port.interface: port for port in self._plan.ports(function.name)}
        return ports[function.left.name], ports[function.right.name]

    def _hide_from_kernel(self, function: NfPlan) -> None:
        """Of ports of the kernel; testpmd has read the planned MACs."""
        sides = (function.left, function.right)
        own = ((side.name, side.mac) for side in sides if side.name not in self._vhost)
        self._fabric.change(function.name, foreign_macs(own, self._fabric.index))

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each port's two threads may really run: the kernel's that receives and the lcore that forwards.

        Empty where one of them is gone.
        """
        received = super().affinity()
        polled = data_threads.affinity({name: [lcore] for name, lcore in self._lcores.items()})
        of_kernel = {
            name: cpus | polled[name] if cpus and polled.get(name) else frozenset[int]()
            for name, cpus in received.items()
        }
        shared = (port for owner in self._owners for port in self._plan.ports(owner) if port.interface in self._vhost)
        return of_kernel | {name: polled.get(name, frozenset[int]()) for port in shared for name in port.queue_names}

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: (daemon.pid,) for name, daemon in self._daemons.items()}

    def facts(self) -> Mapping[str, str]:
        """How frames get in and out, and its version."""
        output = next((daemon.output() for daemon in self._daemons.values()), "")
        ports = "virtio-user (vhost-user to the vSwitch)" if self._vhost else "net_af_packet"
        return {"testpmd": f"DPDK {version(output)}, mac forwarding, {ports}"} if output else {}

    def problems(self) -> tuple[str, ...]:
        """Those that have ended, ports that have lost their data thread or their carrier."""
        ended = filter(None, (daemon.problem() for daemon in self._daemons.values()))
        return (*ended, *super().problems())

    def stop(self) -> None:
        super().stop()
        daemons, self._daemons = self._daemons, {}
        self._lcores = {}
        for daemon in daemons.values():
            daemon.request_end(b"\n")
        for daemon in daemons.values():
            daemon.wait_end(_END_S)
        if self._folder is not None:
            for socket in self._sockets().values():
                socket.unlink(missing_ok=True)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def missing(*_: object) -> Iterator[PreflightProblem]:
    """Requirements of testpmd that this machine lacks."""
    lacking = [program for program in (PROGRAM, "stdbuf") if shutil.which(program) is None]
    if lacking:
        yield PreflightProblem(
            f"{', '.join(lacking)} missing for NFs of kind testpmd",
            "install it: apt-get install dpdk-dev librte-net-af-packet23 coreutils",
        )
