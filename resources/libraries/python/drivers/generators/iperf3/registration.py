"""Declaration of iperf3 as the generator."""

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
