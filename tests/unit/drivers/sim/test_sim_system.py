"""The three simulated drivers on one system: counts agree, faults are found, runs repeat."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.models import POLL_S, forward, make_model
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame, with_flows
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.load_trials import measure_latency, measure_receive_rate
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import SearchOutcome, search_throughput
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed
from tests.unit.examples import share


def planned(service_type: str = "CSC", rows: int = 2, columns: int = 2) -> Plan:
    cell = Cell(service_type=ServiceType(service_type), nf_chains=rows, nf_nodes=columns)
    return make_plan(TOPOLOGY, cell, TOPOLOGY.dut.layout)


def test_a_flow_cache_makes_a_vswitch_slower_by_the_share_that_misses() -> None:
    cache = {"entries": 8192, "miss_cost": 3.0}
    bed = Bed(planned("CSP", rows=1, columns=1), flow_cache=cache)
    full_pps = Bed(planned("CSP", rows=1, columns=1)).system.capacity_pps(SMALL)
    found = {
        flows: bed.system.capacity_pps(with_flows(SMALL, flows)) / full_pps for flows in (1, 4096, 8192, 1_000_000)
    }
    assert found[1] == found[4096] == 1.0  # of both directions: 8192
    assert found[8192] == pytest.approx(1 / (0.5 + 3 * 0.5))
    assert found[1_000_000] == pytest.approx(1 / 3, rel=0.01)
    assert bed.system.capacity_pps(SMALL) == full_pps  # 254 addresses
    outcome = search_throughput(
        bed.generator.run, LADDER, with_flows(SMALL, 8192), bed.system.maximum_pps(SMALL), bed.clock.now
    )
    assert outcome.pdr is not None and outcome.pdr.throughput_pps == pytest.approx(full_pps / 2, rel=0.03)


@pytest.mark.parametrize("name", ModelName)
@pytest.mark.parametrize("service_type", ["CSC", "CSP"])
def test_ndr_is_below_pdr_is_below_mrr(name: ModelName, service_type: str) -> None:
    bed = Bed(planned(service_type), model=name)
    outcome = bed.search()
    mrr, _ = measure_receive_rate(bed.generator.run, LADDER, SMALL, bed.system.maximum_pps(SMALL))
    assert outcome.ndr is not None
    assert outcome.pdr is not None
    ndr_pps, pdr_pps = outcome.ndr.throughput_pps, outcome.pdr.throughput_pps
    assert ndr_pps is not None
    assert pdr_pps is not None
    truth_pps = bed.system.model(SMALL).truth_pps(0.0)
    # A search of two bands ends in the lower one now and then: by chance of 14 trials.
    assert ndr_pps == pytest.approx(truth_pps, rel=0.1 if name is ModelName.TWO_BAND else 0.02)
    assert ndr_pps <= pdr_pps * (1 + 1e-9)
    if name is ModelName.SAG:
        assert mrr.mean_pps < pdr_pps  # what sagging means
    else:
        # The best trial: low bands pull the mean below the median, by which PDR goes.
        assert pdr_pps <= max(mrr.receive_rates_pps) * (1 + 1e-5)


@settings(deadline=None, max_examples=share(60))
@given(
    cell=st.sampled_from([("CSC", 1, 1), ("CSC", 3, 2), ("CSP", 2, 4), ("VSC", 2, 1), ("CSC", 10, 1)]),
    name=st.sampled_from(ModelName),
    load_pps=st.floats(0.0, 4e7),
    unfairness=st.floats(0.0, 0.99),
    seed=st.integers(0, 1000),
)
def test_counts_agree_everywhere(
    cell: tuple[str, int, int], name: ModelName, load_pps: float, unfairness: float, seed: int
) -> None:
    bed = Bed(planned(*cell), model=name, unfairness=unfairness, seed=seed)
    results = [bed.run(load_pps), bed.run(load_pps / 2, probe_pps=100.0)]
    counters = bed.counters()
    for path in bed.plan.paths:
        flows = [f for r in results for f in r.flows if (f.instance, f.direction) == (path.instance, path.direction)]
        probes = [f for r in results for f in r.latency if (f.instance, f.direction) == (path.instance, path.direction)]
        sent = sum(flow.sent for flow in flows) + sum(probe.sent for probe in probes)
        received = sum(flow.received for flow in flows) + sum(probe.received for probe in probes)
        assert all(0 <= flow.received <= flow.sent for flow in flows)
        inner = path.hops[1:-1]
        seen = [
            counters[hop.interface].rx_packets if hop.counter == "rx" else counters[hop.interface].tx_packets
            for hop in inner
        ]
        assert seen == [received] * len(inner)
        assert counters[inner[0].interface].rx_dropped == sent - received
    for result in results:
        assert max(f.sent for f in result.flows) - min(f.sent for f in result.flows) <= 1


def test_an_unfair_one_does_not() -> None:
    flows = Bed(planned("CSC", 4, 1), model="sharp", unfairness=0.5).run(20e6).flows
    assert max(flow.received for flow in flows) > 1.1 * min(flow.received for flow in flows)


def test_unfairness_keeps_the_total() -> None:
    fair, unfair = (Bed(planned("CSC", 4, 1), model="sharp", unfairness=u).run(20e6) for u in (0.0, 0.5))
    assert (fair.sent, fair.received) == (unfair.sent, unfair.received)


@pytest.mark.parametrize(
    ("drop_at", "service_type", "expected"),
    [
        ((), "CSC", []),
        (("nf-2-1",), "CSC", ["forward: nf-2-1 csn2x1i1 rx > nf-2-1 csn2x1i2 tx", "reverse: nf-2-1 csn2x1i2 rx"]),
        (("csn2x1i2",), "CSC", ["forward: nf-2-1 csn2x1i1 rx > nf-2-1 csn2x1i2 tx", "reverse: vswitch csv2x1i2 tx"]),
        (("nf-2-2",), "CSP", ["forward: nf-2-2 csn2x2i1 rx > nf-2-2 csn2x2i2 tx", "reverse: nf-2-2 csn2x2i2 rx"]),
        (("csv2p1",), "CSC", ["forward: generator csg2p1 tx > vswitch csv2p1 rx", "reverse: vswitch csv2x1i1 rx"]),
    ],
)
def test_a_fault_is_found_where_it_is(drop_at: tuple[str, ...], service_type: str, expected: list[str]) -> None:
    complaints = Bed(planned(service_type), drop_at=drop_at).complaints()
    assert len(complaints) == len(expected)
    for complaint, where in zip(complaints, expected, strict=True):
        direction, places = where.split(": ")
        assert complaint.startswith(f"{service_type} instance 2 {direction}: 200 sent, last seen at ")
        last, _, following = places.partition(" > ")
        assert f"last seen at {last} (200)" in complaint
        assert f"not at {following}" in complaint


@pytest.mark.parametrize(("name", "line_pps"), [("64B", 29_761_904), ("1518B", 1_625_487), ("IMIX", 6_687_472)])
def test_line_rate_follows_the_frame(name: str, line_pps: int) -> None:
    bed = Bed(planned())
    trial = Trial(load_pps=1.0, duration_s=1.0, frame=frame(name))
    assert bed.generator.highest_loads(trial).offered_pps == pytest.approx(line_pps, abs=1)


def test_beyond_its_reach_the_generator_says_so() -> None:
    bed = Bed(planned("CSC", 1, 1), generator_max_pps=2e6)
    assert not bed.run(2e6).generator_limited
    result = bed.run(5e6)
    assert result.generator_limited
    assert result.sent == 2_000_000
    assert result.note is not None
    assert "2.00 Mpps of 5.00 Mpps" in result.note
    outcome = bed.search()
    assert outcome.generator_bound
    assert outcome.max_load_pps == pytest.approx(2e6, rel=0.011)
    assert all(found.upper_pps is None for found in outcome.goals)


def test_a_trial_takes_virtual_time_with_overhead() -> None:
    bed = Bed(planned("CSC", 1, 1), overhead_s=0.25)
    first, second = bed.run(1e6, 2.0), bed.run(1e6, 1.0)
    assert bed.clock.now() == 3.5
    assert (first.offered_duration_s, first.total_duration_s) == (2.0, 2.25)
    assert first.started_at == "2000-01-01T00:00:00.000+00:00"
    assert second.started_at == "2000-01-01T00:00:02.250+00:00"


def test_latency_of_every_instance_and_direction_grows_with_load() -> None:
    bed = Bed(planned("CSC", 2, 2), model="sharp")
    pdr = bed.search().pdr
    assert pdr is not None
    rows, _ = measure_latency(bed.generator.run, LADDER, SMALL, pdr.lower_pps)
    for index in range(4):
        row = [each.flows[index].p99_ns for each in rows]
        known = [figure for figure in row if figure is not None]
        assert known == sorted(set(known))
        assert len(known) == 4


def test_runs_repeat_whatever_ran_before() -> None:
    def result(*before: tuple[int, int]) -> SearchOutcome:
        for rows, columns in before:
            Bed(planned("CSC", rows, columns)).search()
        return Bed(planned("CSC", 2, 1)).search()

    assert result() == result((1, 1), (4, 2))


def test_seed_cell_frame_and_test_type_have_random_numbers_of_their_own() -> None:
    def received(bed: Bed, name: str = "64B") -> int:
        return bed.generator.run(Trial(load_pps=3e7, duration_s=1.0, frame=frame(name))).received

    plan = planned("CSC", 2, 1)
    counts = [
        received(Bed(plan)),
        received(Bed(plan, seed=2)),
        received(Bed(plan, TestType.MRR)),
        received(Bed(planned("CSC", 1, 2))),
        received(Bed(plan), "128B"),
    ]
    assert len(set(counts)) == len(counts)


def test_threads_run_where_they_are_planned() -> None:
    bed = Bed(planned("CSC", 2, 1))
    actual = {**bed.switch.affinity(), **bed.functions.affinity()}
    assert set(actual) == set(bed.counters())
    for link in bed.plan.links:
        for port in (link.a, link.b):
            if port.interface in actual:
                assert actual[port.interface] == {bed.plan.cores.cpus(port.owner)[port.data_thread]}


CAPACITY = 1e6


@given(
    name=st.sampled_from(ModelName),
    load_pps=st.floats(1e4, 5e6),
    duration_s=st.sampled_from([0.3, 1.0, 10.0]),
    ratio=st.sampled_from([0.0, 0.001, 0.005, 0.2]),
    seed=st.integers(0, 1000),
)
def test_an_abort_is_the_beginning_of_the_whole_trial(
    name: ModelName, load_pps: float, duration_s: float, ratio: float, seed: int
) -> None:
    model = make_model(Simulation(model=name), CAPACITY)
    whole = forward(model, load_pps, duration_s, Random(seed))
    done = forward(model, load_pps, duration_s, Random(seed), ratio)
    assert (whole.duration_s, whole.aborted) == (duration_s, False)
    if whole.sent - whole.received <= ratio * whole.sent:
        assert done == whole
    elif not done.aborted:
        assert done == whole  # certain only after the last look
    else:
        polls = done.duration_s / POLL_S
        assert polls == pytest.approx(round(polls))
        assert done.duration_s < duration_s
        assert done.sent == round(whole.sent * done.duration_s / duration_s)
        assert ratio * whole.sent < done.sent - done.received <= whole.sent - whole.received


@pytest.mark.parametrize(("overload", "ratio", "ends_s"), [(1.5, 0.005, 0.1), (1.01, 0.005, 0.6), (1.01, 0.0, 0.1)])
def test_the_more_is_lost_the_earlier_it_ends(overload: float, ratio: float, ends_s: float) -> None:
    """At 1.01 of the capacity 0.99 % is lost: 0.5 % of the whole by 0.505 s, seen at the look after it."""
    done = forward(make_model(Simulation(model=ModelName.SHARP), CAPACITY), overload * CAPACITY, 1.0, Random(1), ratio)
    assert done.aborted
    assert done.duration_s == pytest.approx(ends_s)


def test_a_stall_ends_a_trial_when_it_happens() -> None:
    model = make_model(Simulation(model=ModelName.STALL, stall_hz=2.0), CAPACITY)
    ends = [forward(model, CAPACITY / 2, 1.0, Random(seed), 0.0) for seed in range(300)]
    times = [done.duration_s for done in ends if done.aborted]
    assert {done.sent - done.received for done in ends if done.aborted} <= {20, 40, 60}
    assert len(set(times)) == 9
    assert 0.25 < sum(times) / len(times) < 0.5  # of stalls with 2 per second the first one
