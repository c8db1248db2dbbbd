"""Specification of a chain study, and its loader: network functions, policies, workloads (Probius, Nam et al.).

The file, YAML, is shorter than the type that it becomes: workloads are protocols times volumes times sessions times
frames, a range of resources holds for all VNFs that have none of their own, frames are named as in tests (`64B`,
`IMIX`).
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from resources.libraries.python import driver_registry
from resources.libraries.python.model.base import Frozen, Inconsistency, at_most, of_form
from resources.libraries.python.model.bounds import (
    HIGHEST_BPS,
    LONGEST_LOAD_S,
    MAX_MEMORY_MIB,
    MAX_NAMES,
    MAX_REPETITIONS,
    MAX_WORKLOADS,
)
from resources.libraries.python.model.findings import LeastMeasured
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.measurements.stacks import SOFTIRQ
from resources.libraries.python.model.request.cell import Frame, misfit
from resources.libraries.python.model.request.frames import FrameByName
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.request.traffic import Protocol

VnfName = Annotated[
    str,
    of_form(
        r"[A-Za-z][A-Za-z0-9_-]{0,30}", "a name of letters, digits, _ and - (at most 31), which begins with a letter"
    ),
]


REPETITIONS = 2
Repetitions = Annotated[int, Field(ge=0), at_most(MAX_REPETITIONS)]
RESERVED_NAMES = frozenset({"chain", "host", "vswitch", SOFTIRQ})
"""In the place of a VNF they mean the chain from end to end, the machine, the virtual switch, and the kernel in call
stacks."""


class Mode(StrEnum):
    """Mode of a network function in a chain."""

    INLINE = "inline"
    """Packets go through it: two interfaces."""
    PASSIVE = "passive"
    """It gets copies of both directions on one interface and forwards nothing."""


class VnfSpec(Frozen):
    """A network function that chains are made of."""

    name: VnfName
    kind: NfKind
    mode: Mode = Mode.INLINE
    sizes: Annotated[tuple[NfSize, ...], Field(min_length=1)] = (NfSize.ONE,)
    """CPU range: each is tried."""
    memory_mib: tuple[Annotated[int, Field(ge=16)], ...] = ()
    """Memory range: each is tried; empty leaves it to the kind."""
    program: UserProgram | None = None
    """User's program; kind `process` only."""

    @model_validator(mode="after")
    def _program_fits(self) -> Self:
        if reason := misfit(self.kind, self.program):
            raise ValueError(f"{self.name}: {reason}")
        return self


def _known_generator(name: str) -> str:
    known = [ANY_GENERATOR, *driver_registry.generators()]
    if name not in known:
        raise ValueError(f"no such generator; choose from {', '.join(known)}")
    return name


ANY_GENERATOR = "built-in"
"""Workload that every generator of its protocol can send."""
WorkloadGenerator = Annotated[str, AfterValidator(_known_generator)]
"""Name of the driver that a workload needs, or `ANY_GENERATOR`."""


class Workload(Frozen):
    """Traffic through a chain: one protocol, one volume, so many sessions; the same both ways where it is UDP."""

    generator: WorkloadGenerator = ANY_GENERATOR
    protocol: Protocol = Protocol.UDP
    volume_bps: Annotated[float, Field(gt=0)]
    """L2 bits per second of one way, all sessions together."""
    sessions: Annotated[int, Field(ge=1, le=1000)] = 1
    frame: Frame


class Fault(Frozen):
    """A fault that is planted to see whether it is found: an NF limited in one chain, or in all. Results say so."""

    chain: Annotated[tuple[VnfName, ...], Field(min_length=1)] | None = None
    """None for all chains of two and more VNFs with it."""
    vnf: VnfName
    limits: Limits

    def is_in(self, order: tuple[str, ...]) -> bool:
        """Whether it is planted in a chain."""
        return order == self.chain if self.chain is not None else len(order) > 1 and self.vnf in order


class ChainStudySpec(Frozen):
    """All that a study of chains is asked."""

    name: str
    vnfs: Annotated[tuple[VnfSpec, ...], Field(min_length=1)]
    policies: tuple[str, ...] = ()
    """Each an expression over names of VNFs; see `planning.policies`. A chain must obey all."""
    lengths: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Lengths of chains to measure; empty for every length."""
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1)]
    duration_s: Annotated[int, Field(ge=1)] = 5
    """Duration of each workload: samples, one each second."""
    repetitions: Repetitions = Field(default=REPETITIONS, exclude_if=lambda count: count == REPETITIONS)
    """Times that chains are measured again which deviate from their VNFs alone; 0 to judge them by one run."""
    faults: tuple[Fault, ...] = ()
    least_measured: LeastMeasured = 1.0
    """Required share of all chains and workloads; with less the test fails, and its record has what there is."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        names = [vnf.name for vnf in self.vnfs]
        if doubled := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"VNFs named {', '.join(sorted(doubled))} more than once")
        if reserved := RESERVED_NAMES.intersection(names):
            raise ValueError(f"no VNF may be named {', '.join(sorted(reserved))}: the name is reserved in results")
        for fault in self.faults:
            if unknown := {*(fault.chain or ()), fault.vnf} - set(names):
                raise ValueError(f"a fault names the unknown VNF {', '.join(sorted(unknown))}")
            if fault.chain is not None and fault.vnf not in fault.chain:
                raise ValueError(
                    f"a fault is planted in {fault.vnf}, which is not in its chain {'-'.join(fault.chain)}"
                )
        return self

    def vnf(self, name: str) -> VnfSpec:
        """The VNF of that name."""
        return next(vnf for vnf in self.vnfs if vnf.name == name)


