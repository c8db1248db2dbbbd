"""Request of one test: a cell of the density matrix, a frame size."""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, Self, TypedDict

from pydantic import Field, model_validator

from resources.libraries.python import driver_registry
from resources.libraries.python.model.base import Frozen, is_empty, is_none
from resources.libraries.python.model.bounds import MAX_PARTS, MAX_VSWITCH_CORES
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize


class ServiceType(StrEnum):
    """Packaging of NFs and the path of packets through them."""

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
    """Type of a test."""

    __test__ = False  # not a pytest class

    NDRPDR = "NDRPDR"
    MRR = "MRR"
    LATENCY = "LATENCY"


ALL_INSTANCES = 0
"""In the place of an instance's number: something that is one for all instances."""


class Tap(Frozen):
    """A passive NF: it gets a copy of what crosses its service at one place, both ways, and forwards nothing."""

    position: Annotated[int, Field(ge=1)]
    """Before the NF of that node (1-based); one more than the last node is behind it."""
    kind: NfKind
    size: NfSize = NfSize.ONE
    limits: Limits = Limits()
    program: UserProgram | None = None

    @model_validator(mode="after")
    def _kind_fits(self) -> Self:
        if not self.kind.driver.passive:
            can = ", ".join(name for name, driver in driver_registry.functions().items() if driver.passive)
            raise ValueError(f"an NF of kind {self.kind} cannot be passive: packets have to go through it; {can} can")
        if reason := misfit(self.kind, self.program):
            raise ValueError(reason)
        return self


def misfit(kind: NfKind | None, program: UserProgram | None) -> str | None:
    """Return why an NF's kind and its user program do not fit together; None if they do."""
    if (kind is not None and kind.driver.takes_program) == (program is not None):
        return None
    if program is None:
        return f"an NF of kind {kind} needs a program"
    takes = " or ".join(name for name, driver in driver_registry.functions().items() if driver.takes_program)
    return f"only an NF of kind {takes} can have a program, not {kind or 'the default'}"


class DimensionColumns(TypedDict):
    """`Dimensions` as records and tables name them."""

    nf_chains: int
    nf_nodes: int


_LOCATOR = re.compile(r"\b(\d{1,4})R(\d{1,4})C\b", re.ASCII | re.IGNORECASE)


def readable_cells(text: str) -> str:
    """Return a text with the names of cells that people read, `2x4`, in the place of CSIT's tags of them, `2R4C`."""
    return _LOCATOR.sub(r"\1x\2", text)


class Dimensions(NamedTuple):
    """Row and column of a cell in the density matrix."""

    instances: int
    """Service instances."""
    nfs: int
    """NFs of each."""

    def __str__(self) -> str:
        """`2x4`."""
        return f"{self.instances}x{self.nfs}"

    @classmethod
    def of_tags(cls, tags: Iterable[str]) -> "Dimensions | None":
        """Return row and column from the tag that has them, such as `2R4C`; None unless it is the only one."""
        found = [match for tag in tags if (match := _LOCATOR.fullmatch(tag))]
        return cls(int(found[0][1]), int(found[0][2])) if len(found) == 1 else None

    @property
    def locator(self) -> str:
        """Row and column as CSIT tags them: `2R4C`."""
        return f"{self.instances}R{self.nfs}C"

    @property
    def columns(self) -> DimensionColumns:
        """As records and tables name them."""
        return {"nf_chains": self.instances, "nf_nodes": self.nfs}


