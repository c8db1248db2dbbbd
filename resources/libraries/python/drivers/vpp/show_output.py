"""Parsers of the output of VPP's show commands, and counters by the plan's ports. Pure; for VPP 22.10 to 26.10."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.node_costs import NodeCost

_VERSION = re.compile(r"\bv(\d\S*)")
_INTERFACE = re.compile(r"^(\S+)\s+(\d+)\s+(up|down)\s+(\S+)(?:\s+(\S.*?)\s+(\d+))?\s*$")
_COUNTER = re.compile(r"^\s+([a-z].*?)\s+(\d+)\s*$")
_HARDWARE = re.compile(r"^(\S+)\s+\d+\s+(up|down)\s")
_NO_SLOT = re.compile(r"^\s+no tx slot:\s+(\d+)")
_MEMIF = re.compile(r"^interface (\S+)")
_FLAGS = re.compile(r"^\s+flags\b(.*)$")
_RING = re.compile(r"^\s+(master-to-slave|slave-to-master) ring \d+:")
_HEAD = re.compile(r"^\s+head (\d+)\s")
_REASON = re.compile(r'^\s+(?:local|remote)-disc-reason "(.*)"')
_VHOST = re.compile(r"^Interface: (\S+)")
_PLACED_THREAD = re.compile(r"^Thread (\d+) \(")
_PLACED_QUEUE = re.compile(r"^\s+(\S+) queue (\d+) \((\w+)\)")
_THREAD = re.compile(r"^\s*(\d+)\s+(vpp_\w+)\s+(?:[a-z]+\s+)?(\d+)\s")
_WORK_THREAD = re.compile(r"^Thread (\d+) (\S{1,200})(?!\S)")
_WORK_NODE = re.compile(
    r"^(\S{1,200})\s+(.*?)\s+(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})\s+(\d{1,9}\.\d{1,9}e-?\d{1,2})\s+(\S+)\s*$"
)
"""Names and numbers that a record can have."""
_ONLY_THREAD = "vpp_main"
_ACCESS_LIST = re.compile(r"^acl-index 0 count (\d+) tag \{(.*)\}$")
_LOOKED_UP = re.compile(r"^ +input acl\(s\): 0$")
_PROTECTED = re.compile(r"^(\S+) flags:\[")
_ASSOCIATION = re.compile(r"^ +\[\d+\] sa (\d+) ")
_ACTIVE = re.compile(r"\b([a-z0-9_-]+)\*")
_ERROR = re.compile(r"^\s*(\d+)\s+(\S+)\s+(\S.*?)\s+(error|warn|info)\s*$")
_MAX_LOSSES = 4
_LONGEST_LINE = 500
"""Characters; VPP's own lines have up to about 150."""
_INPUT = ("polling", "interrupt wa")
"""How the state of a node begins that takes packets in; the column cuts it off."""


def version(text: str) -> str:
    """The version in what `show version` says: `26.10-rc0~374-gb575ec2c56d`."""
    match = _VERSION.search(text)
    return match[1] if match else "of unknown version"


def _lines(text: str) -> Iterator[str]:
    """Lines, cut: patterns with optional spaces take the square of a line's length."""
    return (line[:_LONGEST_LINE] for line in text.splitlines())


def _blocks(text: str, heading: re.Pattern[str]) -> list[tuple[re.Match[str], list[str]]]:
    """Headings, each with the lines below it up to the next one; what comes before the first is left out."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in _lines(text):
        if match := heading.match(line):
            found.append((match, []))
        elif found:
            found[-1][1].append(line)
    return found


@dataclass(frozen=True, slots=True)
class InterfaceRow:
    """A row of `show interface`."""

    up: bool
    counters: Mapping[str, int] = field(default_factory=dict)
    """By VPP's name, such as `rx packets`; those that are 0 are not shown."""

    def count(self, name: str) -> int:
        """A counter."""
        return self.counters.get(name, 0)


def interfaces(text: str) -> dict[str, InterfaceRow]:
    """Read `show interface`."""
    found = {}
    for head, lines in _blocks(text, _INTERFACE):
        first = {head[5]: int(head[6])} if head[5] else {}
        more = {match[1]: int(match[2]) for match in map(_COUNTER.match, lines) if match}
        found[head[1]] = InterfaceRow(head[3] == "up", first | more)
    return found


def links(text: str) -> dict[str, bool]:
    """Read `show hardware-interfaces`: whether each interface has a link."""
    found = filter(None, map(_HARDWARE.match, _lines(text)))
    return {match[1]: match[2] == "up" for match in found}


