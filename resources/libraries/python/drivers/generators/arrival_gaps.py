"""Gaps between arrivals, by the kernel's time stamps, for generators that do not stamp packets themselves."""

import math
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict

from resources.libraries.python.drivers.generators.builtin.arrivals import ArrivalRing, gap_report
from resources.libraries.python.drivers.generators.builtin.kernel import classic_bpf
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import FlowGaps, Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import GENERATOR

_BUT_TCP = classic_bpf(
    (0x30, 0, 0, 14 + 9),  # ldb protocol of an IPv4 packet
    (0x15, 1, 0, socket.IPPROTO_TCP),  # jeq TCP, drop
    (0x06, 0, 0, 0x40000),  # ret all of it
    (0x06, 0, 0, 0),  # drop: ret 0
)
"""Classic BPF: generators talk to themselves by TCP, which iperf3 does through the ports of its load."""
_ROOM = 1.25
"""Slots for each frame that is due: some generators send for longer than a trial lasts."""


@contextmanager
def arrival_gaps(plan: Plan, fabric: Fabric, trial: Trial) -> Iterator[Callable[[], tuple[FlowGaps, ...]]]:
    """Time-stamp arrivals at the generator's ports, if a trial asks for gaps.

    Yields:
        Function that returns the gaps of each flow after the trial; none if it does not ask for them.

    Raises:
        Unsupported: The trial has latency probes or no load, or flows arrive at the same port.
        CsitError: The kernel does not stamp frames at a port.
    """
    if not trial.measure_gaps:
        yield tuple
        return
    ports = [flow.rx_interface for flow in plan.flows]
    if not trial.load_pps or trial.probe_pps or len(set(ports)) < len(ports):
        raise Unsupported("gaps are measured of a load without latency probes, each flow of which has a port to itself")
    frames = round(_ROOM * trial.load_pps * math.ceil(trial.duration_s) / len(ports))
    with ExitStack() as stack:

        def begin() -> list[ArrivalRing]:
            return [stack.enter_context(closing(ArrivalRing(port, frames, _BUT_TCP))) for port in ports]

        rings = fabric.run_inside(GENERATOR, begin)

        def found() -> tuple[FlowGaps, ...]:
            reports = [gap_report(ring.stamps_ns()) for ring in rings]
            return tuple(
                FlowGaps(instance=flow.instance, direction=flow.direction, **asdict(report))
                for flow, report in zip(plan.flows, reports, strict=True)
                if report is not None
            )

        yield found
