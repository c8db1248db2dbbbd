"""Declaration of D-ITG as the generator."""

from resources.libraries.python.model.driver import GeneratorDriver, RequiredProgram
from resources.libraries.python.model.request.traffic import Departures, Protocol

DRIVERS = (
    GeneratorDriver(
        name="ditg",
        label="D-ITG",
        factory="resources.libraries.python.drivers.generators.ditg.driver:DitgGenerator",
        missing="resources.libraries.python.drivers.generators.ditg.programs:missing",
        programs=(RequiredProgram("ITGSend", "d-itg"), RequiredProgram("sar", "sysstat")),
        words=("ITGSend", "ITGRecv", "ITGDec"),
        protocols=(Protocol.UDP, Protocol.TCP, Protocol.ICMP),
        departures=tuple(Departures),
        keeps_log=True,
        least_frame_bytes=66,
        loops_back=2,
        resends=frozenset({Protocol.TCP}),
    ),
)