def full_rings(text: str) -> dict[str, int]:
    """Read `show hardware-interfaces`: packets that each memif could not send because its ring was full."""
    found: dict[str, int] = {}
    for head, lines in _blocks(text, _HARDWARE):
        for match in filter(None, map(_NO_SLOT.match, lines)):
            found[head[1]] = found.get(head[1], 0) + int(match[1])
    return found


@dataclass(frozen=True, slots=True)
class SharedMemoryLink:
    """A link of shared memory, of `show memif` or `show vhost-user`."""

    connected: bool
    why: str = ""
    """Why it is not, where VPP says."""
    fed: bool = False
    """The slave of a memif has put buffers into all rings that the master sends to; before, what is sent is lost."""


def memifs(text: str) -> dict[str, SharedMemoryLink]:
    """Read `show memif`."""
    found = {}
    for head, lines in _blocks(text, _MEMIF):
        connected, why, fed, to_slave = False, "", list[bool](), False
        for line in lines:
            if match := _FLAGS.match(line):
                connected = "connected" in match[1].split()
            elif match := _RING.match(line):
                to_slave = match[1] == "master-to-slave"
            elif to_slave and (match := _HEAD.match(line)):
                fed.append(int(match[1]) > 0)
            elif match := _REASON.match(line):
                why = match[1]
        found[head[1]] = SharedMemoryLink(connected, why, bool(fed) and all(fed))
    return found


def vhosts(text: str) -> dict[str, SharedMemoryLink]:
    """Read `show vhost-user`: one is connected when the guest has shared its memory."""
    found = {}
    for head, lines in _blocks(text, _VHOST):
        regions = [line for line in lines if "Memory regions (total" in line]
        found[head[1]] = SharedMemoryLink(bool(regions) and "(total 0)" not in regions[-1])
    return found


@dataclass(frozen=True, slots=True)
class Queue:
    """Where a receive queue is looked after."""

    thread: int
    """0 is the main thread, 1 the first worker."""
    mode: str


RxPlacement = Mapping[str, tuple[Queue, ...]]
"""Receive queues by interface, in order of their numbers."""


def rx_placement(text: str) -> dict[str, tuple[Queue, ...]]:
    """Read `show interface rx-placement`: the queues of each interface that has any."""
    found: dict[str, dict[int, Queue]] = {}
    for head, lines in _blocks(text, _PLACED_THREAD):
        for match in filter(None, map(_PLACED_QUEUE.match, lines)):
            found.setdefault(match[1], {})[int(match[2])] = Queue(int(head[1]), match[3])
    return {name: tuple(queues[number] for number in sorted(queues)) for name, queues in found.items()}


def threads(text: str) -> dict[int, int]:
    """Read `show threads`: thread ids of the kernel by VPP's number, 0 for the main thread."""
    found = (_THREAD.match(line) for line in _lines(text))
    return {int(match[1]): int(match[3]) for match in found if match}


def access_list(text: str) -> tuple[int, str]:
    """Read `show acl-plugin acl index 0`: number of rules and tag; none and an empty one where there is no list."""
    match = next(filter(None, map(_ACCESS_LIST.match, _lines(text))), None)
    return (int(match[1]), match[2]) if match else (0, "")


def with_access_list(text: str) -> int:
    """Read `show acl-plugin interface`: how many interfaces look received packets up in the first access list."""
    return sum(bool(_LOOKED_UP.match(line)) for line in _lines(text))


def protected(text: str) -> dict[str, tuple[int, ...]]:
    """Read `show ipsec protect`: numbers of the security associations of each tunnel, the outbound one first."""
    rows = _blocks(text, _PROTECTED)
    return {head[1]: tuple(int(match[1]) for match in map(_ASSOCIATION.match, lines) if match) for head, lines in rows}


def crypto_engine(text: str, algorithms: Iterable[str]) -> str:
    """Read `show crypto handlers`: the engine in use for the first of some algorithms that it knows; empty for none."""
    rows = {words[0]: line for line in _lines(text) if (words := line.split())}
    row = next((rows[name] for name in algorithms if name in rows), "")
    match = _ACTIVE.search(row)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class ThreadWork:
    """Work of one thread, from `show runtime`."""

    thread: str
    packets: int
    """Taken in by its input nodes."""
    vectors_per_call: float
    """Mean size of the batches in which the graph forwarded; 256 is the most, and says that it had no time to spare."""
    clocks_per_packet: float

    def __str__(self) -> str:
        return f"{self.thread} {self.vectors_per_call:.1f} packets per call, {self.clocks_per_packet:.0f} clocks each"


