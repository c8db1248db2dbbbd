"""Checks of the ports of the topology and of the cables between them.

A port has to be present, on the right NUMA node, with a suitable driver, and not in use.
"""

from collections.abc import Iterator, Mapping

from resources.libraries.python.drivers.host.nics.device_users import END_IT
from resources.libraries.python.model.findings import CheckFinding, ok, problem, warning
from resources.libraries.python.model.testbed.attachment import (
    UIO_DRIVERS,
    VFIO,
    attachment_of,
    nominal_rate_bps,
    uio_driver,
)
from resources.libraries.python.model.testbed.nodes import DutNode, Interface, TgNode
from resources.libraries.python.model.testbed.topology import Cable, Socket, Topology
from resources.libraries.python.planning.physical_ports import how_driven
from resources.libraries.python.redaction import command_text
from resources.libraries.python.testbed.node.facts import Facts, PcieLink, PortFacts, PortInventory


def used_ports(topology: Topology, name: str) -> list[str]:
    """Ports of a node that cables of services end at, and the TG's loop cables, in the order of the file."""
    cables = (*topology.loops, *(cable for way in topology.ways for cable in way))
    used = {socket.port for cable in cables for socket in (cable.a, cable.b) if socket.node == name}
    return [port for port in topology.nodes[name].interfaces if port in used]


