"""Services that no CPU limits, or that lose by more instances: what a search buys, names and takes back."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from resources.libraries.python.model.service.spec import Capacity, MeasuredSize, Scaling, Sizing
from resources.libraries.python.quantities import MINUS
from resources.libraries.python.studies.sizing.analysis import headline
from resources.libraries.python.studies.sizing.search.size_gains import Gain, best_of, gain
from resources.libraries.python.studies.sizing.search.size_search import carried, scale_out_costs
from tests.unit.studies.sizing.sizing_runs import run_simulated, service
from tests.unit.studies.sizing.sizing_runs import workload as workload_of

FLAVORS = {f"f{vcpus}": {"vcpus": vcpus, "memory_mb": 100 * vcpus} for vcpus in (1, 2, 4, 8)}


def sized(
    parts: Mapping[str, Mapping[str, Any]],
    flavors: Sequence[str] = tuple(FLAVORS),
    *,
    spec: Mapping[str, Any] | None = None,
    workload: Mapping[str, Any] | None = None,
    **truth: Any,
) -> Sizing:
    """Search over sizes of a simulated service of these parts."""
    there, row = {name: FLAVORS[name] for name in flavors}, {"resources": {}, **(spec or {})}
    deployment = service(list(parts), [f"{name}x" for name in parts], flavors=flavors, flavors_there=there, **row)
    common = {"repeat": 2, "stop": {"below": 0.8, "loads": 2}, "duration_s": 3}
    load = workload_of(100, 4000, 20, **{**common, **(workload or {})})
    return run_simulated(deployment, load, {"components": parts, "drift": 0.01, **truth})


LIMITS: dict[str, dict[str, Any]] = {
    "lock": {"parts": {"a": {"cpu_ms": 1.5}, "b": {"cpu_ms": 0.4, "lock_ms": 2.5}}},
    "outside": {"parts": {"a": {"cpu_ms": 1.5}, "b": {"cpu_ms": 0.4}}, "outside": 400},
    "thread": {"parts": {"a": {"cpu_ms": 2.0}, "b": {"cpu_ms": 2.4, "threads": 1}}, "flavors": ("f4", "f8")},
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_beside_the_cpus_is_recognized_and_nothing_is_bought_for_it(limit: str) -> None:
    found = sized(**LIMITS[limit])
    smallest = found.sizes[0]
    assert (found.stopped, found.best, len(found.sizes)) == ("no gain", smallest.name, 2)
    assert (smallest.bottleneck, smallest.near_limit) == (None, False)
    ended = found.steps[-2]
    assert ended.startswith("Ended: ")
    assert "no component is near its limit: a lock, a single thread or something outside the service" in ended
    assert found.steps[-1].startswith(f"Taken back to {smallest.text}: ")
    assert (limit == "thread") == ("as one thread does" in ended)


def test_a_component_that_looked_busy_until_more_of_it_was_no_help_is_not_the_bottleneck() -> None:
    found = sized({"a": {"cpu_ms": 1.83}, "b": {"cpu_ms": 0.4, "lock_ms": 2.5}})
    assert found.steps[1].count("a is busiest (cpu: a 7") == 1
    assert (found.stopped, found.sizes[0].bottleneck) == ("no gain", None)


def test_two_components_that_must_grow_together_do() -> None:
    found = sized({"a": {"cpu_ms": 4}, "b": {"cpu_ms": 4}}, ("f1", "f2"))
    first, one, both = (row.name for row in found.sizes[:3])
    assert (found.best, one in (found.best, first)) == (both, False)
    assert "gains nothing over" in found.steps[2]


def test_out_scaling_that_lowers_capacity_is_stopped_and_taken_back_though_another_is_busy() -> None:
    spec = {"most": 4, "scaling": "out"}
    found = sized({"a": {"cpu_ms": 2.3, "sync": 1.2}}, ("f1",), spec=spec)
    one, two = found.sizes
    assert (found.stopped, found.best) == ("no gain", one.name)
    assert found.steps[-1] == f"Taken back to {one.text}: {two.text} has 1 vCPU more and carries no more."
    assert any(note.startswith(f"{two.text} carries less than {one.text} ({MINUS}9 %") for note in found.notes)
    (cost,) = found.overheads
    assert (cost.scaling, cost.base, cost.size, cost.vcpus_ratio) == (Scaling.OUT, one.name, two.name, 2)
    assert cost.low < 1 - 1 / 2.2 < cost.high
    parts = {"a": {"cpu_ms": 2.3, "sync": 1.2}, "b": {"cpu_ms": 2.25, "sync": 1.2}}
    found = sized(parts, ("f1",), spec={"most": 4, "scaling": "out"})
    assert [row.name for row in found.sizes] == ["ax1f-bx1f", "ax2f-bx1f"]
    assert (found.stopped, found.best) == ("no gain", "ax1f-bx1f")


def test_the_best_size_carries_the_workload_where_any_does_and_loads_are_written_in_full() -> None:
    """A size that carries a step less, which is within its interval, is not what was asked for."""
    less = estimate(100, 95, 105).model_copy(update={"name": "a", "vcpus": 1, "capacity": 100})
    more = estimate(104, 99, 109).model_copy(update={"name": "b", "vcpus": 2, "capacity": 104})
    assert [best_of([less, more], workload) for workload in (None, 99, 103, 200)] == ["a", "a", "b", "a"]
    millions = estimate(1_234_567, 1_230_000, 1_240_000).model_copy(update={"capacity": 1_250_000.0})
    assert carried(millions, "pps") == "1,250,000 pps (estimate 1,235,000, 95 % interval 1,230,000 to 1,240,000)"


def test_overhead_of_scaling_out_is_that_of_the_component_that_limits() -> None:
    """Here b is scaled out by 2 and limits; a, which is scaled up, does not."""
    parts = {"a": {"cpu_ms": 0.5}, "b": {"cpu_ms": 2.4, "sync": 0.5}}
    out = {"a": {"flavor": "f2"}, "b": {"flavor": "f1", "instances": 2}}
    one = {name: {"flavor": "f1"} for name in parts}
    both = {"a": {"flavor": "f4"}, "b": {"flavor": "f2", "instances": 2}}
    sizes = [{"components": each} for each in (one, out, both)]
    found = sized(parts, ("f1", "f2", "f4"), spec={"mode": "custom", "sizes": sizes})
    cost, up = found.overheads
    assert (cost.scaling, cost.base, cost.components) == (Scaling.OUT, found.sizes[0].name, ("a", "b"))
    assert cost.low < 1 - 1 / 1.5 < cost.high
    for row in found.overheads:
        assert row.overhead_ratio == pytest.approx(1 - row.capacity_ratio / row.vcpus_ratio)
    assert (up.scaling, up.base, up.size) == (Scaling.UP, found.sizes[1].name, found.sizes[2].name)


def test_all_sizes_of_a_lock_carry_the_same_so_the_smallest_is_best() -> None:
    found = sized({"a": {"cpu_ms": 1.0, "lock_ms": 2.5}}, spec={"mode": "exhaustive"}, drift=0.03)
    assert found.best == found.sizes[0].name
    assert any(note.startswith("No component is near its limit in ") for note in found.notes)
    best, *more = found.sizes
    better = more[-1].model_copy(update={"capacity": (best.capacity or 0) + 20})
    assert ", the highest of" not in headline(found.model_copy(update={"sizes": (best, better)}))


def test_more_instances_neither_cost_nor_bring_what_the_intervals_do_not_show() -> None:
    sizes = [{"components": {"a": each}} for each in ({"flavor": "f2"}, {"flavor": "f1", "instances": 2})]
    found = sized({"a": {"cpu_ms": 2.4}}, ("f1", "f2"), spec={"mode": "custom", "sizes": sizes})
    rows = []
    for row, load in zip(found.sizes, (720.0, 700.0), strict=True):
        at = Capacity(threshold=0.9, carried=load, estimate=load, low=load - 30, high=load + 30)
        rows.append(row.model_copy(update={"capacity": load, "capacities": (at,)}))
    (note,) = scale_out_costs(found.deployment, found.workload, rows)
    assert "cost" not in note and "bring" not in note


def test_capacities_at_several_thresholds_come_from_the_same_loads() -> None:
    """What carries 400 calls/s at most carries 444 at 0.9 and 500 at 0.8 of the load."""
    found = sized({"a": {"cpu_ms": 2.425}}, ("f1",), workload={"thresholds": [0.8, 0.9]})
    (size,) = found.sizes
    assert [row.threshold for row in size.capacities] == [0.9, 0.8]
    for row in size.capacities:
        assert row.estimate == pytest.approx(400 / row.threshold, rel=0.02)
        assert row.low < row.estimate < row.high
        assert abs(row.carried - row.estimate) < 30
    assert size.capacity == size.capacities[0].carried


def estimate(*interval: float) -> MeasuredSize:
    found = sized({"a": {"cpu_ms": 2.425}}, ("f1",)).sizes[0]
    load, low, high = interval
    capacity = Capacity(threshold=0.9, carried=load, estimate=load, low=low, high=high)
    return found.model_copy(update={"capacities": (capacity,)})


@pytest.mark.parametrize(
    ("after", "nothing"),
    [((103, 98, 108), True), ((108, 106, 110), False), ((90, 88, 92), True), ((115, 80, 150), False)],
)
def test_a_gain_is_nothing_where_it_may_be_none_and_is_not_large(after: Sequence[float], nothing: bool) -> None:
    more = gain(estimate(100, 99, 101), estimate(*after))
    assert more.is_nothing is nothing
    assert more.low < more.ratio < more.high
    assert more.ratio == pytest.approx(after[0] / 100 - 1)


def test_the_interval_of_a_gain_is_that_of_both_capacities_which_are_no_lower_bounds() -> None:
    assert gain(estimate(100, 90, 110), estimate(100, 100, 100)) == pytest.approx(Gain(0, -1 / 11, 1 / 9))
    top = sized({"a": {"cpu_ms": 0.1}}, ("f1",), workload={"range": {"min": 100, "max": 140}}).sizes[0]
    assert (top.at_top, top.near_limit) == (True, None)
    assert gain(top, estimate(100, 90, 110)) is None
