"""Physical ports: facts by the kernel's files, and what is seen of them through one network namespace."""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import AF_INET, AF_INET6, AF_UNSPEC, inet_ntop

from pyroute2.netlink.rtnl import RTM_GETADDR, RTM_GETLINK, RTM_GETROUTE, rt_type
from pyroute2.netlink.rtnl.ifinfmsg import IFF_LOOPBACK, IFF_PROMISC, IFF_RUNNING, IFF_UP

from resources.libraries.python.drivers.host.kernel_files import line_of, number_of
from resources.libraries.python.drivers.host.links.namespace_syscalls import SYSFS
from resources.libraries.python.drivers.host.links.netlink import Netlink, attributes
from resources.libraries.python.drivers.host.links.rtnetlink_messages import GET_LINKS

_ADDRESS, _NAME, _MTU, _LINK, _MASTER, _LINK_INFO, _ELSEWHERE = 1, 3, 4, 5, 10, 18, 37
"""IFLA_ADDRESS and so on; the last is IFLA_LINK_NETNSID."""
_KIND = 1
_IFA_ADDRESS, _IFA_LOCAL, _SCOPE_LINK = 1, 2, 253
_RTA_OIF, _RTA_MULTIPATH = 4, 9
_ALL_ADDRESSES, _ALL_ROUTES = struct.pack("=4BI", AF_UNSPEC, 0, 0, 0, 0), struct.pack("=8BI", *[0] * 8, 0)


@dataclass(frozen=True, slots=True)
class Device:
    """A port of the kernel as it is now."""

    index: int
    name: str
    mac: str
    mtu: int
    """In bytes."""
    up: bool
    running: bool
    """Whether packets can pass: it is up and has a carrier."""
    promiscuous: bool
    """Set by a user; bridges or captures that need it do not show here."""
    loopback: bool
    kind: str | None
    """`veth`, `bridge`, `vlan` …; None for a physical one."""
    master: int | None
    """Index of the bridge or bond that it is a member of."""
    below: int | None
    """Index of the port that it stands on, such as a VLAN on its port, in the same namespace."""


def devices(netlink: Netlink) -> dict[str, Device]:
    """All ports of a namespace by name.

    Raises:
        CommandFailed: The kernel refused.
    """
    found = map(_device, netlink.dump(RTM_GETLINK, GET_LINKS, "read the ports"))
    return {device.name: device for device in found}


def _device(row: bytes) -> Device:
    index, flags = struct.unpack_from("=iI", row, 4)
    table = dict(attributes(row, 16))
    info = dict(attributes(table[_LINK_INFO])) if _LINK_INFO in table else {}
    kind = _text(info[_KIND]) if _KIND in info else None
    # A veth pair refers to its other end in the same way as a VLAN to its port.
    below = _number(table[_LINK]) if _LINK in table and _ELSEWHERE not in table and kind != "veth" else None
    return Device(
        index=index,
        name=_text(table[_NAME]),
        mac=table.get(_ADDRESS, b"").hex(":"),
        mtu=_number(table[_MTU]),
        up=bool(flags & IFF_UP),
        running=bool(flags & IFF_RUNNING),
        promiscuous=bool(flags & IFF_PROMISC),
        loopback=bool(flags & IFF_LOOPBACK),
        kind=kind,
        master=_number(table[_MASTER]) if _MASTER in table else None,
        below=below,
    )


def why_not(netlink: Netlink, device: Device, known: dict[str, Device]) -> str | None:
    """Why a port must not be taken away from where it is; None when it may be.

    Taking it would cut whatever goes over it: perhaps the connection to this very machine. Its addresses and routes
    would be gone, and the kernel removes what stands on it.

    Raises:
        CommandFailed: The kernel refused.
    """
    if device.loopback:
        return "is the loopback device"
    if device.index in set(_default_routes(netlink)):
        return "has the default route"
    if address := next((text for index, text in _addresses(netlink) if index == device.index), None):
        return f"carries the address {address}"
    names = {each.index: each.name for each in known.values()}
    if device.master is not None:
        return f"is a member of {names.get(device.master, device.master)}"
    if above := next((each.name for each in known.values() if each.below == device.index), None):
        return f"carries {above}"
    return None


