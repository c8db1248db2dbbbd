"""The search over sizes on services of known capacity: its way, its end, failures, resuming."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.service.spec import (
    DeploymentSpec,
    MeasuredSize,
    Offered,
    Size,
    Sizing,
    Use,
    name_of,
)
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.planning.sizes import exhaustive, instance_names
from resources.libraries.python.studies.sizing.search.capacity import OfferedLoad, ends, offered_load
from resources.libraries.python.studies.sizing.search.size_gains import best_of
from resources.libraries.python.studies.sizing.search.size_search import measured_size
from resources.libraries.python.studies.sizing.size_trials import search_of
from tests.unit.examples import share
from tests.unit.studies.sizing.sizing_specs import service, services

CARRIES = {"bono": 800.0, "sprout": 360.0, "homestead": 400.0}
"""Calls per second and vCPU."""
BITS_PER_CALL = {"bono": 51_000.0, "sprout": 20_000.0, "homestead": 30_000.0}


def workload(**row: Any) -> WorkloadSpec:
    return WorkloadSpec.model_validate(
        {"range": {"min": 200, "max": 1100}, "increase": 50, "generator": "g", "stop": {"below": 0.8}, **row}
    )


@dataclass
class Bench:
    """A service in which every component has a capacity in proportion to its vCPUs."""

    spec: DeploymentSpec
    carries: Mapping[str, float]
    fails: Mapping[str, CsitError] = field(default_factory=dict)
    """By size, in the middle of its loads."""
    knows_use: bool = True

    def measure(self, size: Size, load: WorkloadSpec) -> MeasuredSize:
        name, offered, failed = name_of(self.spec, size), list[Offered](), None
        deployed = Loaded(self, size, name)
        try:
            for each in load.loads():
                offered.append(offered_load(each, load.repeat, deployed.offer))
                if ends(load.stop, offered):
                    break
        except CsitError as error:
            failed = str(error)
        return measured_size(self.spec, load, (size, name), offered, 2.0, failed=failed)

    def capacity(self, size: Size) -> float:
        return min(self.of(size).values())

    def of(self, size: Size) -> dict[str, float]:
        return {
            name: self.carries[name] * share.instances * self.spec.flavors[share.flavor].vcpus
            for name, share in size.components.items()
        }


@dataclass
class Loaded:
    bench: Bench
    size: Size
    name: str

    def offer(self, load: float) -> OfferedLoad:
        if load > 300 and self.name in self.bench.fails:
            raise self.bench.fails[self.name]
        done = min(load, self.bench.capacity(self.size))
        each = self.bench.of(self.size)
        names = instance_names(self.bench.spec, self.size)
        known = {
            name: Use(cpu=done / each[component], memory=None, network_bps=done * BITS_PER_CALL.get(component, 1e4))
            for name in names
            for component in (name.rpartition("-")[0],)
        }
        return OfferedLoad(done, known if self.bench.knows_use else {})


def search(bench: Bench, load: WorkloadSpec | None = None) -> Sizing:
    asked = load or workload()
    found = search_of(bench.spec, asked)
    for size in found.wanted():
        found.add(bench.measure(size, asked))
    return found.result()


def test_directed_search_gives_more_to_the_busiest_component_until_the_resources_end() -> None:
    found = search(Bench(service(), CARRIES))
    assert [(row.name, row.capacity, row.bottleneck) for row in found.sizes] == [
        ("bn1s-sp1s-hs1s", 400, "sprout"),  # 360 of 400 is exactly the threshold
        ("bn1s-sp1m-hs1s", 400, "homestead"),
        ("bn1s-sp1m-hs1m", 800, "sprout"),
    ]
    assert (found.stopped, found.best, found.planned) == ("resources exhausted", "bn1s-sp1m-hs1m", None)
    assert {row.deploy_s for row in found.sizes} == {2.0}
    shares = [re.findall(r"(\w+) is busiest \(cpu: (.+?)\)", step) for step in found.steps]
    assert [found for found in shares if found] == [
        [("sprout", "sprout 100 %, homestead 90 %, bono 45 %")],
        [("homestead", "homestead 100 %, sprout 56 %, bono 50 %")],
        [("sprout", "sprout 100 %, bono 90 %, homestead 90 %")],
    ]
    assert found.steps[0] == "First: bono 1 small, sprout 1 small, homestead 1 small, the smallest size, 3 vCPUs."
    assert "; bono 1 small, sprout 1 large, homestead 1 medium needs 7 vCPUs, 6 available" in found.steps[-1]


def test_directed_search_by_network_names_bit_rates() -> None:
    found = search(Bench(service(watch="network", resources={"vcpus": 4}), CARRIES))
    assert [row.bottleneck for row in found.sizes] == ["bono", "bono"]
    assert "(network: bono 18.4 Mbit/s, homestead 10.8 Mbit/s, sprout 7.2 Mbit/s)" in found.steps[1]
    assert found.stopped == "resources exhausted"
    assert found.best == "bn1s-sp1s-hs1s", "sprout's CPU is the limit: more for bono is taken back"


def test_directed_search_ends_with_the_first_size_that_carries_the_workload() -> None:
    bench = Bench(service(resources={}), CARRIES)
    found = search(bench, workload(workload=700))
    assert (found.stopped, found.best) == ("workload reached", "bn1s-sp1m-hs1m")
    assert "sprout 1 medium, homestead 1 medium carries 800 calls/s, 700 are required" in found.steps[-1]
    assert "homestead 1 medium carries 700 calls/s with the fewest vCPUs of all measured, 5" in found.notes[-1]


def test_directed_search_ends_where_the_range_ends() -> None:
    found = search(Bench(service(resources={}), CARRIES), workload(range={"min": 100, "max": 350}))
    assert (found.stopped, len(found.sizes), found.sizes[0].at_top) == ("workload reached", 1, True)


def test_directed_search_ends_where_the_busiest_component_cannot_grow() -> None:
    found = search(Bench(service(resources={}), {"bono": 50.0, "sprout": 900.0, "homestead": 900.0}))
    assert [row.name for row in found.sizes] == ["bn1s-sp1s-hs1s", "bn1m-sp1s-hs1s", "bn1l-sp1s-hs1s"]
    assert [row.capacity for row in found.sizes] == [None, None, 200]
    assert found.stopped == "no larger size"
    assert "does not carry 200 calls/s, where bono is busiest" in found.steps[1]


def test_scaling_out_adds_instances_to_the_busiest() -> None:
    spec = service(scaling="out", flavors=("small",), most=3, resources={"vcpus": 5})
    assert [row.name for row in search(Bench(spec, CARRIES)).sizes] == [
        "bn1s-sp1s-hs1s",
        "bn1s-sp2s-hs1s",
        "bn1s-sp2s-hs2s",
    ]


def test_hybrid_scaling_adds_instances_where_there_is_no_larger_flavor() -> None:
    spec = service(("ids",), ("ids",), scaling="hybrid", flavors=("small", "medium"), most=2, resources={})
    found = search(Bench(spec, {"ids": 150.0}))
    assert [row.name for row in found.sizes] == ["ids1s", "ids1m", "ids2m"]


def test_exhaustive_search_measures_all_and_takes_the_best_with_the_fewest_vcpus() -> None:
    found = search(Bench(service(mode="exhaustive"), CARRIES))
    assert (len(found.sizes), found.planned, found.stopped) == (11, 11, "all measured")
    assert found.best == "bn1s-sp1m-hs1m"
    assert "homestead 1 small, size 1 of 11, 3 vCPUs: capacity 400 calls/s" in found.steps[0]
    assert found.steps[0].endswith(", sprout is busiest.")


@given(st.lists(st.tuples(st.sampled_from([None, 400.0, 600.0]), st.integers(1, 8)), max_size=8))
def test_the_best_size_has_the_highest_capacity_and_of_those_the_fewest_vcpus(
    rows: list[tuple[float | None, int]],
) -> None:
    sizes = [
        MeasuredSize(
            size=Size(components={}), name=str(place), vcpus=vcpus, memory_mb=1024, offered=(), capacity=capacity,
            at_top=False, bottleneck=None,
        )
        for place, (capacity, vcpus) in enumerate(rows)
    ]  # fmt: skip
    best = best_of(sizes)
    known = [(capacity, vcpus) for capacity, vcpus in rows if capacity is not None]
    if not known:
        assert best is None
    else:
        highest = max(capacity for capacity, _ in known)
        assert rows[int(best or -1)] == (highest, min(vcpus for capacity, vcpus in known if capacity == highest))


@settings(max_examples=share(25), deadline=None)
@given(services(), st.data())
def test_directed_search_visits_some_of_the_sizes_of_exhaustive_search(
    spec: DeploymentSpec, data: st.DataObject
) -> None:
    assume(len(exhaustive(spec)) <= 40)
    carries = {row.name: data.draw(st.floats(50, 900)) for row in spec.components}
    every = search(Bench(spec, carries))
    directed = search(Bench(spec.model_copy(update={"mode": "directed"}), carries))
    by_name = every.named()
    assert {row.name for row in directed.sizes} <= set(by_name)
    assert [row.capacity for row in directed.sizes] == [by_name[row.name].capacity for row in directed.sizes]
    assert every.planned == len(exhaustive(spec)) == len(every.sizes)
    if directed.stopped == "workload reached":
        assert max(row.capacity or 0 for row in every.sizes) == 1100


def failure(name: str) -> dict[str, CsitError]:
    return {name: CommandFailed(("reg-dereg.sh",), 1, "no answer")}


def test_a_size_that_fails_ends_directed_search_and_keeps_what_was_seen() -> None:
    bench = Bench(service(), CARRIES, failure("bn1s-sp1m-hs1s"))
    found = search(bench)
    assert (found.stopped, found.best) == ("failed", "bn1s-sp1s-hs1s")
    failed = found.sizes[-1]
    assert failed.failed == "reg-dereg.sh ended with 1: no answer"
    assert (failed.capacity, failed.bottleneck, len(failed.offered)) == (None, None, 3)


def test_a_size_that_fails_is_left_out_of_exhaustive_search() -> None:
    found = search(Bench(service(mode="exhaustive"), CARRIES, failure("bn1s-sp1m-hs1m")))
    assert (found.stopped, len(found.sizes)) == ("all measured", 11)
    assert found.best == "bn1m-sp1m-hs1m"


def test_a_directed_search_without_utilization_says_so() -> None:
    found = search(Bench(service(), CARRIES, knows_use=False))
    assert found.stopped == "failed"
    assert found.steps[-1].endswith(", but its cpu use is unknown.")
