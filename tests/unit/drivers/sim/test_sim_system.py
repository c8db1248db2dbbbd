"""The three simulated drivers on one system: counts agree, faults are found, runs repeat."""

import re
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.drivers import SimulatedLoop
from resources.libraries.python.drivers.sim.models import POLL_S, forward, make_model
from resources.libraries.python.drivers.sim.power import DataCpus, Power, SimulatedPower
from resources.libraries.python.drivers.sim.probes import SimMeters
from resources.libraries.python.drivers.sim.simulation import ModelName, Simulation, parse_simulation, simulation_of
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame, with_flows
from resources.libraries.python.search.energy import certain_window, node_powers
from resources.libraries.python.search.load_trials import measure_receive_rate
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import search_throughput
from tests.builders import SIM, plan_of
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed
from tests.unit.examples import share
from tests.unit.search.search_fakes import generator_bound


def planned(service_type: str = "CSC", rows: int = 2, columns: int = 2) -> Plan:
    return plan_of(TOPOLOGY, service_type, rows, columns, TOPOLOGY.dut.layout)


def test_a_flow_cache_makes_a_vswitch_slower_by_the_share_that_misses() -> None:
    plan = planned("CSP", rows=1, columns=1)
    bed = Bed(plan, flow_cache={"entries": 8192, "miss_cost": 3.0})
    full_pps = Bed(plan).system.capacity_pps(SMALL)
    for flows, share_left in ((1, 1.0), (4096, 1.0), (8192, 1 / (0.5 + 3 * 0.5)), (1_000_000, 1 / 3)):  # each way
        left_pps = bed.system.capacity_pps(with_flows(SMALL, flows))
        assert left_pps / full_pps == pytest.approx(share_left, rel=0.01 if flows == 1_000_000 else 1e-9)
    assert bed.system.capacity_pps(SMALL) == full_pps  # 254 addresses
    size = with_flows(SMALL, 8192)
    outcome = search_throughput(bed.generator.run, LADDER, size, bed.system.maximum_pps(SMALL), bed.clock.now)
    assert outcome.pdr.throughput_pps == pytest.approx(full_pps / 2, rel=0.03)


@pytest.mark.parametrize("name", ModelName)
@pytest.mark.parametrize("service_type", ["CSC", "CSP"])
def test_ndr_is_below_pdr_is_below_mrr(name: ModelName, service_type: str) -> None:
    bed = Bed(planned(service_type), model=name)
    outcome = bed.search()
    mrr, _ = measure_receive_rate(bed.generator.run, LADDER, SMALL, bed.system.maximum_pps(SMALL))
    ndr_pps, pdr_pps = outcome.ndr.throughput_pps, outcome.pdr.throughput_pps
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
    st.sampled_from([("CSC", 1, 1), ("CSC", 3, 2), ("CSP", 2, 4), ("VSC", 2, 1), ("CSC", 10, 1)]),
    st.sampled_from(ModelName),
    st.floats(0.0, 4e7),
    st.floats(0.0, 0.99),
    st.integers(0, 1000),
)
def test_counts_agree_everywhere(
    cell: tuple[str, int, int], name: ModelName, load_pps: float, unfairness: float, seed: int
) -> None:
    bed = Bed(planned(*cell), model=name, unfairness=unfairness, seed=seed)
    results = [bed.run(load_pps), bed.run(load_pps / 2, probe_pps=100.0)]
    counters = bed.counters()
    for path in bed.plan.paths:
        rows: list[Any] = [*results[0].flows, *results[1].flows, *results[0].latency, *results[1].latency]
        mine = [row for row in rows if (row.instance, row.direction) == (path.instance, path.direction)]
        sent, received = sum(row.sent for row in mine), sum(row.received for row in mine)
        assert all(0 <= row.received <= row.sent for row in mine)
        inner = path.hops[1:-1]
        for hop in inner:
            count = counters[hop.interface]
            assert (count.rx_packets if hop.counter == "rx" else count.tx_packets) == received
        assert counters[inner[0].interface].rx_dropped == sent - received
    for result in results:
        assert max(f.sent for f in result.flows) - min(f.sent for f in result.flows) <= 1


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
    for complaint, where in zip(Bed(planned(service_type), drop_at=drop_at).complaints(), expected, strict=True):
        direction, places = where.split(": ")
        last, _, following = places.partition(" > ")
        begin = f"{service_type} instance 2 {direction}: 200 sent, last seen at {last} (200)"
        assert complaint.startswith(begin) and f"not at {following}" in complaint


