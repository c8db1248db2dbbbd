"""Adopt physical ports into namespaces of a run, and restore them afterwards, also those that a killed run left.

A port whose namespace ends before it is restored goes to the machine's first namespace, possibly under another name.
So ports are restored first, and the state of a port is recorded before it is moved.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from pydantic import Field

from resources.libraries.python.drivers.host.kernel_files import opened
from resources.libraries.python.drivers.host.links import namespace_syscalls, rtnetlink_messages
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, setns
from resources.libraries.python.drivers.host.links.namespaces import DIRECTORY, Namespace
from resources.libraries.python.drivers.host.links.netlink import GONE, Netlink
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.drivers.host.nics.port_inventory import Device, device_at, devices, why_not
from resources.libraries.python.errors import CommandFailed, ConfigError, CsitError, SystemBroken
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.plan import Nic

HERE = "/proc/thread-self/ns/net"


class AdoptedPort(Frozen):
    """State of a physical port before it was adopted, and the namespace that it is used in."""

    interface: str
    """Name in use."""
    inside: str
    """Namespace that it is used in."""
    device: str
    """Original name."""
    home: int
    """Inode of its original network namespace."""
    bus: str
    """Bus address, such as a PCI address; empty for a virtual port."""
    mac: str
    mtu: int
    up: bool
    promiscuous: bool
    gro: bool
    tso: bool
    lro: bool
    threaded: str | None
    rx_queues: int | None
    """None if the driver does not report it; the same for the other counts."""
    tx_queues: int | None
    combined_queues: int | None
    parameters: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Ring sizes and interrupt coalescing, see `ethtool.parameters`."""

    def __str__(self) -> str:
        return f"port {self.device}{f' ({self.bus})' if self.bus else ''}"


def bus_of(netlink: Netlink, name: str) -> str:
    """Return the bus address of a port; empty for a virtual port, or if its driver does not report one."""
    with suppress(CommandFailed):
        return ethtool.bus_address(netlink.socket, name)
    return ""


_log = logging.getLogger(__name__)


def look(wanted: Sequence[tuple[Nic, str, str]]) -> list[AdoptedPort]:
    """Find ports in the namespace of the calling thread and describe them; nothing is changed.

    `wanted`: Ports, each with its name in use and the name of the namespace that it will be used in.

    Raises:
        ConfigError: One is not there, or must not be taken.
    """
    return aside(lambda: _look(wanted)) if wanted else []


def _look(wanted: Sequence[tuple[Nic, str, str]]) -> list[AdoptedPort]:
    with _in_this_namespace() as (descriptor, root), closing(Netlink()) as netlink:
        home, known = os.fstat(descriptor).st_ino, devices(netlink)
        found = []
        for nic, interface, inside in wanted:
            device = _found(nic, known, root)
            if reason := why_not(netlink, device, known):
                raise ConfigError(
                    f"{nic.port}: {device.name} {reason}: it may be what this machine is reached by; "
                    "name another port, or take that off it"
                )
            found.append(_described(netlink, device, root, (interface, inside), home))
        return found


@contextmanager
def _in_this_namespace() -> Iterator[tuple[int, Path]]:
    """Descriptor and sysfs of the network namespace of the calling thread, which ends afterwards."""
    with opened(HERE) as descriptor:
        namespace_syscalls.own_mounts()
        with namespace_syscalls.sysfs_of(descriptor, "this namespace") as root:
            yield descriptor, root


def _found(nic: Nic, known: dict[str, Device], root: Path) -> Device:
    name = nic.device
    if name is None and nic.pci_address is not None:
        name = device_at(nic.pci_address, root)
        if name is None:
            raise ConfigError(
                f"{nic.port}: no port of the kernel at PCI address {nic.pci_address} in this network namespace; "
                "its driver may be missing, or another one has it"
            )
    if name is None:
        raise ConfigError(f"{nic.port}: neither device nor pci_address says which port of this machine it is")
    if name not in known:
        raise ConfigError(f"{nic.port}: no port {name} in this network namespace, only {', '.join(sorted(known))}")
    return known[name]


