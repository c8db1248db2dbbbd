"""The simulated generator."""

from resources.libraries.python.model.driver import GeneratorDriver
from resources.libraries.python.model.request.traffic import Protocol

DRIVERS = (
    GeneratorDriver(
        name="sim",
        label="simulated generator",
        protocols=tuple(Protocol),
        resends=frozenset({Protocol.TCP}),
        numbers_packets=True,
        opens_connections=True,
        ipv6=True,
        captures=True,
    ),
)
