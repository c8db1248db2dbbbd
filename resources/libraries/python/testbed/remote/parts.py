"""What a node has of a cell, driven by calls to its agent."""

import logging
import time
from collections.abc import Mapping

from resources.libraries.python.model.counters import InterfaceCounters, Processed, Sample
from resources.libraries.python.model.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import Role
from resources.libraries.python.testbed.remote.link import Link, Pending

_log = logging.getLogger(__name__)


class RemotePart:
    """A part on a node. Its agent's life is its own: when the agent is gone, so is all that it made."""

    def __init__(self, link: Link, role: Role) -> None:
        self._link = link
        self._role = role

    @property
    def node(self) -> str:
        """Where it is."""
        return self._link.name

    def begin_start(self) -> Pending[None]:
        """Let it come up, beside parts of other nodes."""
        return self._link.begin(calls.START, self._role)

    def begin_stop(self) -> Pending[None] | None:
        """Let it be removed; None where there is no agent that could do it, which then has removed it itself."""
        if self._link.lost:
            _log.info("%s: %s is left to the node: %s", self._link.name, self._role, self._link.lost)
            return None
        return self._link.begin(calls.STOP, self._role)

    def start(self) -> None:
        """Bring it up."""
        self.begin_start().result()

    def stop(self) -> None:
        """Remove what `start` made."""
        if (pending := self.begin_stop()) is not None:
            pending.result()

    def facts(self) -> Mapping[str, str]:
        """What it turned out to be."""
        return self._link.call(calls.FACTS, self._role)

    def problems(self) -> tuple[str, ...]:
        """What is wrong with it now."""
        return tuple(f"{self._link.name}: {text}" for text in self._link.call(calls.PROBLEMS, self._role))


class RemoteSystem(RemotePart):
    """The vSwitch or the NFs of a node. Fulfils `roles.vswitch.VSwitch` and `roles.function.NetworkFunctions`."""

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """Where data threads may really run, by interface."""
        return self._link.call(calls.AFFINITY, self._role)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface."""
        return self._link.call(calls.COUNTERS, self._role)


class RemoteFunctions(RemoteSystem):
    """The NFs of a node. Fulfils `Processing` of the roles too."""

    def processed(self) -> Mapping[str, Processed]:
        """What they have done, by name."""
        return self._link.call(calls.PROCESSED, None)


class RemoteGenerator(RemotePart):
    """The generator of a node. Fulfils `roles.generator.TrafficGenerator`."""

    def run(self, trial: Trial) -> TrialResult:
        """Run one trial; its total duration is the one seen from here, with the way to the node and back."""
        begin = time.monotonic()
        result = self._link.call(calls.RUN, trial, trial.duration_s)
        return result.model_copy(update={"total_duration_s": time.monotonic() - begin})

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """What can be offered, and where a search should begin."""
        return self._link.call(calls.HIGHEST, trial, 10 * trial.duration_s)

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Of the generator's interfaces, where there are any."""
        return self._link.call(calls.COUNTERS, self._role)


class RemoteSampler:
    """Fulfils `roles.sampler.Sampler`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def read(self) -> Sample:
        """Times since the node's boot."""
        return self._link.call(calls.SAMPLE, None)