def _described(netlink: Netlink, device: Device, root: Path, use: tuple[str, str], home: int) -> AdoptedPort:
    where, name = netlink.socket, device.name
    interface, inside = use
    queues = ethtool.channels(where, name)
    return AdoptedPort(
        interface=interface,
        inside=inside,
        device=name,
        home=home,
        bus=bus_of(netlink, name),
        mac=device.mac,
        mtu=device.mtu,
        up=device.up,
        promiscuous=device.promiscuous,
        gro=ethtool.offload(where, name, "gro"),
        tso=ethtool.offload(where, name, "tso"),
        lro=ethtool.lro(where, name),
        threaded=namespace_syscalls.threaded(root, name),
        rx_queues=queues.rx if queues else None,
        tx_queues=queues.tx if queues else None,
        combined_queues=queues.combined if queues else None,
        parameters=ethtool.parameters(where, name, ethtool.CHANGED_WITH_QUEUES),
    )


def start_threads(ports: Sequence[AdoptedPort]) -> None:
    """Enable threaded NAPI before the ports are renamed, in the network namespace of the calling thread.

    A NAPI thread keeps the name that its interface had when the thread was created, and exists as long as the driver's
    queue. A thread named after the interface name of one run would not be found by a run that uses another name.
    Drivers that create their queues when the interface comes up get their threads only then.
    """
    if ports:
        aside(lambda: _start_threads(ports))


def _start_threads(ports: Sequence[AdoptedPort]) -> None:
    with _in_this_namespace() as (_, root):
        for port in ports:
            with suppress(OSError):  # it has no queues yet
                namespace_syscalls.set_threaded(root, port.device, "1")


def take(port: AdoptedPort, home: Netlink, inside: Namespace, mac: str, mtu: int, *, promiscuous: bool) -> int:
    """Move a port into a namespace and prepare it there; it stays down.

    `port`: From `look`, on record.
    `home`: Opened where the port is.
    `promiscuous`: Whether frames for other MACs are wanted.

    Returns:
        Its interface index over there.

    Raises:
        CommandFailed: The kernel refused something.
        SystemBroken: The port has gone away since it was looked at.
    """
    device = _still_there(home, port.device)
    home.do([rtnetlink_messages.set_down(port.device, device.index)])
    home.do([rtnetlink_messages.move(port.device, device.index, inside.descriptor, port.interface)])
    index = _still_there(inside.netlink, port.interface).index
    _one_queue(inside.netlink, port.interface)
    requests = [
        rtnetlink_messages.set_mac(port.interface, index, mac),
        rtnetlink_messages.set_mtu(port.interface, index, mtu),
    ]
    if promiscuous:
        requests.append(rtnetlink_messages.set_promiscuous(port.interface, index, on=True))
    inside.netlink.do(requests)
    return index


def _still_there(netlink: Netlink, name: str) -> Device:
    """Return a port, which disappears with its peer when the peer's machine is reset."""
    device = devices(netlink).get(name)
    if device is None:
        raise SystemBroken(f"port {name} went away while it was taken into use")
    return device


def _one_queue(netlink: Netlink, interface: str) -> None:
    """Set one queue, hence one data thread. If the driver keeps more, all threads share the planned CPU."""
    queues = ethtool.channels(netlink.socket, interface)
    if queues is None or queues == queues.one_of_each:
        return
    try:
        ethtool.set_channels(netlink.socket, interface, queues.one_of_each)
    except CommandFailed as error:
        _log.warning("%s keeps its queues: %s", interface, error)


_FIRST = Path("/proc/1/ns/net")
"""Initial network namespace of the machine or its container."""


def give_back(ports: Iterable[AdoptedPort]) -> list[str]:
    """Move ports back to their original namespaces and restore their state; ports that are gone are skipped.

    Returns:
        One message per port that was moved back or is gone.

    Raises:
        CsitError: A port could not be restored; the others were.
    """
    problems: list[str] = []
    failures: list[str] = []
    for port in ports:
        try:
            try:
                problems += aside(partial(_give_back, port))
            except CommandFailed as error:
                if error.status not in GONE:
                    raise
                problems += aside(partial(_give_back, port))  # it went away with its peer: a second look finds that
        except (CsitError, OSError) as error:
            failures.append(f"{port} cannot be given back: {error}")
    if failures:
        raise CsitError("; ".join(failures))
    return problems


