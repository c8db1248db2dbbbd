"""D-ITG, a generator of real UDP, TCP and ICMP flows between sockets, whose receiver sends every packet back.

Seen on D-ITG 2.8.1:

- The way back and forth is a two-way channel (`-m rttm`): the sender's log has the round trip of every packet that came
  back, the receiver's log those that arrived. Half of a round trip is taken as one way, so that no clocks need agree.
- Without `-poll` a flow sleeps between packets and wakes late: on one CPU it sent 13 % less than asked at 1,500
  packets per second, 30 % less at 5,000. With it a flow keeps its rate within some percent, but four on one CPU sent
  38 % of what was asked.
- `-sa` fails ("Address family not supported"): the source address is chosen by the route.
- The receiver ends when a run that it logs itself follows one that it logged on ITGLog. ITGLog is never used: it takes
  logs by UDP only, so they may lack packets, and each run takes a second longer.
- ICMP is sent in one-way mode only (`-m owdm`), as echo requests that the kernel at the other end answers; the
  receiver's log then mixes both, and no delay is taken from it.
- The receiver does not stand two senders at a time (with TCP it ends), and takes a port for all of its addresses.
- The smallest payload is 20 bytes. A run ends a second after its last packet for each of its flows.
"""

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
