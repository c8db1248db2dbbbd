"""Declaration of httperf as the peer that opens TCP connections."""

from resources.libraries.python.model.driver import GeneratorDriver, RequiredProgram
from resources.libraries.python.model.measurements.trial import Protocol

PORTS = (1024, 65535)
"""Range from which the kernel chooses the client's ports."""
MOST_CONNECTIONS = (PORTS[1] - PORTS[0]) // 2
"""Of an instance in a trial: as many have 5-tuples of their own."""
DRIVERS = (
    GeneratorDriver(
        name="httperf",
        label="httperf",
        factory="resources.libraries.python.drivers.generators.httperf.driver:HttperfClients",
        programs=(RequiredProgram("httperf", "httperf"), RequiredProgram("nginx", "nginx")),
        protocols=(),
        connections=frozenset({Protocol.TCP}),
        most_connections=MOST_CONNECTIONS,
        loops_back=2,
    ),
)
