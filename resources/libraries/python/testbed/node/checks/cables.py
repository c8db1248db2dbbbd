"""Both ends of the cables that carry services."""

from collections.abc import Iterator, Mapping

from resources.libraries.python.model.cabling import Cable, Socket
from resources.libraries.python.model.check_finding import CheckFinding, ok, problem, warning
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.redaction import command_text
from resources.libraries.python.testbed.node.facts import Facts, PortFacts


def check(topology: Topology, facts: Mapping[str, Facts]) -> Iterator[CheckFinding]:
    """Findings about cables both of whose ends were found.

    Args:
        topology: The testbed.
        facts: Of the nodes that could be reached, by name.
    """
    cables = {frozenset((cable.a, cable.b)): cable for way in topology.ways for cable in way}
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
