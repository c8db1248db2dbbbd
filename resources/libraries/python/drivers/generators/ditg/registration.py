"""Declaration of D-ITG as the generator."""

from collections.abc import Mapping, Sequence

from resources.libraries.python.model.driver import GeneratorDriver, RequiredProgram
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.traffic import Departures, Protocol

FIRST_PORT = 10001
"""Each flow has a port of its own: the receiver takes a port for all of its addresses."""


def _load_ports(flows: Sequence[Flow]) -> Mapping[Protocol, tuple[int, ...]]:
    count = sum(flow.sources for flow in flows if flow.direction is Direction.FORWARD)
    ports = tuple(range(FIRST_PORT, FIRST_PORT + count))
    return {Protocol.UDP: ports, Protocol.TCP: ports}


DRIVERS = (
    GeneratorDriver(
        name="ditg",
        label="D-ITG",
        factory="resources.libraries.python.drivers.generators.ditg.driver:DitgGenerator",
        programs=(RequiredProgram("ITGSend", "d-itg"), RequiredProgram("sar", "sysstat")),
        words=("ITGSend", "ITGRecv", "ITGDec"),
        protocols=(Protocol.UDP, Protocol.TCP, Protocol.ICMP),
        departures=tuple(Departures),
        load_ports=_load_ports,
        keeps_log=True,
        least_frame_bytes=66,
        loops_back=2,
        resends=frozenset({Protocol.TCP}),
    ),
)
