"""Interference of network functions on one server (Zeng et al.)."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from resources.libraries.python.model.base import Frozen, at_most, at_most_items, is_empty, is_none
from resources.libraries.python.model.bounds import (
    HIGHEST_PPS,
    LONGEST_TRIAL_S,
    MAX_NAMES,
    MAX_REPETITIONS,
    MAX_SWEPT,
    MAX_TOGETHER,
    MAX_VERIFIED,
)
from resources.libraries.python.model.findings import Coverage, LeastMeasured
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.model.request.cell import Frame, misfit
from resources.libraries.python.model.request.frames import FrameByName
from resources.libraries.python.model.request.kinds import NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.chains.model.spec import VnfName


class NfType(StrEnum):
    """Network functions by what they do to a packet."""

    GATEWAY = "I"
    MONITOR = "II"
    """Firewall, flow monitor."""
    INSPECTION = "III"
    """Intrusion detection, deep packet inspection, cache."""
    BALANCER = "IV"
    """Load balancer."""
    NAT = "V"
    """Address translator, proxy."""
    TRANSFORMATION = "VI"
    """VPN, compression, encryption."""

    @property
    def access(self) -> str:
        """Parts of a packet that they read or write."""
        return {
            "I": "reads addresses",
            "II": "reads addresses and ports",
            "III": "reads addresses, ports, payload",
            "IV": "writes addresses",
            "V": "writes addresses and ports",
            "VI": "writes everything",
        }[self]


class Resource(StrEnum):
    """Resources of which an equal share can be guaranteed to each co-located network function."""

    NETWORK = "network"
    CPU = "cpu"

    @property
    def words(self) -> str:
        """In sentences."""
        return "network I/O" if self is Resource.NETWORK else "CPU time"


class Contender(Frozen):
    """A network function of the study."""

    name: VnfName
    type: NfType
    kind: NfKind
    stand_in: NfKind | None = Field(default=None, exclude_if=is_none)
    """Its stand-in on a testbed without its kind or its program."""
    stand_in_for: str | None = None
    """The kind for which it is a stand-in, if that is not installed."""
    program: UserProgram | None = Field(default=None, exclude_if=is_none)
    """User's program; kind `process` only."""

    @model_validator(mode="after")
    def _program_fits(self) -> Self:
        if reason := misfit(self.kind, self.program) or misfit(self.stand_in, None):
            raise ValueError(f"{self.name}: {reason}")
        return self

    def replaced(self) -> Self:
        """Its stand-in, which says so; it has one."""
        original = self.program.start[0] if self.program else self.kind
        changes = {"kind": self.stand_in, "stand_in": None, "stand_in_for": f"{original}", "program": None}
        return self.model_copy(update=changes)


Load = Annotated[
    Annotated[float, Field(gt=0), at_most(HIGHEST_PPS)] | None,
    BeforeValidator(lambda load: None if load == "auto" else load),
]
"""Packets per second; `auto`, None, is more than the fastest carries alone."""


def _resources(asked: object) -> object:
    """`true` is the network, `false` nothing; several are a list, or joined by commas."""
    if isinstance(asked, str):
        words = [word for each in asked.split(",") if (word := each.strip())]
        asked = {"yes": True, "true": True, "no": False, "false": False}.get(asked.strip().lower(), words)
    if isinstance(asked, bool):
        return (Resource.NETWORK,) if asked else ()
    return asked


Group = tuple[str, tuple[str, ...]]
"""A target and what is beside it; nothing where it is alone."""
EMPTY_SERVERS: tuple[tuple[str, ...], ...] = ((), ())
_LISTS = {"frame": "frames", "load_pps": "loads_pps"}