def _working_nodes(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the nodes of `show runtime` that have had packets, with their threads; one thread alone has no heading."""
    thread = _ONLY_THREAD
    for line in _lines(text):
        if match := _WORK_THREAD.match(line):
            thread = match[2]
        elif (match := _WORK_NODE.match(line)) and int(match[3]) and int(match[4]):
            yield thread, match


def node_costs(part: str, text: str) -> tuple[NodeCost, ...]:
    """Read `show runtime`: the nodes that have had packets. Polls without a packet cost the packets that came."""
    return tuple(
        NodeCost(
            part=part,
            thread=thread,
            node=match[1],
            packets=int(match[4]),
            calls=int(match[3]),
            cost=float(match[6]),
            error=_half_digit(match[6]),
        )
        for thread, match in _working_nodes(text)
    )


def _half_digit(number: str) -> float:
    """Half of the last printed digit of a number such as `4.06e2`."""
    *_, last = Decimal(number).as_tuple()
    return float(Decimal("0.5").scaleb(int(last)))


def runtime(text: str) -> tuple[ThreadWork, ...]:
    """Read `show runtime`: threads that have had packets."""
    rows: dict[str, list[tuple[bool, int, int, float]]] = {}
    for thread, match in _working_nodes(text):
        is_input = match[2].strip('"').startswith(_INPUT)
        rows.setdefault(thread, []).append((is_input, int(match[3]), int(match[4]), float(match[6])))
    return tuple(work for name, nodes in rows.items() if (work := _work(name, nodes)))


def _work(thread: str, nodes: list[tuple[bool, int, int, float]]) -> ThreadWork | None:
    packets = sum(vectors for is_input, _, vectors, _ in nodes if is_input)
    inner = [(calls, vectors) for is_input, calls, vectors, _ in nodes if not is_input]
    if not packets or not inner:
        return None
    return ThreadWork(
        thread=thread,
        packets=packets,
        vectors_per_call=sum(vectors for _, vectors in inner) / sum(calls for calls, _ in inner),
        clocks_per_packet=sum(vectors * clocks for _, _, vectors, clocks in nodes) / packets,
    )


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A row of `show errors`."""

    count: int
    node: str
    reason: str
    severity: str

    @property
    def is_loss(self) -> bool:
        """Whether it counts lost packets: VPP counts some that were forwarded among its errors too."""
        return self.severity == "error" and not self.reason.endswith((" packets", " misses", " hits"))


def losses(text: str) -> str:
    """Read `show errors`: the most frequent reasons for lost packets as one line."""
    rows = [row for row in errors(text) if row.is_loss]
    return "; ".join(f"{row.count} {row.reason} ({row.node})" for row in rows[:_MAX_LOSSES])


def errors(text: str) -> tuple[ErrorRow, ...]:
    """Read `show errors`, most first."""
    matches = (_ERROR.match(line) for line in _lines(text))
    found = [ErrorRow(int(match[1]), match[2], match[3], match[4]) for match in matches if match]
    return tuple(sorted(found, key=lambda row: -row.count))


def counted(
    interfaces: Sequence[VppInterface],
    of_vpp: Mapping[str, InterfaceRow],
    full_rings: Mapping[str, int],
    of_kernel: Mapping[str, InterfaceCounters],
) -> Iterator[tuple[str, InterfaceCounters]]:
    """Counters of each port.

    Of a port of the kernel, what VPP has not taken from the socket's ring was dropped by a full queue, and what was
    sent is the kernel's number: VPP counts a packet as sent that the kernel then refuses. Of shared memory, a packet
    that meets a full ring counts as sent as well; where VPP says how many those were, they are taken off. What a NIC
    missed or could not send is known of all its VLANs together, and given for each of them.

    `of_vpp`: from `show interface`.
    `full_rings`: from `show hardware-interfaces`.
    """
    for each in interfaces:
        for port, vlan in each.ports:
            seen = of_vpp.get(each.name_of(vlan))
            if seen is None:
                continue
            received, sent = seen.count("rx packets"), seen.count("tx packets")
            device = of_vpp.get(each.name, seen)
            missed = device.count("rx-miss") + device.count("rx-no-buf")
            dropped = device.count("tx-error")
            if each.kind is InterfaceKind.HOST and vlan is None and port in of_kernel:
                kernel = of_kernel[port]
                missed = kernel.rx_dropped + max(0, kernel.rx_packets - received)
                sent, dropped = kernel.tx_packets, kernel.tx_dropped
            elif each.kind is InterfaceKind.MEMIF:
                dropped = full_rings.get(each.name, 0)
                sent -= dropped
            yield port, InterfaceCounters(received, sent, missed, dropped)
