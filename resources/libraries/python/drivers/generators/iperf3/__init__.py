"""iperf3, a generator of real TCP connections and UDP flows between sockets.

Seen on iperf3 3.12:

- Client and server agree on a run over a TCP connection of their own, to the same address: it takes the way of the
  data, some forty packets of it for each run. With a service that lets nothing through the client gives up after the
  time of `--connect-timeout`.
- Both report each second (`-J`), each what it knows: the sender what was sent, the receiver what arrived. Of `-J` the
  client writes an error into its report and ends with 0 or 1.
- `--bidir` lets both ends send; sums of the way back are called `..._bidir_reverse`. Its own ending counts a packet or
  two more at the server than the client asked for.
- Sessions (`-P`) of a run are at most 128. Each has a port of its own; addresses are the client's and the server's.
- A server takes one client at a time, so each service instance has its own, on a port of its own.
- Durations are whole seconds.
"""

from collections.abc import Mapping, Sequence

from resources.libraries.python.model.driver import GeneratorDriver, RequiredProgram
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.traffic import Protocol

_FIRST_PORT = 5201


def port(instance: int) -> int:
    """Where the server of a service instance listens."""
    return _FIRST_PORT + instance - 1


def _load_ports(flows: Sequence[Flow]) -> Mapping[Protocol, tuple[int, ...]]:
    ports = tuple(dict.fromkeys(port(flow.instance) for flow in flows))
    return {Protocol.UDP: ports, Protocol.TCP: ports}


DRIVERS = (
    GeneratorDriver(
        name="iperf3",
        label="iperf3",
        factory="resources.libraries.python.drivers.generators.iperf3.driver:Iperf3Generator",
        programs=(RequiredProgram("iperf3", "iperf3"),),
        protocols=(Protocol.UDP, Protocol.TCP),
        load_ports=_load_ports,
        keeps_log=True,
        loops_back=2,
        one_way=frozenset({Protocol.TCP}),
        resends=frozenset({Protocol.TCP}),
    ),
)