class InterferenceSpec(Frozen):
    """All that a study of interference is asked."""

    name: str
    contenders: Annotated[tuple[Contender, ...], Field(min_length=1), at_most_items(MAX_NAMES)]
    size: NfSize = NfSize.ONE
    """Size of each: they are compared on equal terms."""
    frame: FrameByName
    load_pps: Load = None
    """Offered to each network function, one way; None for more than the fastest carries alone."""
    frames: Annotated[tuple[FrameByName, ...], Field(exclude_if=is_empty), at_most_items(MAX_SWEPT)] = ()
    """All frame sizes, of which `frame` is the first; empty for that one only."""
    loads_pps: Annotated[
        tuple[Load, ...],
        Field(exclude_if=is_empty),
        at_most_items(MAX_SWEPT),
    ] = ()
    """All loads, of which `load_pps` is the first; empty for that one only."""
    duration_s: Annotated[float, Field(gt=0), at_most(LONGEST_TRIAL_S)] = 1.0
    repetitions: Annotated[int, Field(ge=1), at_most(MAX_REPETITIONS)] = 10
    together: Annotated[int, Field(ge=2), at_most(MAX_TOGETHER)] = 2
    """So many at once at most: 2 for pairs."""
    least_measured: LeastMeasured = 1.0
    """Required share of all measurements; with less the test fails, and its record has what there is."""
    guarantee: Annotated[tuple[Resource, ...], BeforeValidator(_resources)] = ()
    """Measure all that share the server once more with an equal share of each of these guaranteed to each."""
    verify: Annotated[int, Field(ge=0, exclude_if=is_empty), at_most(MAX_VERIFIED)] = 0
    """Placements on two servers, the best ones by prediction, that are measured as they are before advice is given."""
    servers: Annotated[
        tuple[tuple[str, ...], ...],
        Field(min_length=1, exclude_if=lambda servers: servers == EMPTY_SERVERS),
        at_most_items(MAX_NAMES),
    ] = EMPTY_SERVERS
    """Network functions that each server has already; the others are placed."""
    seed: int = 1
    """Seed of the order of measurements, which are interleaved against drift."""

    @model_validator(mode="before")
    @classmethod
    def _lists(cls, data: object) -> object:
        """A list of frame sizes, or of loads, is a sweep; its first one is the reference."""
        if not isinstance(data, Mapping):
            return data
        found = {one: data[one] for one in _LISTS if isinstance(data.get(one), list | tuple)}
        if empty := [one for one, values in found.items() if not values]:
            raise ValueError(f"{' and '.join(empty)}: an empty list")
        first = {one: values[0] for one, values in found.items()}
        return {**data, **first, **{_LISTS[one]: tuple(values) for one, values in found.items()}}

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [one.name for one in self.contenders]
        if doubled := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"network functions named {', '.join(sorted(doubled))} more than once")
        return self

    @model_validator(mode="after")
    def _servers_of_study(self) -> Self:
        names, there = [one.name for one in self.contenders], [name for server in self.servers for name in server]
        if unknown := sorted(set(there) - set(names)):
            raise ValueError(f"servers: {', '.join(unknown)}: not a network function of this study")
        if not set(names) - set(there):
            raise ValueError("servers: they have all network functions of the study already; leave out one to place")
        return self

    @model_validator(mode="after")
    def _swept_once(self) -> Self:
        frames = [each.name for each in self.frames]
        loads = ["auto" if each is None else f"{each:g}" for each in self.loads_pps]
        for what, row in (("frame sizes", frames), ("loads", loads)):
            if doubled := {each for each in row if row.count(each) > 1}:
                raise ValueError(f"{what} {', '.join(sorted(doubled))} more than once")
        if (self.frames and self.frames[0] != self.frame) or (self.loads_pps and self.loads_pps[0] != self.load_pps):
            raise ValueError("frame and load_pps are the first of frames and loads_pps")
        return self

    @model_validator(mode="after")
    def _guaranteed_once(self) -> Self:
        if len(set(self.guarantee)) < len(self.guarantee):
            raise ValueError(f"guarantee {', '.join(self.guarantee)}: each resource once")
        return self

    def points(self) -> tuple[tuple[Frame, float | None], ...]:
        """Each frame size with each load, None for more than the fastest carries alone.

        The first one is the reference: matrix, share of network I/O and advice are of it.
        """
        return tuple(product(self.frames or (self.frame,), self.loads_pps or (self.load_pps,)))


class ColocationMeasurement(Frozen):
    """One measurement of one network function, alone or beside others."""

    target: str
    against: tuple[str, ...]
    """Those co-located with it, its own name where another of its kind is; empty when it was alone."""
    repetition: int
    turn: int
    """Its place in the order of all measurements, from 0."""
    load_pps: float
    frame: str
    point: int = Field(default=0, exclude_if=is_empty)
    """Index of the point of a sweep; 0 is the reference."""
    guaranteed: bool
    guaranteed_resource: Resource = Field(default=Resource.NETWORK, exclude_if=lambda one: one is Resource.NETWORK)
    """What an equal share of was guaranteed to each, where `guaranteed`."""
    limit_cpus: float | None = Field(default=None, exclude_if=is_none)
    """CPUs that each may use at most; None where that was not limited."""
    limit_pps: float | None = Field(default=None, exclude_if=is_none)
    """Rate limit of each of their ports; None where that was not limited."""
    throughput_pps: float
    """Processed rate, one way: forwarded, or inspected by a monitor."""
    loss_ratio: float | None
    response_s: float | None
    """Mean, there and through; None where it was not measured."""
    cpu: float | None
    """CPUs used, 1.0 for one."""
    memory_bytes: int | None
    cache_misses: int | None
    """None where the machine has no counters for it."""

    @property
    def guarantee(self) -> Resource | None:
        """The guaranteed resource; None without a guarantee."""
        return self.guaranteed_resource if self.guaranteed else None


