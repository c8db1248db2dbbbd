"""Commands that make the interfaces of a VPP, and where its queues are looked after. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from resources.libraries.python.drivers.vpp.interfaces import Interface, ring
from resources.libraries.python.drivers.vpp.placement import Placement
from resources.libraries.python.drivers.vpp.shown import Queue
from resources.libraries.python.drivers.vpp.startup import RxMode
from resources.libraries.python.drivers.vpp.templates import commands


def making(interfaces: Sequence[Interface], largest_frame_bytes: int) -> tuple[str, ...]:
    """Make interfaces with the plan's names; they are down yet."""
    return commands("vpp-interfaces.j2", {"interfaces": interfaces, "ring": ring(largest_frame_bytes)})


def default_mode(rx_mode: RxMode) -> str:
    """What says how the queues wait that will come into being. Older VPPs do not know it."""
    return f"set interface default rx-mode {rx_mode}"


def moves(
    interfaces: Sequence[Interface], placement: Placement, rx_mode: RxMode, shown: Mapping[str, Queue]
) -> Iterator[str]:
    """Move receive queues to the workers that are planned for them, and let these wait as they should.

    Args:
        interfaces: Of this VPP.
        placement: Its threads.
        rx_mode: How they wait.
        shown: Where the queues are. An interface without a queue is passed over: shared memory has one only while its
            other end is there.
    """
    for each in interfaces:
        queue, worker = shown.get(each.name), placement.worker_of(each.data_thread)
        wanted = 0 if worker is None else worker + 1
        if queue is None:
            continue
        if queue.thread != wanted:
            yield f"set interface rx-placement {each.name} queue 0 {'main' if worker is None else f'worker {worker}'}"
        if queue.mode != rx_mode:
            yield f"set interface rx-mode {each.name} queue 0 {rx_mode}"
