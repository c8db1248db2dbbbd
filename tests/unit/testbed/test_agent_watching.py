"""Watching on a node: what is seen there is what the controller gets, and nobody watches what is gone."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.counters import Cost
from resources.libraries.python.model.measurements.delays import HopDelay
from resources.libraries.python.model.measurements.features import HOST, Edge, FeatureSeries, StateGraph
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.studies.chains.chain_trial import watching
from resources.libraries.python.studies.chains.planning.chain_generation import LEAD_S
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import COSTS, FEATURES, HOPS, SWITCH, TRACER, NodeRequest, Role
from resources.libraries.python.testbed.deployment.parts import Parts
from tests.unit.testbed.agent_service_runs import TOPOLOGY, WORK, NotingMachine, ask, ask_role, service_on

SERIES = FeatureSeries(owner="nf-1-1", feature="cpu_percent", values=(1.5, None, 3.0))
GRAPH = StateGraph(
    owner="nf-1-1", source="kernel", traced_s=0.5, events=2, lost=0,
    edges=(Edge(before="a:b", after="c", count=2, seconds=0.1),),
)  # fmt: skip


DELAY = HopDelay(owner="nf-1-1", direction=Direction.REVERSE, mean_s=5e-4, median_s=4e-4, packets=60)
COSTS_SEEN = {"nf-1-1": Cost(cpu_s=0.5, memory_bytes=1 << 20), "nf-2-1": Cost(cache_misses=7)}


class Watching:
    """A watcher that says what it has seen."""

    cpu_s = 0.25

    def __init__(self, seen: Any, note: Any, fails: str = "") -> None:
        self._seen, self._note, self._fails = seen, note, fails

    def start(self) -> None:
        self._note("start")
        if self._fails == "start":
            raise CsitError("there is no reader")

    def stop(self) -> Any:
        self._note("stop")
        if self._fails == "stop":
            raise CsitError("the reader has died")
        return self._seen

    def facts(self) -> Mapping[str, str]:
        return {"events": "all"}


class WatchedMachine(NotingMachine):
    """A machine whose NFs can be watched."""

    def share(self, plan: object, asked: object, capture: bytes | None = None) -> Parts:
        share = super().share(plan, asked, capture)
        features = Watching((SERIES,), lambda text: self.note(f"{text} features"))
        tracer = Watching((GRAPH,), lambda text: self.note(f"{text} tracer"))
        costs = Watching(COSTS_SEEN, lambda text: self.note(f"{text} costs"))
        hops = Watching((DELAY,), lambda text: self.note(f"{text} hops"))
        return Parts(share.cables, share.switch, features=features, tracer=tracer, costs=costs, hops=hops)


PROBES = (FEATURES, TRACER, COSTS, HOPS)


def test_series_graphs_costs_and_delays_pass_the_wire_unchanged() -> None:
    service = service_on(WatchedMachine())
    ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    assert {probe.role for probe in PROBES} < cast(frozenset[Role], ask(service, calls.PREPARE, WORK))
    for probe in PROBES:
        ask_role(service, probe, "start")
    assert ask_role(service, FEATURES, "stop") == (SERIES,)
    assert ask_role(service, TRACER, "stop") == (GRAPH,)
    assert ask_role(service, COSTS, "stop") == COSTS_SEEN
    assert ask_role(service, HOPS, "stop") == (DELAY,)
    assert ask_role(service, TRACER, "cpu_s") == 0.25
    assert ask_role(service, TRACER, "facts") == {"events": "all"}


def test_a_node_without_watchers_says_so() -> None:
    service = service_on(NotingMachine())
    ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    assert ask(service, calls.PREPARE, WORK) == {Role.CABLES, Role.SWITCH}
    with pytest.raises(CsitError, match="this node has no tracer"):
        ask_role(service, TRACER, "start")


def test_parts_are_not_watched_while_they_are_removed() -> None:
    machine = WatchedMachine()
    service = service_on(machine)
    ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    ask(service, calls.PREPARE, WORK)
    ask_role(service, SWITCH, "start")
    ask_role(service, FEATURES, "start")
    service.close()
    assert machine.notes.index("stop features") < machine.notes.index("stop switch")


def test_what_is_deployed_is_removed_although_its_watcher_cannot_be_stopped() -> None:
    class Stuck(WatchedMachine):
        def share(self, plan: object, asked: object, capture: bytes | None = None) -> Parts:
            return replace(super().share(plan, asked, capture), features=Watching((), self.note, "stop"))

    machine = Stuck()
    service = service_on(machine)
    ask(service, calls.OPEN, NodeRequest(TOPOLOGY, "DUT1"))
    ask(service, calls.PREPARE, WORK)
    ask_role(service, SWITCH, "start")
    with pytest.raises(CsitError, match="the reader has died"):
        ask_role(service, SWITCH, "stop")
    assert "stop switch" in machine.notes


def parts_with(features: object, tracer: object) -> Parts:
    return cast(Parts, SimpleNamespace(features=features, tracer=tracer))


@pytest.mark.parametrize(
    ("fails", "said"),
    [("start", "nothing was traced: there is no reader"), ("stop", "trace lost: the reader has died")],
)
def test_where_the_tracer_fails_features_are_kept(fails: str, said: str) -> None:
    features, tracer = Watching((SERIES,), lambda _: None), Watching((GRAPH,), lambda _: None, fails)
    with watching(parts_with(features, tracer), {"nf-1-1": "nat"}, 2) as watched:
        pass
    assert watched.notes == [said]
    assert [(cost.step, cost.cpu_s) for cost in watched.costs] == [("sample features", 0.25)]
    assert watched.series == (FeatureSeries(owner="nat", feature="cpu_percent", values=SERIES.values[LEAD_S:]),)


@pytest.mark.parametrize("fails", ["start", "stop"])
def test_the_kernel_traces_no_more_when_features_fail(fails: str) -> None:
    notes: list[str] = []
    features, tracer = Watching((), lambda _: None, fails), Watching((), notes.append)
    with pytest.raises(CsitError, match="reader"), watching(parts_with(features, tracer), {}, 1):
        pass
    assert notes == ["start", "stop"]


def test_others_than_the_chains_own_are_left_out_and_names_are_its_vnfs() -> None:
    seen = (SERIES, SERIES.model_copy(update={"owner": "nf-9-9"}), SERIES.model_copy(update={"owner": HOST}))
    parts = parts_with(Watching(seen, lambda _: None), Watching((GRAPH,), lambda _: None))
    with watching(parts, {"nf-1-1": "nat"}, 1) as watched:
        pass
    assert [row.owner for row in watched.graphs] == ["nat"]
    assert [row.owner for row in watched.series] == [], "the only second that is kept is unknown"
