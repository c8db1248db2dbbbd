"""Sizes: names that cannot be mixed up, all that fits and nothing else, one step more at a time, CPUs of instances."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.service.spec import DeploymentSpec, Share, Size, flavor_codes, name_of
from resources.libraries.python.model.service.workload import Stop
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from resources.libraries.python.planning.placement.instance_cpus import place
from resources.libraries.python.studies.sizing import planning
from resources.libraries.python.studies.sizing.planning import exhaustive, next_size
from tests.unit.studies.sizing.sizing_runs import FLAVORS, service, services, workload

WORKLOAD = workload(200, 1100, 50, repeat=10, duration_s=300)


def sized(*flavors: str) -> Size:
    names = ("bono", "sprout", "homestead")
    return Size(components={name: Share(flavor=flavor) for name, flavor in zip(names, flavors, strict=True)})


def test_a_size_is_named_as_in_the_paper() -> None:
    spec = service(mode="custom", sizes=[sized("small", "small", "small")])
    assert name_of(spec, sized("small", "medium", "small")) == "bn1s-sp1m-hs1s"
    out = Size(components={**sized("large", "small", "small").components, "sprout": Share(flavor="small", instances=4)})
    assert name_of(spec, out) == "bn1l-sp4s-hs1s"
    assert planning.instance_names(spec, out)[:4] == ("bono-1", "sprout-1", "sprout-2", "sprout-3")


@pytest.mark.parametrize(
    ("flavors", "codes"),
    [("small standard large", "sm st l"), ("one one_large two", "one one_ t"), ("c1 c2 c4", "c1 c2 c4"), ("only", "o")],
)
def test_flavors_have_the_shortest_distinct_codes(flavors: str, codes: str) -> None:
    assert list(flavor_codes(flavors.split()).values()) == codes.split()


@given(st.lists(st.from_regex(r"[a-c][a-c0-1_-]{0,5}", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_no_two_flavors_have_the_same_code(flavors: list[str]) -> None:
    codes = flavor_codes(flavors)
    assert len(set(codes.values())) == len(flavors) and all(name.startswith(codes[name]) for name in flavors)


@pytest.mark.parametrize(
    ("flavors", "most", "scaling", "sizes"), [(3, 1, "up", 3), (1, 4, "out", 4), (2, 4, "hybrid", 8)]
)
def test_without_scaling_all_that_a_component_allows_is_varied(
    flavors: int, most: int, scaling: str, sizes: int
) -> None:
    row = {"flavors": tuple(FLAVORS)[:flavors], "most": most, "resources": {}}
    spec = service(("ids",), ("ids",), mode="exhaustive", **row)
    assert (spec.scaling, len(exhaustive(spec))) == (scaling, sizes)


def test_eleven_sizes_of_clearwater_fit_and_too_many_are_refused_at_once() -> None:
    spec = service(mode="exhaustive")
    names = [name_of(spec, size) for size in exhaustive(spec)]
    assert len(names) == 11
    assert names[:4] == ["bn1s-sp1s-hs1s", "bn1s-sp1s-hs1m", "bn1s-sp1m-hs1s", "bn1m-sp1s-hs1s"]
    assert [spec.vcpus(size) for size in exhaustive(spec)] == [3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6]
    with pytest.raises(PlanError, match="more than 10000 sizes of clearwater"):
        exhaustive(service([f"c{each}" for each in "abcdefghij"], "abcdefghij", mode="exhaustive", resources={}))


def test_scaling_out_varies_instances_and_hybrid_both() -> None:
    out = service(mode="exhaustive", scaling="out", flavors=("small",), most=3)
    assert {tuple(share.instances for share in size.components.values()) for size in exhaustive(out)} == {
        each for each in product((1, 2, 3), repeat=3) if sum(each) <= 6
    }
    hybrid = service(mode="exhaustive", scaling="hybrid", flavors=("small", "medium"), most=2)
    names = {name_of(hybrid, size) for size in exhaustive(hybrid)}
    assert {"bn1m-sp2s-hs2s", "bn1s-sp1m-hs1m", "bn2s-sp2s-hs2s"} <= names
    assert "bn2m-sp1s-hs1s" in names and "bn2m-sp2s-hs1s" not in names


@settings(deadline=None)
@given(services())
def test_all_sizes_that_fit_are_found_once_and_no_other(spec: DeploymentSpec) -> None:
    found = exhaustive(spec)
    names = [name_of(spec, size) for size in found]
    assert len(set(names)) == len(found) > 0
    assert not [name for name, size in zip(names, found, strict=True) if spec.lacking(size)]
    free = spec.model_copy(update={"resources": spec.resources.model_copy(update={"vcpus": None, "memory_mb": None})})
    assert {name_of(spec, size) for size in exhaustive(free) if not spec.lacking(size)} == set(names)


@settings(deadline=None)
@given(services(), st.data())
def test_whatever_component_is_scaled_directed_search_stays_among_these(
    spec: DeploymentSpec, data: st.DataObject
) -> None:
    known = {name_of(spec, size) for size in exhaustive(spec)}
    size, visited = spec.smallest(), 1
    while True:
        assert name_of(spec, size) in known
        component = data.draw(st.sampled_from([row.name for row in spec.components]))
        larger = next_size(spec, size, component)
        if larger is None or spec.lacking(larger):
            break
        assert spec.vcpus(larger) > spec.vcpus(size)
        size, visited = larger, visited + 1
    assert visited <= planning.most_directed(spec)


def test_the_next_size_is_one_step_for_one_component() -> None:
    up = service()
    assert next_size(up, sized("small", "small", "small"), "sprout") == sized("small", "medium", "small")
    assert next_size(up, sized("small", "large", "small"), "sprout") is None
    hybrid = service(scaling="hybrid", most=2)
    assert next_size(hybrid, sized("small", "small", "small"), "sprout") == sized("small", "medium", "small")
    more = next_size(hybrid, sized("small", "large", "small"), "sprout")
    assert more is not None and more.components["sprout"] == Share(flavor="large", instances=2)
    assert next_size(hybrid, more, "sprout") is None


def test_parts_of_a_cpu_add_up() -> None:
    flavors = {"tenth": {"vcpus": 0.1, "memory_mb": 64}}
    assert 0.1 + 0.1 + 0.1 > 0.3
    spec = service(flavors=("tenth",), flavors_there=flavors, resources={"vcpus": 0.3}, mode="exhaustive")
    assert len(exhaustive(spec)) == 1
    assert spec.vcpus(spec.smallest()) == 0.3


def test_the_cost_of_an_exhaustive_search_is_exact_and_of_a_directed_one_a_bound() -> None:
    found = planning.cost(service(mode="exhaustive"), WORKLOAD, 10.0)
    assert (found.at_most, found.seconds) == (False, 11 * 3 * 10 + 2090 * 301)
    counts = {"sizes": 11, "loads": 19, "repetitions": 10, "runs": 2090, "sizes_at_most": False, "loads_at_most": False}
    assert found.counts() == {**counts, "seconds": found.seconds}
    found = planning.cost(service(), WORKLOAD, 10.0)
    assert (found.sizes, found.sizes_at_most, found.runs, found.at_most) == (4, True, 760, True)
    stopping = WORKLOAD.model_copy(update={"stop": Stop(below=0.8)})
    assert planning.cost(service(mode="exhaustive"), stopping).loads_at_most


def machine(cores: int, threads: int = 1) -> CpuLayout:
    """Siblings are numbered behind all cores, as on most machines."""
    return layout([(core + cores * thread, core, 0, 0) for thread in range(threads) for core in range(cores)])


def sip(vcpus: float, *, pinned: bool, memory_mb: int = 64, hosts: int = 1) -> DeploymentSpec:
    row = {"servers": {"core_pinning": pinned, "count": hosts}, "scaling": "out", "most": 9, "resources": {}}
    flavors = {"small": {"vcpus": vcpus, "memory_mb": memory_mb}}
    return service(("edge", "registrar"), ("ed", "re"), flavors=("small",), flavors_there=flavors, **row)


def size(edges: int = 1, registrars: int = 1) -> Size:
    counts = (("edge", edges), ("registrar", registrars))
    return Size(components={name: Share(flavor="small", instances=count) for name, count in counts})


@given(edges=st.integers(1, 4), registrars=st.integers(1, 4), vcpus=st.sampled_from([0.2, 1, 2]))
def test_pinned_instances_share_no_cpu_where_there_are_enough(edges: int, registrars: int, vcpus: float) -> None:
    found = place(sip(vcpus, pinned=True), size(edges, registrars), machine(8, 2), None, oversubscribe=False)
    taken = [cpu for cpus in found.cpus.values() for cpu in cpus]
    assert len(found.cpus) == edges + registrars
    assert len(taken) == len(set(taken))
    assert found.left == frozenset(range(16)).difference(taken)


def test_instances_are_on_different_cores_first_and_an_oversubscribed_machine_has_them_all() -> None:
    found = place(sip(1, pinned=True), size(2, 2), machine(4, 2), None, oversubscribe=False)
    assert {cpu for cpus in found.cpus.values() for cpu in cpus} == {0, 1, 2, 3}
    found = place(sip(1, pinned=True), size(2), machine(2), None, oversubscribe=True)
    assert [sorted(cpus) for cpus in found.cpus.values()] == [[0], [1], [0]]
    assert found.short == "3 instances need 3 CPUs of their own, 2 available"


def test_pinning_takes_whole_cpus_and_parts_of_them_add_up_without_it() -> None:
    with pytest.raises(PlanError, match=r"^3 instances need 3 CPUs of their own, 2 available$"):
        place(sip(0.1, pinned=True), size(2), machine(2), None, oversubscribe=False)
    assert place(sip(0.1, pinned=False), size(9, 9), machine(2), None, oversubscribe=False).cpus == {}
    with pytest.raises(PlanError, match=r"^3 instances need 2\.1 CPUs, 2 available$"):
        place(sip(0.7, pinned=False), size(2), machine(2), None, oversubscribe=False)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (sip(3, pinned=False), "edge-1 needs 3 CPUs, 2 available"),
        (sip(1, pinned=False, memory_mb=600), "2 instances need 1200 MB of memory, 1000 MB available"),
        (sip(1, pinned=False, hosts=3), "servers.count: 3 hosts"),
    ],
)
def test_what_does_not_fit_at_all_is_refused_whatever_is_allowed(spec: DeploymentSpec, says: str) -> None:
    with pytest.raises(PlanError, match=f"^{says}"):
        place(spec, size(), machine(2), 1000, oversubscribe=True)
