"""Taking physical ports from where they are at home into namespaces of this run."""

import logging
import os
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from resources.libraries.python.drivers.host.links import port_messages, rtnetlink_messages, sysfs
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.links.namespaces import Namespace
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.drivers.host.nics.nic_facts import device_at
from resources.libraries.python.drivers.host.nics.nic_state import HERE, Adopted, bus_of
from resources.libraries.python.drivers.host.nics.port_inventory import Device, devices, why_not
from resources.libraries.python.errors import CommandFailed, ConfigError, SystemBroken
from resources.libraries.python.model.plan import Nic

_log = logging.getLogger(__name__)


def look(wanted: Sequence[tuple[Nic, str, str]]) -> list[Adopted]:
    """Find ports in the namespace of the calling thread and describe them; nothing is changed.

    Args:
        wanted: Ports, each with its name in use and the name of the namespace that it will be used in.

    Raises:
        ConfigError: One is not there, or must not be taken.
    """
    return aside(lambda: _look(wanted)) if wanted else []


def _look(wanted: Sequence[tuple[Nic, str, str]]) -> list[Adopted]:
    descriptor = os.open(HERE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        home = os.fstat(descriptor).st_ino
        sysfs.own_mounts()
        with closing(Netlink()) as netlink, sysfs.sysfs_of(descriptor, "this namespace") as root:
            known = devices(netlink)
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
    finally:
        os.close(descriptor)


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


def _described(netlink: Netlink, device: Device, root: Path, use: tuple[str, str], home: int) -> Adopted:
    where, name = netlink.socket, device.name
    interface, inside = use
    queues = ethtool.channels(where, name)
    return Adopted(
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
        threaded=sysfs.threaded(root, name),
        rx_queues=queues.rx if queues else None,
        tx_queues=queues.tx if queues else None,
        combined_queues=queues.combined if queues else None,
    )


def start_threads(ports: Sequence[Adopted]) -> None:
    """Enable threaded NAPI before the ports are renamed, in the network namespace of the calling thread.

    A NAPI thread keeps the name that its interface had when the thread was created, and exists as long as the driver's
    queue. A thread named after the interface name of one run would not be found by a run that uses another name.
    Drivers that create their queues when the interface comes up get their threads only then.
    """
    if ports:
        aside(lambda: _start_threads(ports))


def _start_threads(ports: Sequence[Adopted]) -> None:
    descriptor = os.open(HERE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sysfs.own_mounts()
        with sysfs.sysfs_of(descriptor, "this namespace") as root:
            for port in ports:
                with suppress(OSError):  # it has no queues yet
                    sysfs.set_threaded(root, port.device, "1")
    finally:
        os.close(descriptor)


def take(port: Adopted, home: Netlink, inside: Namespace, mac: str, mtu: int, *, promiscuous: bool) -> int:
    """Move a port into a namespace and prepare it there; it stays down.

    Args:
        port: From `look`, on record.
        home: Opened where the port is.
        inside: The namespace.
        mac: Its MAC in use.
        mtu: In bytes.
        promiscuous: Whether frames for other MACs are wanted.

    Returns:
        Its interface index over there.

    Raises:
        CommandFailed: The kernel refused something.
        SystemBroken: The port has gone away since it was looked at.
    """
    device = _still_there(home, port.device)
    home.do([port_messages.set_down(port.device, device.index)])
    home.do([port_messages.move(port.device, device.index, inside.descriptor, port.interface)])
    index = _still_there(inside.netlink, port.interface).index
    _one_queue(inside.netlink, port.interface)
    requests = [
        rtnetlink_messages.set_mac(port.interface, index, mac),
        port_messages.set_mtu(port.interface, index, mtu),
    ]
    if promiscuous:
        requests.append(port_messages.set_promiscuous(port.interface, index, on=True))
    inside.netlink.do(requests)
    return index


def _still_there(netlink: Netlink, name: str) -> Device:
    """A virtual port ends with its other end, which may be on a machine that has just been reset."""
    device = devices(netlink).get(name)
    if device is None:
        raise SystemBroken(f"port {name} went away while it was taken into use")
    return device


def _one_queue(netlink: Netlink, interface: str) -> None:
    """One queue, so one data thread. Where the driver keeps more, all of their threads share the planned CPU."""
    queues = ethtool.channels(netlink.socket, interface)
    if queues is None or queues == queues.one_of_each:
        return
    try:
        ethtool.set_channels(netlink.socket, interface, queues.one_of_each)
    except CommandFailed as error:
        _log.warning("%s keeps its queues: %s", interface, error)