class Cell(Frozen):
    """One point of the density matrix with the sizes of its vSwitch and NFs."""

    service_type: ServiceType
    nf_chains: Annotated[int, Field(ge=1, le=MAX_PARTS)]
    """Service instances (row)."""
    nf_nodes: Annotated[int, Field(ge=0, le=MAX_PARTS)]
    """NFs per service instance (column). 0 is the path alone: what every packet of a service has behind it without any
    NF. In a snake (CSC) packets then cross the vSwitch once; in a pipeline (CSP) twice, as with NFs, with a cable in
    their place."""
    nf_sizes: Annotated[tuple[NfSize, ...], Field(min_length=1)] = (NfSize.ONE,)
    """One size for all NFs, or one per NF of an instance."""
    vs_dtc: Annotated[int, Field(ge=1, le=MAX_VSWITCH_CORES)] = 1
    """Physical data cores of the vSwitch."""
    nf_kinds: tuple[NfKind, ...] = ()
    """Kinds of the NFs of an instance: one kind for all, one per NF, or empty for the testbed's own kind."""
    shared_nodes: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(), exclude_if=is_empty)
    """Nodes (1-based) that are one NF for all instances. With two instances of three NFs, (1, 3) is a split and merge:
    two branches between two routers."""
    taps: tuple[Tap, ...] = Field(default=(), exclude_if=is_empty)
    """Passive NFs of every service instance, by position."""
    instance_kinds: tuple[NfKind, ...] = Field(default=(), exclude_if=is_empty)
    """One kind for each service instance, where instances are different services side by side, of one NF each. Then
    sizes, limits and programs too are one for each instance, and not for each node."""
    limits: tuple[Limits, ...] = Field(default=(), exclude_if=is_empty)
    """Limits of the NFs of an instance, one for each node; empty for none."""
    programs: tuple[UserProgram | None, ...] = Field(default=(), exclude_if=is_empty)
    """Programs of the NFs of an instance, one for each node; only nodes whose kind takes one have it."""

    @model_validator(mode="after")
    def _instances_have_one_kind_each(self) -> Self:
        if not self.instance_kinds:
            return self
        if len(self.instance_kinds) != self.nf_chains:
            raise ValueError(f"{len(self.instance_kinds)} kinds for {self.nf_chains} service instances; give each one")
        if self.nf_nodes != 1 or self.nf_kinds or self.shared_nodes:
            raise ValueError("service instances of different kinds have one NF each, and kinds by instance only")
        return self

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        nfs = self.nf_chains if self.instance_kinds else self.nf_nodes
        for what, row in (("NF sizes", self.nf_sizes), ("NF kinds", self.nf_kinds)):
            if len(row) not in (0, 1, nfs):
                raise ValueError(f"{len(row)} {what} for {nfs} NFs; give one for all or one for each")
        for what, count in (("limits", len(self.limits)), ("programs", len(self.programs))):
            if count not in (0, nfs):
                raise ValueError(f"{count} {what} for {nfs} NFs; give one for each")
        for instance in range(1, len(self.instance_kinds) + 1) if self.instance_kinds else [1]:
            for node in range(1, self.nf_nodes + 1):
                if reason := misfit(self.kind_of(node, instance), self.program_of(node, instance)):
                    raise ValueError(f"node {node} of instance {instance}: {reason}")
        return self

    @model_validator(mode="after")
    def _path_alone_has_no_vm(self) -> Self:
        if not self.nf_nodes and self.service_type is ServiceType.VSC:
            raise ValueError("a VSC without any NF has no VM: the path alone is a CSC or a CSP")
        return self

    @model_validator(mode="after")
    def _taps_are_at_the_vswitch(self) -> Self:
        behind = self.nf_nodes + 1
        for tap in self.taps:
            if tap.position > behind:
                raise ValueError(
                    f"a passive NF at position {tap.position}: an instance has {self.nf_nodes} NFs, and {behind} is "
                    "behind the last"
                )
            if self.service_type.is_pipeline and tap.position not in (1, behind):
                raise ValueError(
                    f"a passive NF at position {tap.position}: in a CSP packets cross the vSwitch before the first NF "
                    f"(1) and behind the last ({behind}) only; in a CSC everywhere"
                )
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

    def size_of(self, node: int, instance: int = 1) -> NfSize:
        """The size of NF `node` (1-based) of an instance: the same in each, unless kinds are by instance."""
        return self.nf_sizes[0] if len(self.nf_sizes) == 1 else self.nf_sizes[self._place(node, instance)]

    def kind_of(self, node: int, instance: int = 1) -> NfKind | None:
        """Kind of NF `node` (1-based) of an instance; None where the testbed decides."""
        row = self.instance_kinds or self.nf_kinds
        if not row:
            return None
        return row[0] if len(row) == 1 else row[self._place(node, instance)]

    def limits_of(self, node: int, instance: int = 1) -> Limits:
        """Resource limits of NF `node` (1-based) of an instance."""
        return self.limits[self._place(node, instance)] if self.limits else Limits()

    def program_of(self, node: int, instance: int = 1) -> UserProgram | None:
        """The user's program that NF `node` (1-based) of an instance is; None for NFs of all other kinds."""
        return self.programs[self._place(node, instance)] if self.programs else None

    def _place(self, node: int, instance: int) -> int:
        """In rows that are one for each NF."""
        return (instance if self.instance_kinds else node) - 1

    def asked_kinds(self) -> tuple[NfKind | None, ...]:
        """Kinds of NFs, as from `kind_of`: one for each node, or for each instance where instances differ."""
        if self.instance_kinds:
            return self.instance_kinds
        return tuple(self.kind_of(node) for node in range(1, self.nf_nodes + 1))

    def sizes(self) -> tuple[tuple[NfSize, int], ...]:
        """Sizes of all NFs with how many of each, passive ones last."""
        if self.instance_kinds:
            inline = [(self.size_of(1, instance), 1) for instance in range(1, self.nf_chains + 1)]
        else:
            inline = [(self.size_of(node), self.count_of(node)) for node in range(1, self.nf_nodes + 1)]
        return (*inline, *((tap.size, self.nf_chains) for tap in self.taps))

    def first_instances(self, count: int) -> Self:
        """The same with its first service instances only."""
        by_instance: dict[str, object] = {}
        if self.instance_kinds:
            rows = ("instance_kinds", "limits", "programs", *(["nf_sizes"] if len(self.nf_sizes) > 1 else []))
            by_instance = {row: getattr(self, row)[:count] for row in rows}
        return self.model_copy(update={"nf_chains": count, **by_instance})

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
    def tap_count(self) -> int:
        """All passive NFs of the cell."""
        return self.nf_chains * len(self.taps)

    @property
    def size_name(self) -> str:
        """The NF sizes as one word: `1c`, or `1c+0.5c` for a service of different NFs."""
        return "+".join(self.nf_sizes)

    @property
    def dimensions(self) -> Dimensions:
        """Row and column in the density matrix."""
        return Dimensions(self.nf_chains, self.nf_nodes)

    @property
    def instances(self) -> range:
        """All service instances, counting from 1."""
        return range(1, self.nf_chains + 1)

    @property
    def name(self) -> str:
        """The cell for a line of text: `CSC 2x4 NF-1c vSwitch-1c`."""
        return f"{self.service_type} {self.dimensions} NF-{self.size_name} vSwitch-{self.vs_dtc}c"

    @property
    def different_instances(self) -> Sequence[int]:
        """One service instance of each kind: all where they have different NFs, the first otherwise."""
        return self.instances if self.instance_kinds else [1]

    @property
    def inner_ports(self) -> int:
        """Ports of the vSwitch towards NFs: two for each NF of a snake, or for the ends of each pipeline."""
        return 2 * self.nf_chains * (1 if self.service_type.is_pipeline else self.nf_nodes)

    @property
    def locator(self) -> str:
        """Row and column as CSIT tags them: `2R4C`."""
        return self.dimensions.locator


