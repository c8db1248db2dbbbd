"""A veth pair in a network namespace of its own, the built-in generator on its two ends, and frames captured there."""

import array
import fcntl
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.drivers.generators.builtin.wire import Sending
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.core_map import CoreMap, Thread, ThreadRole
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType
from tests.builders import flow_of

NAMESPACE = f"csit-ring-{os.getpid()}"
LEFT, RIGHT = "ringa", "ringb"
B64 = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
IMIX_WEIGHTS = {64: 7, 570: 4, 1518: 1}
IMIX = Frame(name="IMIX", parts=tuple(FramePart(frame_bytes=size, weight=n) for size, n in IMIX_WEIGHTS.items()))
_REMOVED_WITHIN_S = 10.0
TRIALS = 10
"""Of which one has to be undisturbed."""
_SIOCETHTOOL = 0x8946
_ETHTOOL_STSO, _ETHTOOL_SGRO = 0x1F, 0x2C


def run(*argv: str) -> None:
    """Run a command.

    Raises:
        Unsupported: It is not installed.
        CommandFailed: It failed.
    """
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Unsupported(f"{argv[0]} is not installed") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)


def _set_feature(namespace: str, interface: str, request: int, value: int) -> None:
    """Turn an offload of an interface on or off, as `ethtool -K` does."""

    def work() -> None:
        enter_namespace(namespace)
        wanted = array.array("I", (request, value))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            address, _ = wanted.buffer_info()
            fcntl.ioctl(sock, _SIOCETHTOOL, struct.pack("=16sQ16x", interface.encode(), address))

    aside(work)


def receive_by_napi(namespace: str, interface: str) -> None:
    """Make a veth interface receive by NAPI: that takes GRO on and TSO off."""
    _set_feature(namespace, interface, _ETHTOOL_STSO, 0)
    _set_feature(namespace, interface, _ETHTOOL_SGRO, 1)


@contextmanager
def veth_pair(
    namespace: str, names: tuple[str, str], *, mtu: int = 9000, receive_cpu: int | None = None, napi: bool = False
) -> Iterator[None]:
    """Make a veth pair in a new namespace, and remove both at the end.

    Raises:
        Unsupported: Not root, or `ip` is not installed.
        CommandFailed: The kernel rejected a request.
    """
    if os.geteuid() != 0:
        raise Unsupported("network namespaces need root")
    _remove_left(namespace)
    _wait_gone(names)  # the kernel removes the threads of an earlier pair after the command has ended
    run("ip", "netns", "add", namespace)
    try:
        inside = ("ip", "-n", namespace)
        quiet = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        run("ip", "netns", "exec", namespace, "sysctl", "-qw", *quiet)
        left, right = names
        run(*inside, "link", "add", left, "mtu", str(mtu), "type", "veth", "peer", "name", right, "mtu", str(mtu))
        for name in names:
            run(*inside, "link", "set", name, "up")
            if receive_cpu is not None or napi:
                receive_by_napi(namespace, name)
            if receive_cpu is not None:
                switch = f"/sys/class/net/{name}/threaded"
                run("ip", "netns", "exec", namespace, "sh", "-c", f"echo 1 >{switch}")
        if receive_cpu is not None:
            for thread in data_threads.find(names).values():
                data_threads.pin(thread, receive_cpu)
        yield
    finally:
        run("ip", "netns", "del", namespace)


def _wait_gone(names: tuple[str, str]) -> None:
    def left() -> str:
        return ", ".join(data_threads.running(names))

    wait_until("the data threads of an earlier pair to end", left, _REMOVED_WITHIN_S)


def _remove_left(namespace: str) -> None:
    """Remove the namespace that a killed run left, with the processes in it. Nothing happens without one."""
    found = subprocess.run(("ip", "netns", "pids", namespace), capture_output=True, text=True, check=False)
    if found.returncode == 0:
        for pid in map(int, found.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run("ip", "netns", "del", namespace)


def plan(*, cpus: tuple[int, ...] = (0,)) -> Plan:
    """One instance whose two ports are joined by a cable."""
    here, there = "10.0.1.1", "20.0.1.1"
    flows = (
        flow_of(ports=(LEFT, RIGHT), source_ip=here, destination_ip=there),
        flow_of(Direction.REVERSE, (LEFT, RIGHT), source_ip=there, destination_ip=here),
    )
    threads = tuple(
        Thread(owner="generator", role=ThreadRole.DATA, index=index, cpu=cpu) for index, cpu in enumerate(cpus)
    )
    return Plan(
        testbed="test", cell=Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), suite_id="test", tags=(),
        discriminator="link", links=(), segments=(), functions=(), flows=flows, paths=(),
        cores=CoreMap(
            numa_node=0, smt=False, physical=((0,), (1,)), threads=threads, cores_needed=1, cores_there=2,
            oversubscribed=False,
        ),
    )  # fmt: skip


@contextmanager
def generating(
    namespace: str, sending: Sending = "auto", planned: Plan | None = None, **more: bytes
) -> Iterator[BuiltInGenerator]:
    """A started generator between two ports."""
    made = BuiltInGenerator(planned or plan(), namespace, sending, **more)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def undisturbed(generator: BuiltInGenerator, trial: Trial) -> TrialResult:
    """A trial in which the sender kept up with its load; one in which the machine stood still is repeated."""
    for _ in range(TRIALS):
        result = generator.run(trial)
        if not result.generator_limited:
            break
    assert not result.generator_limited, result.note
    return result


class Capture:
    """Takes frames off an interface, by a packet socket in the namespace."""

    def __init__(self, interface: str) -> None:
        self.frames: list[bytes] = []
        self._ready = threading.Event()
        self._stop = threading.Event()
        self._interface = interface
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        enter_namespace(NAMESPACE)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
            sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
            sock.bind((self._interface, 0x0800))
            sock.settimeout(0.05)
            self._ready.set()
            while True:
                try:
                    self.frames.append(sock.recv(10000))
                except TimeoutError:
                    if self._stop.is_set():
                        return

    def __enter__(self) -> "Capture":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def captured(generator: BuiltInGenerator, trial: Trial, interface: str) -> tuple[TrialResult, Capture]:
    """A trial in which all was sent, and the frames that came out of an interface in it."""
    with Capture(interface) as capture:
        result = generator.run(trial)
    assert result.sent == round(trial.load_pps * trial.duration_s), result.note
    probes = {round(trial.probe_pps * trial.duration_s)} if trial.probe_pps else set()
    assert {row.sent for row in result.latency} == probes, result.note
    return result, capture
