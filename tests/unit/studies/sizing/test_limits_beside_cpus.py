"""Services that no CPU limits, or that lose by more instances: what a search buys, names and takes back."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from resources.libraries.python.model.service.spec import Capacity, MeasuredSize, Scaling, Sizing
from resources.libraries.python.quantities import MINUS
from resources.libraries.python.studies.sizing.search.capacity import Gain, best_of, gain
from resources.libraries.python.studies.sizing.search.size_search import scale_out_costs
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
    *_, ended, last = found.steps
    assert "no component is near its limit: a lock, a single thread or something outside the service" in ended
    assert last.startswith(f"Taken back to {smallest.text}: ")
    assert (limit == "thread") == ("as one thread does" in ended)


def test_a_component_that_looked_busy_until_more_of_it_was_no_help_is_not_the_bottleneck() -> None:
    found = sized({"a": {"cpu_ms": 1.83}, "b": {"cpu_ms": 0.4, "lock_ms": 2.5}})
    assert "a is busiest (cpu: a 7" in found.steps[1]
    assert (found.stopped, found.sizes[0].bottleneck) == ("no gain", None)


def test_out_scaling_that_lowers_capacity_is_stopped_and_taken_back_though_another_is_busy() -> None:
    spec = {"most": 4, "scaling": "out"}
    found = sized({"a": {"cpu_ms": 2.3, "sync": 1.2}}, ("f1",), spec=spec)
    one, two = found.sizes
    assert (found.stopped, found.best) == ("no gain", one.name)
    assert found.steps[-1].startswith(f"Taken back to {one.text}: ")
    assert any(note.startswith(f"{two.text} carries less than {one.text} ({MINUS}9 %") for note in found.notes)
    (cost,) = found.overheads
    assert (cost.scaling, cost.base, cost.size, cost.vcpus_ratio) == (Scaling.OUT, one.name, two.name, 2)
    assert cost.low < 1 - 1 / 2.2 < cost.high
    found = sized({"a": {"cpu_ms": 2.3, "sync": 1.2}, "b": {"cpu_ms": 2.25, "sync": 1.2}}, ("f1",), spec=spec)
    assert (found.stopped, found.best, len(found.sizes)) == ("no gain", "ax1f-bx1f", 2)


def test_the_best_size_carries_the_workload_where_any_does() -> None:
    """A size that carries a step less, which is within its interval, is not what was asked for."""
    less = estimate(100, 95, 105).model_copy(update={"name": "a", "vcpus": 1, "capacity": 100})
    more = estimate(104, 99, 109).model_copy(update={"name": "b", "vcpus": 2, "capacity": 104})
    assert [best_of([less, more], workload) for workload in (None, 99, 103, 200)] == ["a", "a", "b", "a"]


def test_more_instances_neither_cost_nor_bring_what_the_intervals_do_not_show() -> None:
    sizes = [{"components": {"a": each}} for each in ({"flavor": "f2"}, {"flavor": "f1", "instances": 2})]
    found = sized({"a": {"cpu_ms": 2.4}}, ("f1", "f2"), spec={"mode": "custom", "sizes": sizes})
    rows = [
        row.model_copy(update={"capacity": load, "capacities": estimate(load, load - 30, load + 30).capacities})
        for row, load in zip(found.sizes, (720.0, 700.0), strict=True)
    ]
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


def estimate(load: float, low: float, high: float) -> MeasuredSize:
    capacity = Capacity(threshold=0.9, carried=load, estimate=load, low=low, high=high)
    return sized({"a": {"cpu_ms": 2.425}}, ("f1",)).sizes[0].model_copy(update={"capacities": (capacity,)})


@pytest.mark.parametrize(
    ("after", "nothing"),
    [((103, 98, 108), True), ((108, 106, 110), False), ((90, 88, 92), True), ((115, 80, 150), False)],
)
def test_a_gain_is_nothing_where_it_may_be_none_and_is_not_large(after: Sequence[float], nothing: bool) -> None:
    more = gain(estimate(100, 99, 101), estimate(*after))
    assert more.is_nothing is nothing
    assert more.low < more.value < more.high
    assert more.value == pytest.approx(after[0] / 100 - 1)


def test_the_interval_of_a_gain_is_that_of_both_capacities_which_are_no_lower_bounds() -> None:
    assert gain(estimate(100, 90, 110), estimate(100, 100, 100)) == pytest.approx(Gain(0, -1 / 11, 1 / 9))
    top = sized({"a": {"cpu_ms": 0.1}}, ("f1",), workload={"range": {"min": 100, "max": 140}}).sizes[0]
    assert (top.at_top, top.near_limit) == (True, None)
    assert gain(top, estimate(100, 90, 110)) is None
