"""Simulated passive NFs, limits, paths without NFs, and services of different kinds beside each other."""

import pytest

from resources.libraries.python.drivers.sim.probes import SimSampler
from resources.libraries.python.drivers.sim.truth import capacity_pps, one_pps
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.request.cell import Cell, ServiceType, Tap, TestType
from resources.libraries.python.model.request.function import Limits, UserProgram
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.load_trials import connectivity_trial, diagnose
from resources.libraries.python.studies.sweep.analysis.seconds import work
from tests.builders import cell_of
from tests.unit.drivers.sim.sim_bed import SMALL, TOPOLOGY, Bed

ROUTER, NGREP, TCPDUMP = NfKind("linux_router"), NfKind("ngrep"), NfKind("tcpdump")


def chain(*kinds: NfKind, taps: tuple[Tap, ...] = (), limits: tuple[Limits, ...] = ()) -> Cell:
    return cell_of("CSC", 1, len(kinds), nf_kinds=kinds, taps=taps, limits=limits)


def beside(*kinds: NfKind) -> Cell:
    return Cell(service_type=ServiceType.CSC, nf_chains=len(kinds), nf_nodes=1, instance_kinds=kinds)


def bed(asked: Cell, **parameters: object) -> Bed:
    return Bed(make_plan(TOPOLOGY, asked, TOPOLOGY.dut.layout), TestType.NDRPDR, model="sharp", **parameters)


def test_a_tap_gets_both_ways_of_its_segment() -> None:
    running = bed(chain(ROUTER, taps=(Tap(position=1, kind=TCPDUMP), Tap(position=2, kind=TCPDUMP))))
    done = running.run(1000.0)
    assert done.loss_ratio == 0
    counts = running.counters()
    for number in (1, 2):
        assert counts[f"csn1t{number}"] == InterfaceCounters(1000, 0, 0, 0)
        assert counts[f"csv1t{number}"] == InterfaceCounters(0, 1000, 0, 0)


def test_a_slow_tap_loses_alone() -> None:
    running = bed(chain(ROUTER, taps=(Tap(position=2, kind=NGREP),)))
    most = one_pps(NGREP, 1.0)
    done = running.run(2 * most)
    assert done.loss_ratio == 0
    here = running.counters()
    assert here["csn1t1"].rx_packets == pytest.approx(most, rel=1e-6)
    assert here["csv1t1"].tx_dropped == pytest.approx(most, rel=1e-6)
    assert here["csv1x1i2"].tx_dropped == here["csv1p2"].tx_dropped == 0


def test_what_an_nf_loses_its_taps_behind_do_not_see() -> None:
    running = bed(chain(NfKind("linux_firewall"), taps=(Tap(position=1, kind=TCPDUMP), Tap(position=2, kind=TCPDUMP))))
    load = 1.25 * running.system.capacity_pps(SMALL)
    done = running.run(load)
    assert done.loss_ratio == pytest.approx(0.2, abs=1e-5)
    counts = {number: running.counters()[f"csv1t{number}"] for number in (1, 2)}
    got = {number: row.tx_packets + row.tx_dropped for number, row in counts.items()}
    # Each way half of the load: before the NF all of it, behind it what is left.
    assert got[1] == pytest.approx(got[2], rel=1e-3)
    assert got[1] == pytest.approx(load / 2 + 0.8 * load / 2, rel=1e-3)


def test_copies_cost_the_vswitch_alone() -> None:
    plain, watched = chain(NfKind("sim")), chain(NfKind("sim"), taps=(Tap(position=1, kind=NfKind("sim")),) * 4)
    assert capacity_pps(watched, SMALL) < capacity_pps(plain, SMALL)
    router = chain(ROUTER, taps=(Tap(position=1, kind=NGREP),))
    assert bed(router).system.capacity_pps(SMALL) == capacity_pps(chain(ROUTER), SMALL)


def test_a_tap_is_as_busy_as_its_own_capacity_says_and_not_the_port_towards_it() -> None:
    running = bed(chain(ROUTER, taps=(Tap(position=1, kind=NGREP),)))
    sampler = SimSampler(running.system)
    before = sampler.read()
    running.run(0.5 * one_pps(NGREP, 1.0))
    after = sampler.read()
    assert after.threads["csn1t1"].running_ns - before.threads["csn1t1"].running_ns == pytest.approx(0.5e9)
    assert after.threads["csv1t1"].running_ns == 0


def test_a_limited_nf_does_less_and_uses_no_more_than_its_limit() -> None:
    """The planted fault: the truth that an analysis has to find."""
    free, limited = chain(ROUTER, ROUTER), chain(ROUTER, ROUTER, limits=(Limits(), Limits(cpu=0.5)))
    running = bed(limited)
    capacity = running.system.capacity_pps(SMALL)
    assert capacity == pytest.approx(capacity_pps(free, SMALL) / 4)  # 0.5 of the two CPUs of a core
    assert running.system.limit_owners(SMALL) == {"nf-1-2"}
    running.run(3 * capacity)
    assert running.system.used_s()["nf-1-2"] == pytest.approx(0.5)
    assert running.system.used_s()["nf-1-1"] > 0.5


def test_each_of_them_is_as_busy_as_its_own_capacity_says() -> None:
    running = bed(beside(ROUTER, NGREP, NGREP), pressure={ROUTER: 0, NGREP: 0})
    sampler = SimSampler(running.system)
    before = sampler.read()
    load = 3 * 0.5 * one_pps(NGREP, 1.0)
    running.run(load)
    cpu = work(running.plan, before, sampler.read(), 1.0).cpu
    assert cpu["nf-2-1"] == cpu["nf-3-1"] == pytest.approx([0.5, 0.5])
    assert cpu["nf-1-1"] == pytest.approx([load / 3 / one_pps(ROUTER, 1.0)] * 2)


@pytest.mark.parametrize("kind", [kind for kind in TOPOLOGY.dut.offered if kind != "sim"])
def test_every_kind_lets_packets_through_at_a_capacity_of_its_own(kind: NfKind) -> None:
    programs = (UserProgram(start=("cat",)),) if kind == "process" else ()
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1, nf_kinds=(kind,), programs=programs)
    running = bed(cell)
    assert running.system.capacity_pps(SMALL) == one_pps(kind, 1.0) < one_pps(NfKind("sim"), 1.0)
    before = running.counters()
    result = running.generator.run(connectivity_trial(running.plan, SMALL))
    assert diagnose(running.plan, result, before, running.counters()) == ()
