"""What an agent's machine has of a cell or of a service, found by role."""

from collections.abc import Mapping
from typing import TypeVar

from resources.libraries.python.drivers.services.instances import Instances
from resources.libraries.python.drivers.services.load import CabledLoad
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import InterfaceCounters, Processed, Sample
from resources.libraries.python.testbed.agent.calls import Prepared, Role, Seen, Watcher
from resources.libraries.python.testbed.deployment.parts import Part, Share
from resources.libraries.python.testbed.roles.function import NetworkFunctions, Processing
from resources.libraries.python.testbed.roles.generator import TrafficGenerator
from resources.libraries.python.testbed.roles.vswitch import VSwitch
from resources.libraries.python.testbed.roles.watching import CostMeter, FeatureSampler, Tracer
from resources.libraries.python.testbed.services.node_services import SizedHere

_OF_A_CELL = (Role.CABLES, Role.SWITCH, Role.FUNCTIONS, Role.GENERATOR)
_P = TypeVar("_P")


class Deployed:
    """At most one cell's share, and one part of a service. Whatever is asked for and is not here is a CsitError."""

    def __init__(self) -> None:
        self.share: Share | None = None
        self.sized: SizedHere | None = None

    def forget(self) -> None:
        """All of it has been removed."""
        self.share = self.sized = None

    def prepared(self) -> Prepared:
        """What the share has."""
        share = self._share()
        return Prepared(
            roles=frozenset(role for role in _OF_A_CELL if self.parts(role)),
            sampler=share.sampler is not None,
            generator_counters=share.generator is not None,
            watchers=frozenset(who for who in Watcher if _watcher_of(share, who) is not None),
        )

    def parts(self, role: Role) -> tuple[Part, ...]:
        """Parts of a role, in the order in which they are started."""
        if role not in _OF_A_CELL:
            return (self.service(),)
        share = self._share()
        if role is Role.CABLES:
            return share.cables
        part = {Role.SWITCH: share.switch, Role.FUNCTIONS: share.functions, Role.GENERATOR: share.generator}[role]
        return () if part is None else (part,)

    def service(self) -> SizedHere:
        """The part of a service."""
        if self.sized is None:
            raise CsitError("this agent has no part of a service")
        return self.sized

    def generator(self) -> TrafficGenerator:
        """Who sends and receives."""
        return _there(self._share().generator, Role.GENERATOR)

    def system(self, role: Role) -> VSwitch | NetworkFunctions:
        """The vSwitch, or the NFs."""
        part = self._share().switch if role is Role.SWITCH else self._share().functions
        return _there(part, role)

    def reporting(self, role: Role) -> VSwitch | NetworkFunctions | TrafficGenerator | Instances | CabledLoad:
        """Whoever of a role tells facts and problems."""
        if role not in _OF_A_CELL:
            return self.service().reporting
        return self.generator() if role is Role.GENERATOR else self.system(role)

    def counters(self, role: Role) -> Mapping[str, InterfaceCounters]:
        """Of the interfaces of a role."""
        return self._share().generator_counters() if role is Role.GENERATOR else self.system(role).counters()

    def processed(self) -> Mapping[str, Processed]:
        """What NFs have done with packets, where they can tell."""
        functions = self._share().functions
        return functions.processed() if isinstance(functions, Processing) else {}

    def sample(self) -> Sample:
        """Use of CPUs until now."""
        sampler = self._share().sampler
        return sampler.read() if sampler else Sample()

    def watcher(self, who: Watcher) -> FeatureSampler | Tracer | CostMeter:
        """Somebody who watches the cell."""
        watcher = _watcher_of(self._share(), who)
        if watcher is None:
            raise _missing(who)
        return watcher

    def watched(self, who: Watcher) -> Seen:
        """What that one saw, who ends with it."""
        share = self._share()
        match who:
            case Watcher.FEATURES:
                features = _there(share.features, who)
                return Seen(series=features.stop(), cpu_s=features.cpu_s)
            case Watcher.TRACER:
                tracer = _there(share.tracer, who)
                return Seen(graphs=tracer.stop(), cpu_s=tracer.cpu_s)
            case Watcher.COSTS:
                return Seen(costs=_there(share.costs, who).stop())

    def watch_no_more(self) -> None:
        """Whoever still watches holds on to what is to be removed."""
        if self.share is not None:
            for who in Watcher:
                if (watcher := _watcher_of(self.share, who)) is not None:
                    watcher.stop()

    def _share(self) -> Share:
        if self.share is None:
            raise CsitError("this agent has no cell")
        return self.share


def _watcher_of(share: Share, who: Watcher) -> FeatureSampler | Tracer | CostMeter | None:
    match who:
        case Watcher.FEATURES:
            return share.features
        case Watcher.TRACER:
            return share.tracer
        case Watcher.COSTS:
            return share.costs


def _there(part: _P | None, role: Role | Watcher) -> _P:
    if part is None:
        raise _missing(role)
    return part


def _missing(role: Role | Watcher) -> CsitError:
    return CsitError(f"this node has no {role} in the present cell")
