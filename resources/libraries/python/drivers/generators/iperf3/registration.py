"""Declaration of iperf3 as the generator."""

from resources.libraries.python.model.driver import GeneratorDriver, RequiredProgram
from resources.libraries.python.model.request.traffic import Protocol

DRIVERS = (
    GeneratorDriver(
        name="iperf3",
        label="iperf3",
        factory="resources.libraries.python.drivers.generators.iperf3.driver:Iperf3Generator",
        missing="resources.libraries.python.drivers.generators.iperf3.driver:missing",
        programs=(RequiredProgram("iperf3", "iperf3"),),
        protocols=(Protocol.UDP, Protocol.TCP),
        keeps_log=True,
        loops_back=2,
        one_way=frozenset({Protocol.TCP}),
        resends=frozenset({Protocol.TCP}),
    ),
)