def test_beyond_its_reach_the_generator_says_so() -> None:
    bed = Bed(planned("CSC", 1, 1), generator_max_pps=2e6)
    assert not bed.run(2e6).generator_limited
    result = bed.run(5e6)
    assert result.generator_limited and result.sent == 2_000_000
    assert "2.00 Mpps of 5.00 Mpps" in result.note
    outcome = bed.search()
    assert generator_bound(outcome)
    assert outcome.max_load_pps == pytest.approx(2e6, rel=0.011)
    assert all(found.upper_pps is None for found in outcome.goals)
    joined = SimulatedLoop(bed.plan, bed.system.simulation, bed.clock)
    joined.start()
    trials = [joined.run(Trial(load_pps=load_pps, duration_s=1.0, frame=SMALL)) for load_pps in (2e6, 5e6)]
    assert [(made.generator_limited, made.sent) for made in trials] == [(False, 2_000_000), (True, 2_000_000)]


def test_runs_repeat_and_seed_cell_frame_and_test_type_have_random_numbers_of_their_own() -> None:
    plan = planned("CSC", 2, 1)
    beds = [Bed(plan), Bed(plan, seed=2), Bed(plan, TestType.MRR), Bed(planned("CSC", 1, 2)), Bed(plan)]
    trials = [Trial(load_pps=3e7, duration_s=1.0, frame=frame(name)) for name in ("64B",) * 4 + ("128B",)]
    counts = [bed.generator.run(trial).received for bed, trial in zip(beds, trials, strict=True)]
    assert len(set(counts)) == len(counts)
    first = Bed(plan).search()
    Bed(planned("CSC", 4, 2)).search()
    assert Bed(plan).search() == first, "whatever ran before"


CAPACITY = 1e6


@given(
    st.sampled_from(ModelName),
    st.floats(1e4, 5e6),
    st.sampled_from([0.3, 1.0, 10.0]),
    st.sampled_from([0.0, 0.001, 0.005, 0.2]),
    st.integers(0, 1000),
)
def test_an_abort_is_the_beginning_of_the_whole_trial(
    name: ModelName, load_pps: float, duration_s: float, ratio: float, seed: int
) -> None:
    model = make_model(Simulation(model=name), CAPACITY)
    whole = forward(model, load_pps, duration_s, Random(seed))
    done = forward(model, load_pps, duration_s, Random(seed), ratio)
    assert (whole.duration_s, whole.aborted, whole.sent) == (duration_s, False, round(load_pps * duration_s))
    assert 0 <= whole.received <= whole.sent
    if whole.sent - whole.received <= ratio * whole.sent or not done.aborted:
        assert done == whole  # certain only after the last look
    else:
        polls = done.duration_s / POLL_S
        assert polls == pytest.approx(round(polls))
        assert done.duration_s < duration_s
        assert done.sent == pytest.approx(whole.sent * done.duration_s / duration_s, rel=0, abs=0.5001)
        assert ratio * whole.sent < done.sent - done.received <= whole.sent - whole.received


def test_ports_give_the_line_rate_unless_parameters_do() -> None:
    assert simulation_of(SIM).model is ModelName.NOISY
    assert simulation_of(SIM).line_rate_pps == pytest.approx(14_880_952, abs=1), "10 Gb/s"
    ports = {name: port.model_copy(update={"rate_bps": 25e9}) for name, port in SIM.tg.interfaces.items()}
    nodes = {**SIM.nodes, "TG": SIM.tg.model_copy(update={"interfaces": ports})}
    topology = SIM.model_copy(update={"nodes": nodes})
    assert simulation_of(topology).line_rate_pps == pytest.approx(37.2e6, rel=0.001)
    said = topology.model_copy(update={"simulation": {"line_rate_pps": 1e6}})
    assert simulation_of(said).line_rate_pps == 1e6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nois": 0.1}, r"^simulation\.nois: unknown key; did you mean 'noise'\?$"),
        ({"noise": 1.5, "knee": 2}, r"^simulation\.noise: 1.5 is not below 1 \(and 1 more\)$"),
        ({"limited_by": "nf-2"}, r"^simulation\.limited_by: 'nf-2' is no vSwitch and no NF"),
        ({"drop_at": ["csn1x1i2", "nf2-1"]}, r"^simulation\.drop_at\.1: 'nf2-1' is no vSwitch and no NF"),
    ],
)
def test_a_wrong_parameter_is_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_simulation(parameters)


