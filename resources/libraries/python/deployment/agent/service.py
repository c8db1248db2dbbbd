"""What an agent does when it is asked: it opens its machine, makes that machine's share of a plan, and drives it."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from resources.libraries.python.deployment.agent import calls
from resources.libraries.python.deployment.agent.calls import (
    Found,
    Greeting,
    Hello,
    Place,
    Prepared,
    Role,
    Seen,
    Sited,
    Watcher,
    Work,
)
from resources.libraries.python.deployment.machine import Machine
from resources.libraries.python.deployment.parts import Part, Share
from resources.libraries.python.deployment.sized_here import SizedHere
from resources.libraries.python.drivers.instances.instances import Instances
from resources.libraries.python.drivers.instances.load import CabledLoad
from resources.libraries.python.errors import ConfigError, CsitError, InUse
from resources.libraries.python.model.counters import InterfaceCounters, Processed, Sample
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.model.trial import Trial, TrialResult
from resources.libraries.python.roles.function import NetworkFunctions, Processing
from resources.libraries.python.roles.generator import TrafficGenerator
from resources.libraries.python.roles.vswitch import VSwitch
from resources.libraries.python.roles.watching import CostMeter, FeatureSampler, Tracer

_PAUSE_S = 0.5
_OF_A_CELL = (Role.CABLES, Role.SWITCH, Role.FUNCTIONS, Role.GENERATOR)


class Service:
    """One node's machine, from `open` to `close`, with at most one cell on it.

    Args:
        greeting: Who this is.
        fingerprint: Looks at the machine.
        machine_of: Makes the machine of a node.
    """

    def __init__(
        self,
        greeting: Greeting,
        fingerprint: Callable[[], Environment],
        machine_of: Callable[[Topology, str], Machine] = Machine,
    ) -> None:
        self._greeting = greeting
        self._machine_of = machine_of
        self._machine: Machine | None = None
        self._share: Share | None = None
        self._sited: SizedHere | None = None
        self._started: list[Role] = []
        self._answers: Mapping[str, Callable[[Any], object]] = {
            calls.HELLO.name: self._hello,
            calls.LOOK.name: self._look,
            calls.OPEN.name: self._open,
            calls.FINGERPRINT.name: lambda _: fingerprint(),
            calls.PREPARE.name: self._prepare,
            calls.START.name: self._start,
            calls.STOP.name: self._stop,
            calls.AFFINITY.name: lambda role: self._sut(role).affinity(),
            calls.COUNTERS.name: self._counters,
            calls.PROCESSED.name: lambda _: self._processed(),
            calls.FACTS.name: lambda role: self._reporting(role).facts(),
            calls.PROBLEMS.name: lambda role: self._reporting(role).problems(),
            calls.RUN.name: self._run,
            calls.MAXIMUM.name: self._maximum,
            calls.SAMPLE.name: self._sample,
            calls.WATCH.name: lambda who: self._watcher(who).start(),
            calls.WATCHED.name: self._watched,
            calls.WATCHER_FACTS.name: lambda who: self._watcher(who).facts(),
            calls.SITE.name: self._site,
            calls.OFFER.name: self._offer,
            calls.USE.name: lambda _: self._service().instances.use(),
            calls.LEFTOVERS.name: self._leftovers,
            calls.CLEAN.name: lambda _: self._opened().clean(),
            calls.CLOSE.name: lambda _: self.close(),
        }

    def answer(self, name: str, value: object) -> object:
        """Do what is asked, from plain JSON values to plain JSON values.

        Raises:
            ConfigError: There is no such call, or its value is not of its type.
            Exception: Whatever a driver raises.
        """
        call = calls.CALLS.get(name)
        if call is None:
            raise ConfigError(f"an agent of protocol {calls.PROTOCOL} knows no call '{name}'")
        try:
            asked = call.asks.validate_python(value)
        except ValueError as error:
            raise ConfigError(f"the call '{name}' is not of protocol {calls.PROTOCOL}: {error}") from error
        return call.gives.dump_python(self._answers[name](asked), mode="json")

    def close(self) -> None:
        """Remove everything and give the machine back. Safe to call more than once.

        Raises:
            Exception: The first of the failures; all that can be removed is removed all the same.
        """
        machine, self._machine = self._machine, None
        failures: list[Exception] = []
        if machine is not None:
            # The reverse order of starting. What cannot be stopped in an orderly way is removed by force.
            steps: list[Callable[[], object]] = [partial(self._stop, role) for role in reversed(Role)]
            for step in (*steps, machine.clean):
                try:
                    step()
                except Exception as error:  # a step boundary: the other steps must be taken too
                    failures.append(error)
            self._share = self._sited = None
            machine.close()
        if failures:
            raise failures[0]

    def _hello(self, hello: Hello) -> Greeting:
        mine = self._greeting
        if hello.protocol != mine.protocol:
            raise ConfigError(f"the agent speaks protocol {mine.protocol}, the controller {hello.protocol}")
        if hello.project != mine.project:
            raise ConfigError(
                f"the agent's copy of this project ({mine.project[:12]}) is not the controller's ({hello.project[:12]})"
            )
        return mine

    def _look(self, place: Place) -> Found:
        machine = self._machine_of(place.topology, place.node)
        return Found(machine.layout, machine.memory, tuple(machine.problems()), tuple(machine.wishes()))

    def _open(self, place: Place) -> tuple[str, ...]:
        if self._machine is not None:
            raise CsitError("this agent has opened its machine already")
        machine = self._machine_of(place.topology, place.node)
        deadline = time.monotonic() + place.wait_s
        while True:
            try:
                removed = machine.open()
            except InUse:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
            else:
                self._machine = machine
                return tuple(removed)

    def _prepare(self, work: Work) -> Prepared:
        if self._started:
            raise CsitError(f"there is a cell already, with its {', '.join(self._started)}")
        share = self._share = self._opened().share(work.plan, work.asked)
        return Prepared(
            roles=frozenset(role for role in _OF_A_CELL if self._parts(role)),
            sampler=share.sampler is not None,
            generator_counters=share.generator is not None,
            watchers=frozenset(who for who in Watcher if _watcher_of(share, who) is not None),
        )

    def _start(self, role: Role) -> None:
        self._started.append(role)  # first: what is half started has to be stopped too
        for part in self._parts(role):
            part.start()

    def _stop(self, role: Role) -> None:
        if role not in self._started:
            return
        failures: list[Exception] = []
        self._watch_no_more()
        for part in reversed(self._parts(role)):
            try:
                part.stop()
            except Exception as error:  # a step boundary: the others must be stopped too
                failures.append(error)
        self._started.remove(role)
        if failures:
            raise failures[0]

    def _counters(self, role: Role) -> Mapping[str, InterfaceCounters]:
        return self._prepared().generator_counters() if role is Role.GENERATOR else self._sut(role).counters()

    def _run(self, trial: Trial) -> TrialResult:
        return self._generator().run(trial)

    def _maximum(self, trial: Trial) -> float:
        return self._generator().maximum_pps(trial)

    def _sample(self, _: None) -> Sample:
        sampler = self._prepared().sampler
        return sampler.read() if sampler else Sample()

    def _watch_no_more(self) -> None:
        """Whoever still watches holds on to what is to be removed."""
        if self._share is not None:
            for watcher in (self._share.features, self._share.tracer, self._share.costs):
                if watcher is not None:
                    watcher.stop()

    def _watched(self, who: Watcher) -> Seen:
        share = self._prepared()
        if who is Watcher.FEATURES:
            return Seen(series=_there(share.features, who).stop())
        if who is Watcher.TRACER:
            return Seen(graphs=_there(share.tracer, who).stop())
        return Seen(costs=_there(share.costs, who).stop())

    def _watcher(self, who: Watcher) -> FeatureSampler | Tracer | CostMeter:
        watcher = _watcher_of(self._prepared(), who)
        if watcher is None:
            raise CsitError(f"this node has no {who} in the present cell")
        return watcher

    def _site(self, sited: Sited) -> None:
        if self._started:
            raise CsitError(f"there is something deployed already: {', '.join(self._started)}")
        machine = self._opened()
        part = machine.instances if sited.role is Role.INSTANCES else machine.load
        self._sited = part(sited.brought, sited.size, sited.cable)

    def _offer(self, load: float) -> float:
        return self._service().load.offer(load)

    def _leftovers(self, plan: Plan | None) -> tuple[str, ...]:
        return tuple(self._opened().leftovers(plan))

    def _opened(self) -> Machine:
        if self._machine is None:
            raise CsitError("this agent has not opened its machine")
        return self._machine

    def _prepared(self) -> Share:
        if self._share is None:
            raise CsitError("this agent has no cell")
        return self._share

    def _service(self) -> SizedHere:
        if self._sited is None:
            raise CsitError("this agent has no part of a service")
        return self._sited

    def _parts(self, role: Role) -> tuple[Part, ...]:
        if role not in _OF_A_CELL:
            return (self._service(),)
        share = self._prepared()
        if role is Role.CABLES:
            return share.cables
        part = {Role.SWITCH: share.switch, Role.FUNCTIONS: share.functions, Role.GENERATOR: share.generator}[role]
        return () if part is None else (part,)

    def _sut(self, role: Role) -> VSwitch | NetworkFunctions:
        part = self._prepared().switch if role is Role.SWITCH else self._prepared().functions
        return _there(part, role)

    def _processed(self) -> Mapping[str, Processed]:
        functions = self._prepared().functions
        return functions.processed() if isinstance(functions, Processing) else {}

    def _reporting(self, role: Role) -> VSwitch | NetworkFunctions | TrafficGenerator | Instances | CabledLoad:
        if role not in _OF_A_CELL:
            return self._service().reporting
        return self._generator() if role is Role.GENERATOR else self._sut(role)

    def _generator(self) -> TrafficGenerator:
        return _there(self._prepared().generator, Role.GENERATOR)


def _watcher_of(share: Share, who: Watcher) -> FeatureSampler | Tracer | CostMeter | None:
    match who:
        case Watcher.FEATURES:
            return share.features
        case Watcher.TRACER:
            return share.tracer
        case Watcher.COSTS:
            return share.costs


_P = TypeVar("_P")


def _there(part: _P | None, role: Role | Watcher) -> _P:
    if part is None:
        raise CsitError(f"this node has no {role} in the present cell")
    return part