def check(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
    """Findings about the ports of a node."""
    node, sound = topology.nodes[name], []
    looped = {end.port for cable in topology.loops for end in (cable.a, cable.b)} if name == topology.tg_name else ()
    for port in used_ports(topology, name):
        interface, place = topology.nodes[name].interfaces[port], f"nodes.{name}.interfaces.{port}"
        there = facts.ports.ports.get(port)
        if there is None:
            missing = _missing(place, interface, facts.ports)
            yield _of_qualification(missing) if port in looped else missing
            continue
        findings = [
            *_identity(place, interface, there),
            *_use(place, there),
            *_programs(place, there, facts),
            *(_functions(place, interface, there, facts) if attachment_of(interface, node).unbinds else ()),
            *_driver(place, interface, there, unbinds=attachment_of(interface, node).unbinds),
            *(() if facts.machine.cpu.hypervisor else _limits(place, interface, node, there, facts.ports)),
        ]
        yield from findings
        if not findings:
            how = f"driven by {how_driven(interface, topology.nodes[name])}"
            driver = there.driver or "no driver: a run binds it"
            sound.append(f"{port} is {there.device or there.pci_address} ({driver}), {how}")
    if sound:
        yield ok(f"nodes.{name}", "ports", "; ".join(sound))
    used = [node.interfaces[port] for port in used_ports(topology, name)]
    for driver in dict.fromkeys(uio_driver(each, node) or VFIO for each in used if attachment_of(each, node).unbinds):
        yield from _user_space(f"nodes.{name}", driver, facts.ports)


def _missing(place: str, interface: Interface, ports: PortInventory) -> CheckFinding:
    if interface.pci_address is not None:
        text = f"there is no PCI device {interface.pci_address}"
        return problem(f"{place}.pci_address", "port", text, "correct it: lspci -D | grep -i ethernet")
    if interface.device is not None:
        text = f"there is no port {interface.device}; there are {', '.join(ports.interfaces) or 'none'}"
        return problem(f"{place}.device", "port", text, "correct it: ip -br link")
    return problem(place, "port", "the file does not say which port it is", "give its device or its pci_address")


def _of_qualification(missing: CheckFinding) -> CheckFinding:
    """A run goes on without its loop cables."""
    text = f"{missing.what}, so the generator is not qualified over this port's cable"
    return warning(missing.place, missing.check, text, missing.fix)


def _identity(place: str, interface: Interface, there: PortFacts) -> Iterator[CheckFinding]:
    """Whether it is the port that the file means, where it is said to be."""
    configured = interface.numa_node
    if there.numa_node is not None and configured is not None and there.numa_node != configured:
        text = f"is on NUMA {there.numa_node}, and the file says NUMA {configured}"
        yield problem(f"{place}.numa_node", "NUMA", text, f"set numa_node: {there.numa_node}, or use another port")
    mac = interface.mac_address
    if mac is not None and there.mac_address is not None and mac != there.mac_address:
        text = f"has {there.mac_address}, the file says {mac}: it may be another port"
        yield problem(f"{place}.mac_address", "MAC", text, "correct the file: ip -br link")


def _use(place: str, there: PortFacts) -> Iterator[CheckFinding]:
    """A run takes the port: its present users would be cut off, such as the SSH session that starts the run."""
    reasons = [f"has the address {address}" for address in there.addresses]
    reasons += ["has the default route"] * there.default_route
    reasons += [f"is a part of {there.master}"] * (there.master is not None)
    if reasons:
        lasting = "take it out of netplan or NetworkManager, which give it the address again after each cell, and "
        free = f"free it: {command_text('ip', 'address', 'flush', 'dev', there.device)}"
        fix = f"use another port, or {lasting if there.addresses or there.default_route else ''}{free}"
        yield problem(place, "in use", f"{there.device} {', '.join(reasons)}; a run takes it away", fix)


def _programs(place: str, there: PortFacts, facts: Facts) -> Iterator[CheckFinding]:
    """Programs that have the port in user space. Those of a run are none: a killed run's are ended by the next one."""
    ours = {each.pid for each in facts.leftovers.processes}
    users = facts.device_users.users.get(there.pci_address or "", ())
    if others := [user for user in users if user.pid not in ours]:
        yield problem(place, "in use", f"{there.pci_address} is in use by {', '.join(map(str, others))}", END_IT)


def _functions(place: str, interface: Interface, there: PortFacts, facts: Facts) -> Iterator[CheckFinding]:
    """Virtual functions of a port that loses its driver, or is to get some for a run. Those of a run are on record."""
    if interface.nic_vfs and there.most_virtual_functions == 0:
        text = f"{there.pci_address} has no virtual functions (SR-IOV), which nic_vfs asks for"
        fix = "enable SR-IOV in the firmware of the machine and of the NIC, or remove nic_vfs"
        yield problem(f"{place}.nic_vfs", "virtual functions", text, fix)
    ours = facts.leftovers.others.get("functions", ())
    if there.virtual_functions and not any(f"pci_address {there.pci_address}" in each.split(", ") for each in ours):
        text = f"{there.pci_address} has {there.virtual_functions} virtual functions, and a run needs it without"
        fix = f"if nothing uses them: echo 0 > /sys/bus/pci/devices/{there.pci_address}/sriov_numvfs"
        yield problem(place, "virtual functions", text, fix)


def _driver(place: str, interface: Interface, there: PortFacts, *, unbinds: bool) -> Iterator[CheckFinding]:
    """Whether it has the driver that a run begins with: any or none where the run binds another one to it."""
    if unbinds and not interface.nic_vfs:
        return
    users = "its virtual functions need" if interface.nic_vfs else "runs need"
    if there.driver is None and there.pci_address is not None:
        what = f"{there.pci_address} has none, and {users} the kernel's"
        fix = f"modprobe its driver, then echo {there.pci_address} > /sys/bus/pci/drivers_probe"
        yield problem(f"{place}.driver", "driver", what, fix)
    elif there.driver in UIO_DRIVERS:
        text = f"{there.pci_address} is bound to {there.driver}, and {users} the kernel's own driver"
        device = f"/sys/bus/pci/devices/{there.pci_address}"
        fix = f"echo > {device}/driver_override; echo {there.pci_address} | tee {device}/driver/unbind "
        yield problem(f"{place}.driver", "driver", text, f"{fix}/sys/bus/pci/drivers_probe")


def _limits(
    place: str, interface: Interface, node: TgNode | DutNode, there: PortFacts, ports: PortInventory
) -> Iterator[CheckFinding]:
    """Limits of a port's rate that nothing else reports. In virtual machines both are the hypervisor's."""
    name = there.device or there.pci_address
    if there.pcie is not None and there.pcie.reduced and not _suffices(there.pcie, there, node, ports):
        text = f"the link of {name} has {there.pcie}, which all ports of its NIC share"
        fix = (
            f"use a slot that offers more, or its setting in the firmware; lspci -vv -s {there.pci_address} shows both"
        )
        yield warning(place, "PCIe", text, fix)
    pause = there.pause
    if pause is not None and (pause.rx or pause.tx) and not attachment_of(interface, node).unbinds:
        text = f"flow control of {name} is on ({pause}): senders are throttled where packets should be lost"
        fix = f"{command_text('ethtool', '-A', name)} rx off tx off, with autoneg off where they are still on then"
        yield warning(place, "pause frames", text, fix)


def _suffices(link: PcieLink, there: PortFacts, node: TgNode | DutNode, ports: PortInventory) -> bool:
    """Whether a PCIe link carries the line rates of all ports of its NIC that the topology names."""
    slot = (there.pci_address or "").rpartition(".")[0]
    rates_bps = [
        _rate_bps(node.interfaces[name], row)
        for name, row in ports.ports.items()
        if row and (row.pci_address or "").rpartition(".")[0] == slot
    ]
    return all(rates_bps) and sum(filter(None, rates_bps)) <= link.gbps * 1e9


def _rate_bps(interface: Interface, there: PortFacts) -> int | None:
    """Return the speed of a port, or its rate in the topology while the kernel knows no speed (down, or bound)."""
    if there.speed_mbps:
        return there.speed_mbps * 1_000_000
    return nominal_rate_bps(interface.rate_bps, interface.model)


def _user_space(place: str, driver: str, ports: PortInventory) -> Iterator[CheckFinding]:
    """What binding ports to a driver for user space takes; only vfio-pci needs an IOMMU."""
    if driver != VFIO:
        if {"igb_uio": ports.igb_uio, "uio_pci_generic": ports.uio_pci_generic}[driver] is None:
            fix = f"install the module, or say uio_driver: {VFIO}"
            yield problem(place, driver, f"{driver} is missing in this kernel", fix)
    elif ports.vfio_pci is None:
        text = "vfio-pci is missing in this kernel"
        yield problem(place, "vfio-pci", text, "modprobe vfio-pci, or boot a kernel that has it (CONFIG_VFIO_PCI)")
    elif ports.iommu_groups == 0 and not ports.vfio_without_iommu:
        fix = "boot with intel_iommu=on iommu=pt (AMD: iommu=pt), and switch it on in the firmware"
        yield problem(place, "IOMMU", "is off: there are 0 groups, and vfio-pci needs one for each port", fix)
    elif ports.vfio_without_iommu and ports.iommu_groups == 0:
        text = "is off, and vfio works without it: a port can write anywhere in memory"
        yield warning(place, "IOMMU", text, "boot with intel_iommu=on iommu=pt")
    else:
        yield ok(place, "IOMMU", f"{ports.iommu_groups} groups, vfio-pci is {ports.vfio_pci}")


def check_cables(topology: Topology, facts: Mapping[str, Facts]) -> Iterator[CheckFinding]:
    """Findings about cables both of whose ends were found.

    `facts`: Of the nodes that could be reached, by name.
    """
    joined = (*(cable for way in topology.ways for cable in way), *topology.loops)
    cables = {frozenset((cable.a, cable.b)): cable for cable in joined}
    for cable in cables.values():
        ends = {socket: _end(facts, socket) for socket in (cable.a, cable.b)}
        if all(ends.values()):
            yield from _cable(topology, cable, {socket: end for socket, end in ends.items() if end is not None})


def _end(facts: Mapping[str, Facts], socket: Socket) -> PortFacts | None:
    there = facts.get(socket.node)
    return there.ports.ports.get(socket.port) if there else None


def _name(socket: Socket, end: PortFacts) -> str:
    return f"{socket.node}.{socket.port} ({end.device or end.pci_address})"


def _place(socket: Socket) -> str:
    return f"nodes.{socket.node}.interfaces.{socket.port}"


def _cable(topology: Topology, cable: Cable, ends: Mapping[Socket, PortFacts]) -> Iterator[CheckFinding]:
    (one, its), (other, others) = ends.items()
    taken = [_name(socket, end) for socket, end in ends.items() if end.device is None]
    down = {socket: end for socket, end in ends.items() if end.device is not None and not end.up}
    without = {socket: end for socket, end in ends.items() if end.up and end.carrier is False}
    if taken:
        text = f"{' and '.join(taken)} has no port of the kernel, so its link state is unknown"
        yield ok(_place(one), "link", f"{cable.link}: {text}")
    elif down:
        text = ", ".join(f"{_name(socket, end)} is down" for socket, end in down.items())
        commands = (
            f"`{command_text('ip', 'link', 'set', end.device, 'up')}` on {socket.node}" for socket, end in down.items()
        )
        fix = f"runs bring the ports up; to check the link before, run {' and '.join(commands)}"
        yield warning(_place(next(iter(down))), "link", f"{cable.link}: {text}, so its link cannot be seen", fix)
    elif len(without) == 1:
        (socket, end), with_link = next(iter(without.items())), other if one in without else one
        text = f"{_name(socket, end)} has no link, but {_name(with_link, ends[with_link])} has one"
        fix = "the cable goes elsewhere: see where with lldpctl or ethtool --identify, correct `link` or the cabling"
        yield problem(_place(socket), "link", f"{cable.link}: {text}", fix)
    elif without:
        text = f"neither {_name(one, its)} nor {_name(other, others)} has a link"
        yield problem(_place(one), "link", f"{cable.link}: {text}", "plug the cable, check transceivers and FEC")
    else:
        yield from _speeds(topology, cable, ends)


def _speeds(topology: Topology, cable: Cable, ends: Mapping[Socket, PortFacts]) -> Iterator[CheckFinding]:
    (one, its), (other, others) = ends.items()
    sound = True
    if its.speed_mbps and others.speed_mbps and its.speed_mbps != others.speed_mbps:
        sound = False
        text = f"{_name(one, its)} runs at {its.speed_mbps} Mb/s, {_name(other, others)} at {others.speed_mbps}"
        fix = "they are not each other's ends, correct `link` or the cabling"
        yield problem(_place(one), "link", f"{cable.link}: {text}", fix)
    if its.fec and others.fec and its.fec != others.fec:
        sound = False
        text = f"{_name(one, its)} has FEC {its.fec}, {_name(other, others)} has {others.fec}"
        fix = f"set both alike: {command_text('ethtool', '--set-fec', its.device, 'encoding', 'rs')}"
        yield warning(_place(one), "FEC", f"{cable.link}: {text}", fix)
    for socket, end in ends.items():
        rate_bps = topology.nodes[socket.node].interfaces[socket.port].rate_bps
        if rate_bps and end.speed_mbps and rate_bps != end.speed_mbps * 1_000_000:
            sound = False
            text = f"{_name(socket, end)} runs at {end.speed_mbps} Mb/s, the file says {rate_bps / 1e6:.0f}"
            fix = f"say rate_bps: {end.speed_mbps * 1_000_000}, or ethtool -s {end.device} speed …"
            yield problem(f"{_place(socket)}.rate_bps", "speed", f"{cable.link}: {text}", fix)
    if sound:
        speed = f"{its.speed_mbps} Mb/s" if its.speed_mbps else "no speed of its own"
        yield ok(_place(one), "link", f"{cable.link}: {_name(one, its)} - {_name(other, others)}, up, {speed}")
