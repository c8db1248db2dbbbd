"""Configuration of a VPP as commands: interfaces, RX queues on workers, routes of an NF. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address

from resources.libraries.python.drivers.vpp.interfaces import VppInterface, ring
from resources.libraries.python.drivers.vpp.show_output import RxPlacement
from resources.libraries.python.drivers.vpp.startup import RxMode, WorkerPlacement
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.rendering import render

_NO_SENDER = int(IPv4Address("198.18.0.0"))
"""198.18.0.0/15 is for measurements (RFC 2544), and no flow of a plan uses it."""
_PERMIT = ("permit src ::/0 dst ::/0", "permit src 0.0.0.0/0 dst 0.0.0.0/0")
"""VPP refuses a rule whose source and destination are not of one version of IP; what is not said is 0.0.0.0/0."""


def commands(template: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """The commands that a template gives, one from each line; lines that begin with # are remarks."""
    lines = (" ".join(line.split()) for line in render(template, values).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def making(interfaces: Sequence[VppInterface], largest_frame_bytes: int) -> tuple[str, ...]:
    """Make interfaces with the plan's names; they are down yet."""
    return commands("vpp-interfaces.j2", {"interfaces": interfaces, "ring": ring(largest_frame_bytes)})


def default_mode(rx_mode: RxMode) -> str:
    """What says how the queues wait that will come into being. Older VPPs do not know it."""
    return f"set interface default rx-mode {rx_mode}"


def moves(
    interfaces: Sequence[VppInterface], placement: WorkerPlacement, rx_mode: RxMode, shown: RxPlacement
) -> Iterator[str]:
    """Move receive queues to the workers that are planned for them, and let these wait as they should.

    Args:
        interfaces: Of this VPP.
        placement: Its threads.
        rx_mode: How they wait.
        shown: Where the queues are. One that is not there is passed over: shared memory has queues only while its other
            end is there. A virtual NIC may have more of them than are planned; those take turns on the same workers.
    """
    for each in interfaces:
        for number, queue in enumerate(shown.get(each.name, ())):
            worker = placement.worker_of(each.data_threads[number % each.queues])
            place = f"{each.name} queue {number}"
            if queue.thread != (0 if worker is None else worker + 1):
                yield f"set interface rx-placement {place} {'main' if worker is None else f'worker {worker}'}"
            if queue.mode != rx_mode:
                yield f"set interface rx-mode {place} {rx_mode}"


def routing(function: NfPlan) -> tuple[str, ...]:
    """Addresses, static neighbours and routes of both sides, then bring them up.

    Args:
        function: Its interfaces are made and named already.
    """
    return commands("vpp-router.j2", {"sides": (function.left, function.right)})


def access_list(rules: int, version: int) -> str:
    """A file of commands that makes an access list, the first one, which lets every packet of a plan pass.

    Args:
        rules: How many it has, at least 1; none but the last ones match, of IPv4 and of IPv6.
        version: Its tag. Those after 1 replace the one that is there.
    """
    senders = (IPv4Address(_NO_SENDER + number) for number in range(max(0, rules - len(_PERMIT))))
    rows = [*(f"deny src {sender}/32" for sender in senders), *_PERMIT[-rules:]]
    return f"set acl-plugin acl {'index 0 ' if version > 1 else ''}tag {version} {' , '.join(rows)}\n"


def access_by(names: Iterable[str]) -> Iterator[str]:
    """Look all packets that interfaces receive up in the first access list."""
    return (f"set acl-plugin interface {name} input acl 0" for name in names)
