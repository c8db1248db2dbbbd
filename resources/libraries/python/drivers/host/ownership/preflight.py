"""Requirements that this machine lacks: those of the local testbed, found by trying, and those of drivers.

Everything is tried in a network namespace without a name that ends with the thread that tries, so nothing can be left.
"""

import os
import resource
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.links import rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import GONE, Netlink
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.driver import Driver, FunctionDriver, GeneratorDriver
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode

_CAPABILITIES = {12: "CAP_NET_ADMIN", 13: "CAP_NET_RAW", 21: "CAP_SYS_ADMIN", 23: "CAP_SYS_NICE"}
"""For links, raw packets, namespaces and mounts, affinity and priority of kernel threads."""
_SOL_PACKET, _PACKET_VERSION, _PACKET_TX_RING, _TPACKET_V2 = 263, 10, 13, 1
# Kernel threads are named after ports on the whole machine, so a check at the same time must have other ports.
_NEAR, _FAR, _BRIDGE = ((f"cst{os.getpid()}{letter}", index) for letter, index in (("a", 100), ("b", 101), ("c", 102)))
_MAC = "02:fe:00:00:00:0"


def check() -> tuple[PreflightProblem, ...]:
    """Try all that the local world needs. Empty when nothing is missing. Needs no rights to be called."""
    first = missing_basics()
    return (first,) if first else aside(lambda: tuple(_tried()))


def missing_basics() -> PreflightProblem | None:
    """Return what is missing of Linux and the rights, for which nothing has to be tried; None where nothing is."""
    if sys.platform != "linux":
        what = f"network namespaces need Linux, this is {sys.platform}"
        return PreflightProblem(what, "use topologies/sim.yaml here")
    return _missing_rights()


def _missing_rights() -> PreflightProblem | None:
    missing = _missing_capabilities(Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
    if not missing:
        return None
    return PreflightProblem(
        f"{', '.join(missing)} missing for {'root' if os.geteuid() == 0 else f'user {os.geteuid()}'}",
        "run as root, in a container with --privileged --pid=host",
    )


def _missing_capabilities(status: str) -> list[str]:
    row = next((line for line in status.splitlines() if line.startswith("CapEff:")), "CapEff: 0")
    effective = int(row.split()[1], 16)
    return [name for bit, name in _CAPABILITIES.items() if not effective >> bit & 1]


def _tried() -> Iterator[PreflightProblem]:
    try:
        unshare(CLONE_NEWNET)
    except OSError as error:
        yield PreflightProblem(
            f"network namespaces cannot be made ({error.strerror})",
            "use a kernel with CONFIG_NET_NS, and a container that may unshare",
        )
        return
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    with closing(Namespace("the trial namespace", descriptor, Netlink())) as here:
        veth = rtnetlink_messages.veth_pair((*_NEAR, f"{_MAC}1"), (*_FAR, f"{_MAC}2"), here.descriptor, 1500)
        if why := _failure(lambda: here.netlink.do([veth])):
            yield PreflightProblem(f"veth pairs cannot be made ({why})", "load the module: modprobe veth")
        without_ports = bool(why)
        if why := _failure(lambda: here.netlink.do([rtnetlink_messages.bridge(*_BRIDGE)])):
            yield PreflightProblem(f"bridges cannot be made ({why})", "load the module: modprobe bridge")
        if why := _failure(_try_ring):
            fix = "use a kernel with CONFIG_PACKET and CONFIG_PACKET_MMAP"
            yield PreflightProblem(f"AF_PACKET has no TX ring ({why})", fix)
        if not without_ports and (why := _failure(lambda: _try_threads(here))):
            fix = "use a kernel from 5.12 (threaded NAPI), outside of a PID namespace"
            yield PreflightProblem(f"ports get no pinned data threads ({why})", fix)


def _failure(attempt: Callable[[], None]) -> str:
    """Why it does not work; empty when it does."""
    try:
        attempt()
    except (CsitError, OSError) as error:
        return str(error)
    return ""


def _try_ring() -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as ring:
        ring.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        ring.setsockopt(_SOL_PACKET, _PACKET_TX_RING, struct.pack("=4I", 4096, 1, 2048, 2))


def _try_threads(here: Namespace) -> None:
    for name, index in (_NEAR, _FAR):
        data_threads.receive_by_napi(here.netlink, name)
        here.netlink.do([rtnetlink_messages.set_up(name, index)])
    data_threads.enable_threads([(here, [_NEAR[0]])])
    found = data_threads.find([_NEAR[0]])
    thread = found[_NEAR[0]]
    cpu = min(os.sched_getaffinity(0))
    try:
        data_threads.pin(thread, cpu)
        data_threads.make_realtime(thread)
        if os.sched_getaffinity(thread) != {cpu}:
            raise CsitError("a pinned thread may still run elsewhere")
    finally:
        # The namespace ends some time after this thread; the next check must not find this one's threads.
        here.netlink.do([rtnetlink_messages.delete_ports()], tolerate=GONE)
        data_threads.wait_gone(found)


def missing(driver: Driver, node: TgNode | DutNode) -> Iterator[PreflightProblem]:
    """Yield what this machine lacks for a driver, by its package's own function or the programs that it declares.

    The limit of open files is raised, where that is allowed and a driver needs it.
    """
    role = "generator" if isinstance(driver, GeneratorDriver) else "vSwitch"
    needed_for = f"NFs of kind {driver.name}" if isinstance(driver, FunctionDriver) else f"the {role} {driver.name}"
    if driver.missing is not None:
        of_kind = (NfKind(driver.name),) if isinstance(driver, FunctionDriver) else ()
        yield from driver_registry.load(driver.missing)(node, *of_kind)
    else:
        for program in driver.programs:
            if path_of(program.on(node)) is None:
                yield PreflightProblem(f"{program.name} missing for {needed_for}", f"install it: {program.remedy}")
    if (most := _open_files(needed := driver.open_files(node))) < needed:
        what = f"{needed_for} may open {needed:,} files, and the limit is {most:,}"
        yield PreflightProblem(what, "raise it: ulimit -Hn; in a container: --ulimit nofile")


def _open_files(needed: int) -> int:
    """Maximum number of open files of programs that this process starts, raised to what they need where it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, hard)))
        except (OSError, ValueError):  # above the hard limit, and without the right to raise that
            return hard
    return max(soft, needed)
