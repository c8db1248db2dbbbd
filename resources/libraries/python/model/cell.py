"""What is asked of one test: a cell of the density matrix, a frame size."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen


class ServiceType(StrEnum):
    """How NFs are packaged and how packets go through them."""

    VSC = "VSC"
    """VM service chain: a snake, every hop crosses the vSwitch."""
    CSC = "CSC"
    """Container service chain: a snake, every hop crosses the vSwitch."""
    CSP = "CSP"
    """Container service pipeline: NFs linked to each other, only the edges cross the vSwitch."""

    @property
    def is_pipeline(self) -> bool:
        """Whether neighbouring NFs are linked directly."""
        return self is ServiceType.CSP


class TestType(StrEnum):
    """What a test measures."""

    __test__ = False  # not a pytest class

    NDRPDR = "NDRPDR"
    MRR = "MRR"
    LATENCY = "LATENCY"


class NfSize(StrEnum):
    """Data-plane cores of one NF, as the draft writes them."""

    HALF = "0.5c"
    ONE = "1c"
    TWO = "2c"

    @property
    def cores(self) -> float:
        """Physical data cores (CSIT's nf_dtc)."""
        return float(self.value[:-1])


class NfKind(StrEnum):
    """What an NF runs in; the drivers behind `roles.function`."""

    LINUX_ROUTER = "linux_router"
    """IPv4 routing in the Linux kernel, a network namespace each."""
    LINUX_FIREWALL = "linux_firewall"
    """A Linux router that looks every packet up in a hundred rules of nftables first."""
    LINUX_NAT = "linux_nat"
    """A Linux router that translates source addresses on the way forward."""
    TESTPMD = "testpmd"
    """DPDK's packet forwarder, a process each."""
    QEMU = "qemu"
    """A virtual machine that routes IPv4 in its Linux kernel."""
    VPP = "vpp"
    """VPP that routes IPv4, in a container or as a plain process each."""
    QEMU_VPP = "qemu_vpp"
    """A virtual machine in which VPP routes IPv4."""
    SIM = "sim"

    @property
    def is_namespace(self) -> bool:
        """Whether it is a network namespace in which the kernel itself forwards, in the data threads of its ports."""
        return self in {NfKind.LINUX_ROUTER, NfKind.LINUX_FIREWALL, NfKind.LINUX_NAT}

    @property
    def is_shareable(self) -> bool:
        """Whether one NF of the kind has interfaces for any number of service instances; others have just two."""
        return self.is_namespace or self is NfKind.SIM


ALL_INSTANCES = 0
"""In the place of an instance's number: something that is one for all instances."""


class Cell(Frozen):
    """One point of the density matrix with the sizes of its vSwitch and NFs."""

    service_type: ServiceType
    nf_chains: Annotated[int, Field(ge=1)]
    """Service instances (row)."""
    nf_nodes: Annotated[int, Field(ge=1)]
    """NFs per service instance (column)."""
    nf_sizes: Annotated[tuple[NfSize, ...], Field(min_length=1)] = (NfSize.ONE,)
    """One size for all NFs of an instance, or one per NF of an instance."""
    vs_dtc: Annotated[int, Field(ge=1, le=4)] = 1
    """Physical data cores of the vSwitch."""
    nf_kinds: tuple[NfKind, ...] = ()
    """What the NFs of an instance are: one kind for all, one per NF, or empty for the testbed's own kind."""
    shared_nodes: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(), exclude_if=lambda nodes: not nodes)
    """Nodes (1-based) that are one NF for all instances. With two instances of three NFs, (1, 3) is a split and merge:
    two branches between two routers."""

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        for what, row in (("NF sizes", self.nf_sizes), ("NF kinds", self.nf_kinds)):
            if len(row) not in (0, 1, self.nf_nodes):
                raise ValueError(f"{len(row)} {what} for {self.nf_nodes} NFs; give one for all or one for each")
        return self

    @model_validator(mode="after")
    def _shared_nodes_fit(self) -> Self:
        for node in self.shared_nodes:
            if node > self.nf_nodes:
                raise ValueError(f"node {node} is to be shared, and an instance has {self.nf_nodes} NFs")
        if list(self.shared_nodes) != sorted(set(self.shared_nodes)):
            raise ValueError(f"shared nodes {self.shared_nodes}: write each once, in ascending order")
        if self.shared_nodes and not self.service_type.is_pipeline:
            raise ValueError(
                "nodes are shared in a CSP only, where NFs are linked to each other: in a "
                f"{self.service_type} every hop crosses the vSwitch"
            )
        return self

    def size_of(self, node: int) -> NfSize:
        """The size of NF `node` (1-based) of every instance."""
        return self.nf_sizes[0] if len(self.nf_sizes) == 1 else self.nf_sizes[node - 1]

    def kind_of(self, node: int) -> NfKind | None:
        """What NF `node` (1-based) of every instance is; None where the testbed decides."""
        if not self.nf_kinds:
            return None
        return self.nf_kinds[0] if len(self.nf_kinds) == 1 else self.nf_kinds[node - 1]

    def holder(self, instance: int, node: int) -> int:
        """The instance in the name of an NF: its own, or ALL_INSTANCES where the node is shared."""
        return ALL_INSTANCES if node in self.shared_nodes else instance

    def nfs(self) -> Iterator[tuple[int, int]]:
        """All NFs as (instance in the name, node), instance by instance; shared ones once, with the first instance."""
        for instance in range(1, self.nf_chains + 1):
            for node in range(1, self.nf_nodes + 1):
                if instance == 1 or node not in self.shared_nodes:
                    yield self.holder(instance, node), node

    def count_of(self, node: int) -> int:
        """NFs at a node (1-based) of all instances."""
        return 1 if node in self.shared_nodes else self.nf_chains

    @property
    def nf_count(self) -> int:
        """All NFs of the cell; a shared one counts once."""
        return self.nf_chains * self.nf_nodes - (self.nf_chains - 1) * len(self.shared_nodes)

    @property
    def size_name(self) -> str:
        """The NF sizes as one word: `1c`, or `1c+0.5c` for a service of different NFs."""
        return "+".join(self.nf_sizes)

    @property
    def locator(self) -> str:
        """Row and column as CSIT tags them: `2R4C`."""
        return f"{self.nf_chains}R{self.nf_nodes}C"


class FramePart(Frozen):
    """One frame size of a mix. Sizes are L2 with FCS."""

    frame_bytes: Annotated[int, Field(ge=64, le=9018)]
    weight: Annotated[int, Field(ge=1)] = 1


class Frame(Frozen):
    """A frame size or a mix of them, with its definition: peers mean different things by the same name."""

    name: str
    parts: Annotated[tuple[FramePart, ...], Field(min_length=1)]

    @property
    def mean_bytes(self) -> float:
        """Mean L2 frame size in bytes, FCS included."""
        weight = sum(part.weight for part in self.parts)
        return sum(part.frame_bytes * part.weight for part in self.parts) / weight

    @property
    def largest_bytes(self) -> int:
        """The largest L2 frame of the mix in bytes, FCS included."""
        return max(part.frame_bytes for part in self.parts)
