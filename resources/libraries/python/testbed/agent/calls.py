"""What a controller can ask of an agent: the name, the types and the patience of each call. Both sides read this file.

A request is `{"id": 7, "call": "run", "value": …}`, its answer `{"id": 7, "value": …}` or `{"id": 7, "error": …}`;
`{"cancel": 7}` interrupts a call whose answer nobody waits for any more. `{"beat": …}` comes from both sides every few
seconds and says that there is somebody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from resources.libraries.python.model.counters import Cost, InterfaceCounters, Processed, Sample
from resources.libraries.python.model.cpu import CpuLayout
from resources.libraries.python.model.memory import MemoryLayout
from resources.libraries.python.model.plan import Plan, Port
from resources.libraries.python.model.result import Asked, Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.studies.chains.model.record import Series, StateGraph
from resources.libraries.python.studies.sizing.model.spec import Size
from resources.libraries.python.testbed.roles.service import Answer, InstanceUse
from resources.libraries.python.testbed.services.bundle import Brought

A = TypeVar("A")
R = TypeVar("R")

PROTOCOL = 3
"""Another number where a call was changed or went away."""
_BEAT_S = 2.0


def beat_s(silence_s: float) -> float:
    """How often to say something to somebody who waits for so long at most."""
    return min(_BEAT_S, silence_s / 4)


class Role(StrEnum):
    """A part of a node's share of a plan, or of a service of several components."""

    CABLES = "cables"
    SWITCH = "switch"
    FUNCTIONS = "functions"
    GENERATOR = "generator"
    INSTANCES = "instances"
    LOAD = "load"


@dataclass(frozen=True, slots=True)
class Hello:
    """Who calls."""

    protocol: int
    project: str
    """Digest of the project's sources."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who answers."""

    protocol: int
    project: str
    python: str
    hostname: str
    pid: int
    boot_id: str | None
    """Another one after each start of the node's kernel."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node of a testbed, as the topology has it."""

    topology: Topology
    node: str
    wait_s: float = 0.0
    """How long to wait for a machine that is in use: an agent that was cut off may still be cleaning up."""


@dataclass(frozen=True, slots=True)
class Found:
    """A node as it is; nothing was changed."""

    layout: CpuLayout
    memory: MemoryLayout | None
    problems: tuple[str, ...]
    wishes: tuple[str, ...]
    numa_nodes: Mapping[str, int | None] = field(default_factory=dict)
    """Of its ports, by their names in the topology; None where the machine does not know."""


@dataclass(frozen=True, slots=True)
class Work:
    """A cell."""

    plan: Plan
    asked: Asked


class Watcher(StrEnum):
    """Who watches what is deployed while traffic runs."""

    FEATURES = "features"
    TRACER = "tracer"
    COSTS = "costs"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a node has of a cell."""

    roles: frozenset[Role]
    sampler: bool
    generator_counters: bool
    watchers: frozenset[Watcher] = frozenset()


@dataclass(frozen=True, slots=True)
class Sited:
    """A service in one size, and a node's part in it."""

    brought: Brought
    size: Size
    role: Role
    """INSTANCES or LOAD."""
    cable: Port
    """This node's end of it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a watcher saw; a feature sampler has series, a tracer graphs, a cost meter costs."""

    series: tuple[Series, ...] = ()
    graphs: tuple[StateGraph, ...] = ()
    costs: Mapping[str, Cost] = field(default_factory=dict)
    cpu_s: float | None = None
    """Of the watcher itself."""


@dataclass(frozen=True)
class Call(Generic[A, R]):
    """One thing to ask for."""

    name: str
    asks: TypeAdapter[A]
    gives: TypeAdapter[R]
    within_s: float
    """When the controller gives up; longer than any driver waits by itself."""


def _call(name: str, asks: Any, gives: Any, within_s: float = 60.0) -> Any:  # noqa: ANN401 - typed where used
    return Call(name, TypeAdapter(asks), TypeAdapter(gives), within_s)


_Nothing = type(None)
_Counters = Mapping[str, InterfaceCounters]

HELLO: Call[Hello, Greeting] = _call("hello", Hello, Greeting, 300.0)
"""It loads every driver first, which takes half a minute on an emulated machine; one that died is noticed at once."""
LOOK: Call[Place, Found] = _call("look", Place, Found, 60.0)
OPEN: Call[Place, tuple[str, ...]] = _call("open", Place, tuple[str, ...], 180.0)
FINGERPRINT: Call[None, Environment] = _call("fingerprint", _Nothing, Environment)
PREPARE: Call[Work, Prepared] = _call("prepare", Work, Prepared)
START: Call[Role, None] = _call("start", Role, _Nothing, 7200.0)
STOP: Call[Role, None] = _call("stop", Role, _Nothing, 600.0)
AFFINITY: Call[Role, Mapping[str, frozenset[int]]] = _call("affinity", Role, Mapping[str, frozenset[int]])
COUNTERS: Call[Role, Mapping[str, InterfaceCounters]] = _call("counters", Role, _Counters)
PROCESSED: Call[None, Mapping[str, Processed]] = _call("processed", _Nothing, Mapping[str, Processed])
"""Of the NFs."""
FACTS: Call[Role, Mapping[str, str]] = _call("facts", Role, Mapping[str, str])
PROBLEMS: Call[Role, tuple[str, ...]] = _call("problems", Role, tuple[str, ...], 60.0)
RUN: Call[Trial, TrialResult] = _call("run", Trial, TrialResult, 120.0)
"""On top of the trial's duration."""
HIGHEST: Call[Trial, HighestLoads] = _call("highest_loads", Trial, HighestLoads, 120.0)
SAMPLE: Call[None, Sample] = _call("sample", _Nothing, Sample)
WATCH: Call[Watcher, None] = _call("watch", Watcher, _Nothing, 60.0)
WATCHED: Call[Watcher, Seen] = _call("watched", Watcher, Seen, 120.0)
"""It has to be parsed, and carried."""
WATCHER_FACTS: Call[Watcher, Mapping[str, str]] = _call("watcher_facts", Watcher, Mapping[str, str])
SITE: Call[Sited, None] = _call("site", Sited, _Nothing, 120.0)
"""Nothing is made, as by `prepare`; but it has files to carry."""
OFFER: Call[float, Answer] = _call("offer", float, Answer, 120.0)
"""On top of the time that the generator script has."""
USE: Call[None, Mapping[str, InstanceUse]] = _call("use", _Nothing, Mapping[str, InstanceUse])
LEFTOVERS: Call[Plan | None, tuple[str, ...]] = _call("leftovers", Plan | None, tuple[str, ...], 60.0)
CLEAN: Call[None, tuple[str, ...]] = _call("clean", _Nothing, tuple[str, ...], 180.0)
CLOSE: Call[None, None] = _call("close", _Nothing, _Nothing, 180.0)

CALLS: Mapping[str, Call[Any, Any]] = {
    call.name: call
    for call in (
        HELLO, LOOK, OPEN, FINGERPRINT, PREPARE, START, STOP, AFFINITY, COUNTERS, PROCESSED, FACTS, PROBLEMS, RUN,
        HIGHEST, SAMPLE, WATCH, WATCHED, WATCHER_FACTS, SITE, OFFER, USE, LEFTOVERS, CLEAN, CLOSE,
    )
}  # fmt: skip