class FramePart(Frozen):
    """One frame size of a mix. Sizes are L2 with FCS."""

    frame_bytes: Annotated[int, Field(ge=64, le=9018)]
    weight: Annotated[int, Field(ge=1)] = 1


class CaptureFile(Frozen):
    """The packet capture that a load is made of."""

    file: str
    """Its path, as given."""
    sha256: str
    """Of its contents, unpacked."""
    packets: int
    """They are sent in their order, again and again."""


CAPTURE_PREFIX = "pcap:"
MAX_FLOWS = 1_000_000
"""5-tuples of each instance and direction."""


class Frame(Frozen):
    """A frame size or a mix of them, with its definition: peers mean different things by the same name.

    With it go the version of IP, and the number of flows where it is chosen.
    """

    name: str
    """Of the size or mix, with IPv6 and the number of flows where these are chosen: `64B`, `128B-ip6-1000f`."""
    parts: Annotated[tuple[FramePart, ...], Field(min_length=1)]
    flows: int | None = Field(default=None, ge=1, le=MAX_FLOWS, exclude_if=is_none)
    """5-tuples of each instance and direction: UDP datagrams, each packet of the next one in turns. None for as many as
    the plan has source addresses, of packets without ports."""

    ip_version: Literal[4, 6] = Field(default=4, exclude_if=lambda version: version == 4)
    """IPv6 packets are UDP datagrams whatever the number of flows."""
    capture: CaptureFile | None = Field(default=None, exclude_if=is_none)
    """Packets of a capture instead of generated ones; the parts have their sizes."""

    @property
    def asked(self) -> str:
        """The words that this is asked for by: its name, or `pcap:` and the path of a capture."""
        return self.name if self.capture is None else f"{CAPTURE_PREFIX}{self.capture.file}"

    @property
    def size_name(self) -> str:
        """The name without version of IP and number of flows."""
        return self.name.removesuffix(f"-{self.flows}f").removesuffix("-ip6")

    @property
    def mean_bytes(self) -> float:
        """Mean L2 frame size in bytes, FCS included."""
        weight = sum(part.weight for part in self.parts)
        return sum(part.frame_bytes * part.weight for part in self.parts) / weight

    @property
    def largest_bytes(self) -> int:
        """The largest L2 frame of the mix in bytes, FCS included."""
        return max(part.frame_bytes for part in self.parts)