class Normalized(Frozen):
    """Throughput beside others over throughput alone: 1.0 is no interference."""

    target: str
    against: tuple[str, ...]
    mean: float
    stdev: float | None
    low: float | None
    high: float | None
    """Confidence interval, 95 %; None with one repetition."""
    samples: int


class EstimatedValue(Frozen):
    """A value with its 95 % confidence interval."""

    value: float
    low: float | None
    high: float | None
    """None with one repetition."""

    def below(self, whole: float) -> "EstimatedValue":
        """How much this is below a number, with the interval of that."""
        low, high = (None if end is None else whole - end for end in (self.high, self.low))
        return EstimatedValue(value=whole - self.value, low=low, high=high)


class RankedMean(Frozen):
    """Mean normalized throughput of a row or column of the matrix, and its place among all."""

    name: str
    normalized: EstimatedValue
    ranks: tuple[int, int] | None
    """First and last place that it may have, 1 for the lowest mean; equal for a place that is certain. The probability
    of any wrong place in the study is at most 5 % (Holm). None with one repetition."""

    @property
    def lost(self) -> EstimatedValue:
        """Mean degradation: sensitivity of a row, aggressiveness of a column."""
        return self.normalized.below(1.0)


class ResourceShare(Frozen):
    """Share of the degradation that goes away with a guaranteed resource: of all pairs, of one, or of larger sets."""

    resource: Resource
    together: int
    target: str | None = None
    against: tuple[str, ...] = ()
    """None and empty for the mean over all sets of `together` network functions."""
    degradation: EstimatedValue
    """Without a guarantee, of the same sets."""
    share: EstimatedValue | None
    """None where the interval of the degradation has 0 in it, and where no interference was found in the study."""


class PairsFindings(Frozen):
    """What the pairs of a study say, with its errors."""

    degradation: EstimatedValue
    """Mean over all pairs."""
    none_p: float | None
    """Probability of differences as large without any interference; None with one repetition."""
    sensitivity: tuple[RankedMean, ...]
    aggressiveness: tuple[RankedMean, ...]
    shares: tuple[ResourceShare, ...] = ()


class ResourceRelation(Frozen):
    """Whether pairs that degrade more are those that use more of a resource for each packet than alone."""

    quantity: str
    pairs: int
    correlation: float
    """Spearman's rank correlation of the degradation and the change, in [-1, 1]."""
    p: float
    """By permutations of the network functions, adjusted for all quantities (Holm)."""


class Placement(Frozen):
    """Assignment of network functions to servers."""

    servers: tuple[tuple[str, ...], ...]
    capacity: float
    """Sum of normalized throughputs."""
    low: float | None = Field(default=None, exclude_if=is_none)
    high: float | None = Field(default=None, exclude_if=is_none)
    """Confidence interval, 95 %, of the measurements; the error of a prediction is not in it."""
    predicted: int | None = Field(default=None, exclude_if=is_none)
    """Network functions whose throughput is predicted from pairs; None where none was predicted."""


class Advice(Frozen):
    """Placement advice for one more network function, or for all."""

    sentence: str
    best: Placement
    others: tuple[Placement, ...]
    """Worse ones, best first."""
    ties: tuple[Placement, ...] = Field(default=(), exclude_if=is_empty)
    """Those of all that are not told apart from the best one; the truly best is among them or it with 95 %."""
    prediction_error: float | None = Field(default=None, exclude_if=is_none)
    """Root mean square error of a normalized throughput that is predicted from pairs; None where it is unknown."""


class Interference(Frozen):
    """Payload of the record: co-located network functions."""

    spec: InterferenceSpec
    measurements: tuple[ColocationMeasurement, ...]
    matrix: tuple[Normalized, ...]
    guaranteed: tuple[Normalized, ...] = ()
    """The same with guaranteed network I/O, over the same throughput alone."""
    guaranteed_cpu: tuple[Normalized, ...] = Field(default=(), exclude_if=is_empty)
    """The same with guaranteed CPU time."""
    findings: PairsFindings | None = Field(default=None, exclude_if=is_none)
    """None where no pair was measured."""
    relations: tuple[ResourceRelation, ...] = Field(default=(), exclude_if=is_empty)
    """Of resources that the machine counts, the closest first."""
    advice: tuple[Advice, ...] = ()
    places: int | None = Field(default=None, exclude_if=is_none)
    """Network functions that fit on one server; None where placements were not verified."""
    asked: int
    """Measurements that the specification asks for."""
    notes: tuple[str, ...] = ()
    """Measurements that are missing, with reasons; which NF is a stand-in."""

    @property
    def coverage(self) -> Coverage:
        """Measurements that were made, of all."""
        return Coverage(len(self.measurements), self.asked)


class InterferenceRecord(Record):
    """A study of interference."""

    study: Literal["interference"] = "interference"
    interference: Annotated[Interference | None, PACKED] = None