def _give_back(port: AdoptedPort) -> list[str]:
    home = _open(port.home)
    moved = "" if home is not None else ", but not to where it came from: that network namespace is gone"
    if home is None:
        home = os.open(HERE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        namespace_syscalls.own_mounts()
        for path in (DIRECTORY / port.inside, _FIRST):
            if _bring_home(port, path, home):
                return [f"gave {port} back{moved}"]
        # It was not moved yet, or is back already under either of its names.
        with namespace_syscalls.sysfs_of(home, "the port's home") as root, closing(Netlink()) as netlink:
            known = devices(netlink)
            device = known.get(port.interface) or known.get(port.device)
            if device is None or not _is_the_one(netlink, port, device):
                return [f"{port} is not on this machine any more"]
            _restore(port, netlink, device, root)
            if device.name != port.device:
                netlink.do([rtnetlink_messages.rename(device.name, device.index, port.device)])
            _up_again(port, netlink, device.index)
        return []
    finally:
        os.close(home)


def _bring_home(port: AdoptedPort, path: Path, home: int) -> bool:
    """Move a port back from a namespace; return whether it was there."""
    try:
        with opened(path) as descriptor:
            if os.fstat(descriptor).st_ino == os.fstat(home).st_ino:
                return False
            with namespace_syscalls.sysfs_of(descriptor, str(path)) as root, closing(Netlink()) as netlink:
                device = devices(netlink).get(port.interface)
                if device is None or bus_of(netlink, device.name) != port.bus:
                    return False
                # VLAN devices would stay behind and keep using the port in its home.
                netlink.do([rtnetlink_messages.delete_ports(rtnetlink_messages.VLAN_GROUP)], tolerate=GONE)
                _restore(port, netlink, device, root)
                _check_name_is_free(port, home)
                setns(descriptor, CLONE_NEWNET)
                netlink.do([rtnetlink_messages.move(device.name, device.index, home, port.device)])
    except OSError:  # no namespace: the file of a creation that was cut short
        return False
    setns(home, CLONE_NEWNET)
    with closing(Netlink()) as netlink:
        device = devices(netlink).get(port.device)
        if device is not None:  # the other end of a virtual port may end at any moment, and this one with it
            _up_again(port, netlink, device.index)
    return True


def _check_name_is_free(port: AdoptedPort, home: int) -> None:
    """Refuse early: the kernel would move the port before it finds that the name is taken."""
    setns(home, CLONE_NEWNET)
    with closing(Netlink()) as netlink:
        if port.device in devices(netlink):
            raise CsitError(f"another port is called {port.device} now; rename that one")


def _is_the_one(netlink: Netlink, port: AdoptedPort, device: Device) -> bool:
    """Whether a device is the recorded port: it has its original name and MAC, or the planned name."""
    return bus_of(netlink, device.name) == port.bus and (device.name == port.interface or device.mac == port.mac)


def _restore(port: AdoptedPort, netlink: Netlink, device: Device, root: Path) -> None:
    """Restore all settings except name, namespace and link state; the port is down afterwards."""
    where, name = netlink.socket, device.name
    if port.threaded is not None and namespace_syscalls.threaded(root, name) != port.threaded:
        with suppress(OSError):  # a port without NAPI has no threads to end
            namespace_syscalls.set_threaded(root, name, port.threaded)
    netlink.do([rtnetlink_messages.set_down(name, device.index)])
    queues = ethtool.channels(where, name)
    if queues and port.rx_queues is not None and port.tx_queues is not None and port.combined_queues is not None:
        wanted = queues.with_counts(port.rx_queues, port.tx_queues, port.combined_queues)
        if wanted != queues:
            ethtool.set_channels(where, name, wanted)
    ethtool.restore_parameters(where, name, port.parameters)
    for option, on in (("gro", port.gro), ("tso", port.tso)):
        ethtool.set_offload(where, name, option, on=on)
    if ethtool.lro(where, name) is not port.lro:
        ethtool.set_lro(where, name, on=port.lro)
    netlink.do(
        [
            rtnetlink_messages.set_mac(name, device.index, port.mac),
            rtnetlink_messages.set_mtu(name, device.index, port.mtu),
            rtnetlink_messages.set_promiscuous(name, device.index, on=port.promiscuous),
        ]
    )


def _up_again(port: AdoptedPort, netlink: Netlink, index: int) -> None:
    if port.up:
        netlink.do([rtnetlink_messages.set_up(port.device, index)])


def _open(inode: int) -> int | None:
    """A descriptor of the network namespace with that inode; None when there is none that can be found."""
    named = DIRECTORY.iterdir() if DIRECTORY.is_dir() else ()
    processes = (Path(f"/proc/{entry}/ns/net") for entry in os.listdir("/proc") if entry.isdigit())  # noqa: PTH208
    for path in (Path(HERE), *named, *processes):
        with suppress(OSError):
            if path.stat().st_ino == inode:
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None