def _addresses(netlink: Netlink) -> Iterator[tuple[int, str]]:
    """Index and address with prefix length. Not those that every IPv6 port gives itself when it comes up."""
    for row in netlink.dump(RTM_GETADDR, _ALL_ADDRESSES, "read the addresses"):
        family, prefix, _, scope, index = struct.unpack_from("=4Bi", row)
        table = dict(attributes(row, 8))
        raw = table.get(_IFA_LOCAL) or table.get(_IFA_ADDRESS)
        if raw and family in (AF_INET, AF_INET6) and not (family == AF_INET6 and scope == _SCOPE_LINK):
            yield index, f"{inet_ntop(family, raw)}/{prefix}"


def _default_routes(netlink: Netlink) -> Iterator[int]:
    """Indexes of the ports through which default routes go."""
    for row in netlink.dump(RTM_GETROUTE, _ALL_ROUTES, "read the routes"):
        _, length, _, _, _, _, _, kind = struct.unpack_from("=8B", row)
        if length or kind != rt_type["unicast"]:
            continue
        for attribute, data in attributes(row, 12):
            if attribute == _RTA_OIF:
                yield _number(data)
            elif attribute == _RTA_MULTIPATH:
                yield from _hops(data)


def _hops(data: bytes) -> Iterator[int]:
    offset = 0
    while offset + 8 <= len(data):
        length, _, _, index = struct.unpack_from("=HBBi", data, offset)
        yield index
        if length < 8:
            return
        offset += (length + 3) & ~3


def _number(data: bytes) -> int:
    return int(struct.unpack("=I", data)[0])


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode(errors="replace")


_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def device_at(pci_address: str, root: Path = SYSFS) -> str | None:
    """The kernel's name of the port at a PCI address; None where there is none in the sysfs's network namespace.

    `pci_address`: With its domain, such as `0000:3b:00.0`.
    """
    port = _port_at(pci_address, root)
    return port.name if port is not None else None


def index_at(pci_address: str, root: Path = SYSFS) -> int | None:
    """The index of the port at a PCI address, which it keeps when it is renamed; None as of `device_at`.

    None also while it is being renamed.

    `pci_address`: With its domain, such as `0000:3b:00.0`.
    """
    port = _port_at(pci_address, root)
    return number_of(port / "ifindex") if port is not None else None


def _port_at(pci_address: str, root: Path) -> Path | None:
    device = root / "bus/pci/devices" / pci_address
    # The port of a virtio device is one level further down.
    for folder in (device / "net", *sorted(device.glob("virtio*/net"))):
        with suppress(OSError):
            if ports := sorted(folder.iterdir()):
                return ports[0]
    return None


def numa_node_of(pci_address: str | None, interface: str | None, root: Path = SYSFS) -> int | None:
    """The NUMA node of a port; None where the kernel does not know it (-1), or where it is no PCI device.

    `pci_address`: Where it is; decides where it is given.
    `interface`: The kernel's name of the port, in the network namespace whose sysfs is at `root`.
    """
    if pci_address is not None:
        pci: Path | None = root / "bus/pci/devices" / pci_address
    else:
        pci = _pci_folder(root / "class/net" / interface) if interface is not None else None
    found = number_of(pci / "numa_node") if pci is not None else None
    return found if found is not None and found >= 0 else None


def pci_ids(pci_address: str, root: Path = SYSFS) -> tuple[str | None, str | None]:
    """Vendor and device of a PCI device, in hexadecimal; None where there is none.

    `pci_address`: With its domain, such as `0000:3b:00.0`.
    """
    pci = root / "bus/pci/devices" / pci_address
    return line_of(pci / "vendor"), line_of(pci / "device")


def driver_of(pci: Path) -> str | None:
    """The driver that has a PCI device; None when none has."""
    link = pci / "driver"
    return link.resolve().name if link.is_symlink() else None


def group_of(pci: Path) -> int | None:
    """The IOMMU group of a PCI device: what can only be handed to user space together. None without an IOMMU."""
    link = pci / "iommu_group"
    return int(link.resolve().name) if link.is_symlink() else None


def _pci_folder(port: Path) -> Path | None:
    """The PCI device that a port stands on, for virtio one level further up; None for a virtual port."""
    device = port / "device"
    if not device.exists():
        return None
    found = device.resolve()
    return next((folder for folder in (found, *found.parents) if _PCI_ADDRESS.fullmatch(folder.name)), None)
