"""The search over sizes on services of known capacity: its way, its end, failures, resuming."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.service.spec import DeploymentSpec, MeasuredSize, Size, Sizing, Use, name_of
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.planning import exhaustive, instance_names
from resources.libraries.python.studies.sizing.run import search_of
from resources.libraries.python.studies.sizing.search.capacity import OfferedLoad, best_of, ends, offered_load
from resources.libraries.python.studies.sizing.search.size_search import measured_size
from tests.unit.examples import share
from tests.unit.studies.sizing.sizing_runs import service, services, workload

CARRIES = {"bono": 800.0, "sprout": 360.0, "homestead": 400.0}
"""Calls per second and vCPU."""
BITS_PER_CALL = {"bono": 51_000.0, "sprout": 20_000.0, "homestead": 30_000.0}


LOAD = workload(200, 1100, 50, stop={"below": 0.8})


@dataclass
class Bench:
    """A service in which every component has a capacity in proportion to its vCPUs."""

    spec: DeploymentSpec
    carries: Mapping[str, float]
    fails: str = ""
    """A size, in the middle of its loads."""
    knows_use: bool = True

    def measure(self, size: Size, load: WorkloadSpec) -> MeasuredSize:
        rows, failed = [], None
        try:
            for each in load.loads():
                rows.append(offered_load(each, load.repeat, partial(self.offer, size)))
                if ends(load.stop, rows):
                    break
        except CsitError as error:
            failed = str(error)
        return measured_size(self.spec, load, (size, name_of(self.spec, size)), rows, 2.0, failed=failed)

    def offer(self, size: Size, load: float) -> OfferedLoad:
        if load > 300 and name_of(self.spec, size) == self.fails:
            raise CommandFailed(("reg-dereg.sh",), 1, "no answer")
        each = {
            name: self.carries[name] * share.instances * self.spec.flavors[share.flavor].vcpus
            for name, share in size.components.items()
        }
        done, known = min(load, *each.values()), {}
        for name in instance_names(self.spec, size):
            part = name.rpartition("-")[0]
            bits = done * BITS_PER_CALL.get(part, 1e4)
            known[name] = Use(cpu=done / each[part], memory=None, network_bps=bits)
        return OfferedLoad(done, known if self.knows_use else {})


def search(bench: Bench, load: WorkloadSpec = LOAD) -> Sizing:
    found = search_of(bench.spec, load)
    for size in found.wanted():
        found.add(bench.measure(size, load))
    return found.result()


def test_directed_search_gives_more_to_the_busiest_component_until_the_resources_end() -> None:
    found = search(Bench(service(), CARRIES))
    assert [(row.name, row.capacity, row.bottleneck) for row in found.sizes] == [
        ("bn1s-sp1s-hs1s", 400, "sprout"),  # 360 of 400 is exactly the threshold
        ("bn1s-sp1m-hs1s", 400, "homestead"),
        ("bn1s-sp1m-hs1m", 800, "sprout"),
    ]
    assert (found.stopped, found.best, found.planned) == ("resources exhausted", "bn1s-sp1m-hs1m", None)
    shares = re.findall(r"is busiest \(cpu: (.+?)\)", "".join(found.steps))
    assert shares == [
        "sprout 100 %, homestead 90 %, bono 45 %",
        "homestead 100 %, sprout 56 %, bono 50 %",
        "sprout 100 %, bono 90 %, homestead 90 %",
    ]
    assert "needs 7 vCPUs, 6 available" in found.steps[-1]


def test_directed_search_by_network_names_bit_rates() -> None:
    found = search(Bench(service(watch="network", resources={"vcpus": 4}), CARRIES))
    assert [row.bottleneck for row in found.sizes] == ["bono", "bono"]
    assert "(network: bono 18.4 Mbit/s, homestead 10.8 Mbit/s, sprout 7.2 Mbit/s)" in found.steps[1]
    assert found.best == "bn1s-sp1s-hs1s", "sprout's CPU is the limit: more for bono is taken back"


def test_directed_search_ends_with_the_first_size_that_carries_the_workload_or_all_loads() -> None:
    found = search(Bench(service(resources={}), CARRIES), LOAD.model_copy(update={"workload": 700.0}))
    assert (found.stopped, found.best) == ("workload reached", "bn1s-sp1m-hs1m")
    assert "800 calls/s, 700 are required" in found.steps[-1]
    found = search(Bench(service(resources={}), CARRIES), workload(100, 350, 50, stop={"below": 0.8}))
    assert (found.stopped, len(found.sizes), found.sizes[0].at_top) == ("workload reached", 1, True)


def test_directed_search_ends_where_the_busiest_component_cannot_grow() -> None:
    found = search(Bench(service(resources={}), {"bono": 50.0, "sprout": 900.0, "homestead": 900.0}))
    assert [row.name for row in found.sizes] == ["bn1s-sp1s-hs1s", "bn1m-sp1s-hs1s", "bn1l-sp1s-hs1s"]
    assert [row.capacity for row in found.sizes] == [None, None, 200]
    assert found.stopped == "no larger size"


def test_exhaustive_search_measures_all_and_takes_the_best_of_those_that_did_not_fail() -> None:
    found = search(Bench(service(mode="exhaustive"), CARRIES))
    assert (len(found.sizes), found.planned, found.stopped) == (11, 11, "all measured")
    assert found.best == "bn1s-sp1m-hs1m"
    found = search(Bench(service(mode="exhaustive"), CARRIES, "bn1s-sp1m-hs1m"))
    assert (found.stopped, len(found.sizes)) == ("all measured", 11)
    assert found.best == "bn1m-sp1m-hs1m"


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
    assert (best is None) == (not known)
    if best is not None:
        assert rows[int(best)] == min(known, key=lambda row: (-row[0], row[1]))


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


def test_a_size_that_fails_or_says_nothing_of_its_cpus_ends_directed_search() -> None:
    found = search(Bench(service(), CARRIES, "bn1s-sp1m-hs1s"))
    assert (found.stopped, found.best) == ("failed", "bn1s-sp1s-hs1s")
    failed = found.sizes[-1]
    assert failed.failed == "reg-dereg.sh ended with 1: no answer"
    assert (failed.capacity, failed.bottleneck, len(failed.offered)) == (None, None, 3)
    found = search(Bench(service(), CARRIES, knows_use=False))
    assert found.stopped == "failed" and "cpu use is unknown" in found.steps[-1]