@pytest.mark.parametrize("number", [inf, 1e308, 10**24, "1e308"])
@pytest.mark.parametrize(
    "name",
    [
        "capacity_scale", "line_rate_pps", "overhead_s", "stall_packets", "sag",
        "interruptions.restart_s", "generator.loss_free_pps", "scales_to.linux_nat",
    ],
)  # fmt: skip
def test_no_parameter_is_endless(name: str, number: object) -> None:
    outer, _, inner = name.partition(".")
    with pytest.raises(ConfigError, match=f"^{re.escape(f'simulation.{name}')}: [^\n]*$"):
        parse_simulation({outer: {inner: number} if inner else number})
    assert parse_simulation({"seed": 10**24}).seed == 10**24


PACKET_S = 1e-7
POLLING = Power(platform_w=80.0)
SLEEPING = Power(platform_w=80.0, sleep_us=100.0)


def metered(power: Power, utilization: float, seconds: float = 10.0) -> tuple[float, float]:
    """Watts and their uncertainty, as a meter finds them on a machine with 2 data CPUs."""
    machine = SimulatedPower(power, VirtualClock(), "seed")
    machine.spend(0.0, seconds, {"vswitch": DataCpus(2, utilization, PACKET_S)})
    (node,) = node_powers(machine.read("DUT1", 0.0, seconds).series)
    return node.watts, node.error_w


@pytest.mark.parametrize("utilization", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_polling_cpu_takes_nearly_the_same_power_at_any_load(utilization: float) -> None:
    watts, error_w = metered(POLLING, utilization)
    truth = 80.0 + 2 * (utilization * POLLING.busy_w + (1 - utilization) * POLLING.polling_w)
    assert watts == pytest.approx(truth, abs=error_w + 0.02 * (POLLING.busy_w - POLLING.polling_w) * 2)


def test_a_sleeping_cpu_takes_less_and_pays_for_each_waking_up() -> None:
    watts, error_w = metered(SLEEPING, 0.0)
    truth = 80.0 + 2 * (SLEEPING.sleeping_w + SLEEPING.wake_uj / SLEEPING.sleep_us)
    assert watts == pytest.approx(truth, abs=error_w + 1e-3)
    assert metered(SLEEPING, 0.9)[0] < metered(POLLING, 0.9)[0]
    free = SLEEPING.model_copy(update={"wake_uj": 0.0})
    assert metered(free, 0.5)[0] < metered(SLEEPING, 0.5)[0]


def test_a_machine_without_platform_power_has_no_meter() -> None:
    found = SimulatedPower(Power(), VirtualClock(), "seed").read("DUT1", 0.0, 1.0)
    assert not found.series and "no energy meter" in found.unmetered["DUT1"]


def test_a_trial_is_measured_while_it_sends_and_not_afterwards() -> None:
    bed = Bed(plan_of("sim", "CSC", cores=TOPOLOGY.dut.layout), power={"platform_w": 80.0}, overhead_s=2.0)
    meters = SimMeters("DUT1", bed.system.simulation.power, lambda: bed.system)
    meters.begin(10.5)
    began_s = meters.now()
    result = bed.run(1e6, 10.0)
    window = certain_window(began_s, meters.now(), result.offered_duration_s)
    found = meters.end()
    (sending,), (whole,) = node_powers(found.series, window), node_powers(found.series)
    assert 80.0 + 4 * POLLING.polling_w < whole.watts < sending.watts
    assert sending.measured_s == pytest.approx(8.0, abs=0.3)
