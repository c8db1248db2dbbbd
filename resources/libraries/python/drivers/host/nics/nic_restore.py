"""Giving physical ports back as they were, also those that a killed run has left somewhere.

A port that is not given back before the namespace that it is in ends goes to the machine's first namespace, under a
name that may be another one. So giving back comes first, and what a port was like is on record before it is moved.
"""

import os
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.links import port_messages, rtnetlink_messages, sysfs
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, setns
from resources.libraries.python.drivers.host.links.namespaces import DIRECTORY
from resources.libraries.python.drivers.host.links.netlink import GONE, Netlink
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.drivers.host.nics.nic_state import HERE, Adopted, bus_of
from resources.libraries.python.drivers.host.nics.port_inventory import Device, devices
from resources.libraries.python.errors import CsitError

_FIRST = Path("/proc/1/ns/net")
"""The machine's first namespace, or that of its container."""


def give_back(ports: Iterable[Adopted]) -> list[str]:
    """Bring ports home, as they were. What is at home already is put right; what is nowhere any more is passed over.

    Returns:
        A sentence for each port that was not at home, or is gone.

    Raises:
        CsitError: One could not be given back; the others were.
    """
    said: list[str] = []
    failures: list[str] = []
    for port in ports:
        try:
            said += aside(partial(_give_back, port))
        except (CsitError, OSError) as error:
            failures.append(f"{port} cannot be given back: {error}")
    if failures:
        raise CsitError("; ".join(failures))
    return said


def _give_back(port: Adopted) -> list[str]:
    home = _open(port.home)
    moved = "" if home is not None else ", but not to where it came from: that network namespace is gone"
    if home is None:
        home = os.open(HERE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sysfs.own_mounts()
        for path in (DIRECTORY / port.inside, _FIRST):
            if _bring_home(port, path, home):
                return [f"gave {port} back{moved}"]
        # It was not moved yet, or is back already under either of its names.
        with sysfs.sysfs_of(home, "the port's home") as root, closing(Netlink()) as netlink:
            known = devices(netlink)
            device = known.get(port.interface) or known.get(port.device)
            if device is None or not _is_the_one(netlink, port, device):
                return [f"{port} is not on this machine any more"]
            _restore(port, netlink, device, root)
            if device.name != port.device:
                netlink.do([port_messages.rename(device.name, device.index, port.device)])
            _up_again(port, netlink, device.index)
        return []
    finally:
        os.close(home)


def _bring_home(port: Adopted, path: Path, home: int) -> bool:
    """Whether it was in that namespace; then it is at home now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_ino == os.fstat(home).st_ino:
            return False
        with sysfs.sysfs_of(descriptor, str(path)) as root, closing(Netlink()) as netlink:
            device = devices(netlink).get(port.interface)
            if device is None or bus_of(netlink, device.name) != port.bus:
                return False
            # VLAN devices would stay behind and keep using the port in its home.
            netlink.do([rtnetlink_messages.delete_ports(rtnetlink_messages.VLAN_GROUP)], tolerate=GONE)
            _restore(port, netlink, device, root)
            _check_name_is_free(port, home)
            setns(descriptor, CLONE_NEWNET)
            netlink.do([port_messages.move(device.name, device.index, home, port.device)])
    except OSError:  # no namespace: the file of a creation that was cut short
        return False
    finally:
        os.close(descriptor)
    setns(home, CLONE_NEWNET)
    with closing(Netlink()) as netlink:
        device = devices(netlink).get(port.device)
        if device is not None:  # the other end of a virtual port may end at any moment, and this one with it
            _up_again(port, netlink, device.index)
    return True


def _check_name_is_free(port: Adopted, home: int) -> None:
    """The kernel would move it first, and then find that it cannot call it so."""
    setns(home, CLONE_NEWNET)
    with closing(Netlink()) as netlink:
        if port.device in devices(netlink):
            raise CsitError(f"another port is called {port.device} now; rename that one")


def _is_the_one(netlink: Netlink, port: Adopted, device: Device) -> bool:
    """Whether a port at home is the one on record: there it has its own name with its own MAC, or the planned name."""
    return bus_of(netlink, device.name) == port.bus and (device.name == port.interface or device.mac == port.mac)


def _restore(port: Adopted, netlink: Netlink, device: Device, root: Path) -> None:
    """Everything but its name, its place and whether it is up; it is down afterwards."""
    where, name = netlink.socket, device.name
    if port.threaded is not None and sysfs.threaded(root, name) != port.threaded:
        with suppress(OSError):  # a port without NAPI has no threads to end
            sysfs.set_threaded(root, name, port.threaded)
    netlink.do([port_messages.set_down(name, device.index)])
    queues = ethtool.channels(where, name)
    if queues and port.rx_queues is not None and port.tx_queues is not None and port.combined_queues is not None:
        wanted = queues.with_counts(port.rx_queues, port.tx_queues, port.combined_queues)
        if wanted != queues:
            ethtool.set_channels(where, name, wanted)
    for option, on in (("gro", port.gro), ("tso", port.tso)):
        ethtool.set_offload(where, name, option, on=on)
    if ethtool.lro(where, name) is not port.lro:
        ethtool.set_lro(where, name, on=port.lro)
    netlink.do(
        [
            rtnetlink_messages.set_mac(name, device.index, port.mac),
            port_messages.set_mtu(name, device.index, port.mtu),
            port_messages.set_promiscuous(name, device.index, on=port.promiscuous),
        ]
    )


def _up_again(port: Adopted, netlink: Netlink, index: int) -> None:
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
