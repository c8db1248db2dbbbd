"""Declaration of TRex as the generator. Its packets are made of the traffic profile of the built-in one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import PACKET, GeneratorDriver, Leftover, NodeCheck, PortOption
from resources.libraries.python.model.measurements.trial import Protocol
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode


class Trex(Frozen):
    """How TRex is run."""

    directory: str = "/opt/trex"
    """Where it is installed: the folder that has `t-rex-64`."""
    ports: Literal["auto", "dpdk", "af_packet"] = "auto"
    """How it takes its ports: DPDK drivers by PCI address, or AF_PACKET sockets on ports of the kernel (software mode);
    `auto` is DPDK on NICs that DPDK knows."""
    python: str = "auto"
    """The Python that runs its client library, 3.6 to 3.12, or a later one with the package legacy-cgi; `auto` is this
    project's own, or else the first of the system's that will do."""
    memory_mb: Annotated[int, Field(ge=128)] | None = None
    """Memory that it takes, in huge pages with DPDK; None for its own choice."""


_DPDK_MB = 1024
"""Huge pages with DPDK, where the topology does not say."""

MOST_CONNECTIONS = 64_512
"""Of an instance in a trial: as many ports from 1024 on has one of its client addresses."""
HUGE_FILES = "huge_files"
"""Prefixes of files in hugetlbfs that it keeps its memory in."""
LEFTOVERS = (
    Leftover(
        key=HUGE_FILES,
        label="huge page files of",
        remove="resources.libraries.python.drivers.generators.trex.server:remove_left",
    ),
)
_PACKAGE = "resources.libraries.python.drivers.generators.trex"


def _directory(node: TgNode | DutNode) -> Mapping[str, Any] | None:
    """Return where TRex is on a node that sends by it, or by it and another generator; None elsewhere."""
    wanted = isinstance(node, TgNode) and (node.generator.driver == "trex" or "trex" in (node.model_extra or {}))
    return {"directory": node.settings(Trex).directory} if wanted else None


CHECKS = (NodeCheck(sent=f"{_PACKAGE}.trex_facts", arguments=_directory, check=f"{_PACKAGE}.requirements:check"),)
DRIVERS = (
    GeneratorDriver(
        name="trex",
        label="TRex",
        options={"trex": Trex},
        factory=f"{_PACKAGE}.driver:make",
        missing=f"{_PACKAGE}.requirements:missing_on",
        kernel=(replace(PACKET, when=lambda node: node.settings(Trex).ports == "af_packet"),),
        words=("t-rex", "t-rex-64"),
        protocols=(Protocol.IP,),
        ports=PortOption(Trex, "af_packet", "AF_PACKET sockets"),
        tags_frames=True,
        loops_back=2,
        huge_pages_mb=lambda node: node.settings(Trex).memory_mb or _DPDK_MB,
    ),
    GeneratorDriver(
        name="trex_astf",
        label="TRex ASTF",
        options={"trex": Trex},
        factory=f"{_PACKAGE}.stateful:make",
        missing=f"{_PACKAGE}.requirements:missing_on",
        kernel=(replace(PACKET, when=lambda node: node.settings(Trex).ports == "af_packet"),),
        protocols=(),
        ports=PortOption(Trex, "af_packet", "AF_PACKET sockets"),
        vlan_problem="TRex opens TCP connections without VLAN tags",
        connections=frozenset({Protocol.TCP}),
        most_connections=MOST_CONNECTIONS,
        loops_back=2,
        huge_pages_mb=lambda node: node.settings(Trex).memory_mb or _DPDK_MB,
    ),
)
