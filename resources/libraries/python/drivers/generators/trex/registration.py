"""Declaration of TRex as the generator. Its packets are made of the traffic profile of the built-in one."""

from resources.libraries.python.model.driver import GeneratorDriver, PortOption
from resources.libraries.python.model.trial import Protocol

_DPDK_MB = 1024
"""Huge pages with DPDK, where the topology does not say."""

DRIVERS = (
    GeneratorDriver(
        name="trex",
        label="TRex",
        factory="resources.libraries.python.drivers.generators.trex.driver:make",
        missing="resources.libraries.python.drivers.generators.trex.requirements:missing_on",
        words=("t-rex", "t-rex-64"),
        protocols=(Protocol.IP,),
        ports=PortOption("trex", "af_packet", "AF_PACKET sockets"),
        tags_frames=True,
        huge_pages_mb=lambda node: node.trex.memory_mb or _DPDK_MB,
    ),
)