class Member(Frozen):
    """A VNF in a chain, with its resources there."""

    name: VnfName
    size: NfSize
    memory_mib: int | None = None


class Chain(Frozen):
    """VNFs in order, from TG port 1 to TG port 2; none for the path through the vSwitch alone."""

    members: tuple[Member, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(member.name for member in self.members)

    @property
    def name(self) -> str:
        """Name in messages: `firewall > nat`. Chains that differ in resources only have the same name."""
        return " > ".join(self.order) or "the path without VNFs"


PATH = Chain(members=())
"""Measured once for each workload: each VNF alone has it in its latency."""


Sizes = Annotated[tuple[NfSize, ...], Field(min_length=1)]
Memory = tuple[Annotated[int, Field(ge=16, le=MAX_MEMORY_MIB)], ...]


class _ResourcesEntry(Frozen):
    """The range for VNFs that have none of their own."""

    sizes: Sizes = (NfSize.ONE,)
    memory_mib: Memory = ()


class _VnfEntry(Frozen):
    name: VnfName
    kind: NfKind
    mode: Mode = Mode.INLINE
    sizes: Sizes | None = None
    memory_mib: Memory | None = None
    program: UserProgram | None = None


class _Workloads(Frozen):
    """All combinations are sent."""

    generator: WorkloadGenerator = ANY_GENERATOR
    protocols: Annotated[tuple[Protocol, ...], Field(min_length=1)] = (Protocol.UDP,)
    volumes_mbps: Annotated[tuple[Annotated[float, Field(gt=0, le=HIGHEST_BPS / 1e6)], ...], Field(min_length=1)]
    """L2 megabits per second, one way, all sessions together."""
    sessions: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(min_length=1)] = (1,)
    frames: Annotated[tuple[FrameByName, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        count = len(self.protocols) * len(self.volumes_mbps) * len(self.sessions) * len(self.frames)
        if count > MAX_WORKLOADS:  # before they are made
            raise ValueError(f"{count:,} workloads; at most {MAX_WORKLOADS:,} are possible")
        return self

    def each(self) -> tuple[Workload, ...]:
        """Workloads, the volume changing fastest."""
        return tuple(
            Workload(
                generator=self.generator, protocol=protocol, volume_bps=volume * 1e6, sessions=sessions, frame=size
            )
            for protocol, sessions, size, volume in product(
                self.protocols, self.sessions, self.frames, self.volumes_mbps
            )
        )


class ChainFile(Frozen):
    """A study as a file says it."""

    name: Annotated[str, Field(min_length=1)]
    vnfs: Annotated[tuple[_VnfEntry, ...], Field(min_length=1, max_length=MAX_NAMES)]
    resources: _ResourcesEntry = _ResourcesEntry()
    policies: Annotated[tuple[str, ...], Field(max_length=MAX_NAMES)] = ()
    lengths: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(max_length=MAX_NAMES)] = ()
    workloads: _Workloads
    duration_s: Annotated[int, Field(ge=1, le=LONGEST_LOAD_S)] = 5
    repetitions: Repetitions = REPETITIONS
    faults: tuple[Fault, ...] = ()
    least_measured: LeastMeasured = 1.0

    @model_validator(mode="after")
    def _each_part_fits(self) -> Self:
        seen: set[str] = set()
        for index, vnf in enumerate(self.vnfs):
            if vnf.name in seen:
                raise Inconsistency(("vnfs", index, "name"), f"{vnf.name} is defined twice")
            seen.add(vnf.name)
            _built(("vnfs", index), lambda vnf=vnf: self._vnf(vnf))
        for index, fault in enumerate(self.faults):
            if unknown := {*(fault.chain or ()), fault.vnf} - seen:
                raise Inconsistency(("faults", index), f"no VNF {', '.join(sorted(unknown))}")
            if fault.chain is not None and fault.vnf not in fault.chain:
                raise Inconsistency(("faults", index, "vnf"), f"{fault.vnf} is not in the chain of the fault")
        _built((), self.spec)
        return self

    def spec(self) -> ChainStudySpec:
        """As the study is asked."""
        return ChainStudySpec(
            name=self.name,
            vnfs=tuple(map(self._vnf, self.vnfs)),
            policies=self.policies,
            lengths=self.lengths,
            workloads=self.workloads.each(),
            duration_s=self.duration_s,
            repetitions=self.repetitions,
            faults=self.faults,
            least_measured=self.least_measured,
        )

    def _vnf(self, vnf: _VnfEntry) -> VnfSpec:
        own = vnf.model_dump(exclude_none=True)
        return VnfSpec.model_validate({**self.resources.model_dump(), **own})


def _built(where: tuple[str | int, ...], build: Any) -> None:  # noqa: ANN401 - whatever it builds is not kept
    """Add the place in the file to a validation error."""
    try:
        build()
    except Inconsistency:
        raise
    except ValueError as error:
        first = error.errors(include_url=False)[0]["msg"] if hasattr(error, "errors") else str(error)
        raise Inconsistency(where, first.removeprefix("Value error, ")) from error


def load_chains(path: Path, settings: Mapping[str, str] = MappingProxyType({})) -> ChainStudySpec:
    """Read what a study of chains is asked. Its policies are read by `planning.chains`.

    Raises:
        ConfigError: The file does not fit; the sentence has file, line and path inside it.
    """
    return load_yaml(path, ChainFile, settings).spec()
