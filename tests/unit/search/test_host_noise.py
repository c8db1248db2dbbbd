"""What interruptions of CPUs cost, against a simulated queue that knows nothing of the estimate; and the verdict."""

from dataclasses import asdict
from random import Random

import pytest

from resources.libraries.python.drivers.generators.losses import count_losses
from resources.libraries.python.drivers.sim.host_gaps import InterruptingHost, noise_floor, queued
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.measurements.trial import Direction, FlowLosses
from resources.libraries.python.model.result import LossesAtLoad, VerdictKind
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.recording.writer import Draft
from resources.libraries.python.search.findings.host_noise import QUEUE_FRAMES, HostNoise
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import SIM, cpu_noise, plan_of
from tests.unit.drivers.generators.counted_arrivals import counted
from tests.unit.search.search_fakes import deployed, planted

QUIET_US = 1.0


PLAN = plan_of(SIM, "CSC", cores=SIM.dut.layout)
DATA = [each for each in PLAN.cores.threads if each.role is ThreadRole.DATA]
NF_CPUS = sorted(each.cpu for each in DATA if each.owner == "nf-1-1")
"""One for each of its two ports."""


@pytest.mark.parametrize("gap_us", [400.0, 1500.0])
@pytest.mark.parametrize("rate_pps", [500e3, 2e6])
def test_losses_are_as_in_a_simulated_queue(gap_us: float, rate_pps: float) -> None:
    host = InterruptingHost(gap_hz=40.0, gap_s=gap_us * 1e-6)
    rows = noise_floor(NF_CPUS, host, 60.0, Random(1))
    expected = HostNoise(PLAN, rows).loss_ratio(2 * rate_pps)  # half of it in each direction
    truth = queued(host.gaps(60.0, Random(2)), rate_pps, 20 * rate_pps, (), 60.0).lost_ratio
    assert (expected == truth == 0) or expected == pytest.approx(truth, rel=0.2)


@pytest.mark.parametrize("utilization", [0.1, 0.5, 0.9])
def test_delays_are_as_in_a_simulated_queue(utilization: float) -> None:
    host = InterruptingHost(gap_hz=40.0, gap_s=500e-6)
    rows = noise_floor(NF_CPUS, host, 60.0, Random(1))
    probes_s = [number * 1e-3 + 1e-4 for number in range(60_000)]
    random = Random(3)
    probes_s = sorted(at_s + random.random() * 1e-3 for at_s in probes_s)
    rate_pps = 50e3  # several interruptions fill less than the queue
    waits = sorted(queued(host.gaps(60.0, random), rate_pps, rate_pps / utilization, probes_s, 60.0).waits_s)
    for quantile in (0.99, 0.999):
        expected_ns = HostNoise(PLAN, rows).delay_ns(1, "forward", quantile, utilization)
        assert expected_ns == pytest.approx(1e9 * waits[int(quantile * len(waits))], rel=0.2)


def test_the_highest_rate_is_that_at_which_the_queue_overflows() -> None:
    here = HostNoise(PLAN, [*(cpu_noise(cpu, 500_000) for cpu in NF_CPUS)])
    limit_pps = here.highest_pps(0.0, 20e6)
    assert limit_pps == pytest.approx(2 * 256 / 500e-6)  # half of the load in each direction
    assert here.loss_ratio(limit_pps * 0.99) == 0 < here.loss_ratio(limit_pps * 1.01)
    assert here.highest_pps(0.005, 20e6) == 20e6, "0.5 ms in a second are less than 0.5 %"
    sentence = here.too_noisy([("NDR", 0.0), ("PDR", 0.005)], 20e6)
    assert sentence is not None and all(word in sentence for word in ("NDR", "1.02 Mpps", "256", "500 µs", "20.0 Mpps"))
    assert here.too_noisy([("NDR", 0.0)], 1e6) is None


def test_cpus_without_data_threads_do_not_matter() -> None:
    other = next(cpu for cpu in range(100) if cpu not in {each.cpu for each in DATA})
    elsewhere = cpu_noise(NF_CPUS[0], 10**7, machine="TG")
    here = HostNoise(PLAN, [cpu_noise(other, 10**7), elsewhere])
    assert here.loss_ratio(20e6) == 0 == here.delay_ns(1, "forward", 0.9999)
    assert here.planned == () and here.too_noisy([("NDR", 0.0)], 20e6) is None


def measured(**simulation: object) -> Draft[DensityRecord]:
    topology = planted(model="sharp", **simulation)
    test = deployed(topology, noise=make_testbed(topology).noise(0.9))
    test.verify_traffic()
    test.too_noisy()
    test.search(("NDR", "PDR"))
    test.latency()
    test.remove()
    return test.draft


@pytest.mark.slow
def test_a_noisy_host_is_named_before_the_search_and_as_the_limit_of_ndr() -> None:
    draft = measured(host_gap_hz=50.0, host_gap_us=800.0)
    assert draft.warnings and draft.warnings[0].startswith("interruptions of data CPUs can limit NDR above ")
    assert VerdictKind.HOST_NOISE in draft.verdict.of("NDR")
    quiet = measured()
    assert quiet.ndr.lower_pps > 1.5 * draft.ndr.lower_pps, "the truth: the host takes it"
    assert not quiet.warnings and VerdictKind.HOST_NOISE not in quiet.verdict.kinds


@pytest.mark.slow
def test_a_latency_tail_is_attributed_to_the_host_or_to_the_system() -> None:
    tails = measured(host_gap_hz=20.0, host_gap_us=500.0).verdict.evidence_of("LATENCY")
    assert any("PDR50: p99.9 of instance 1 " in line and line.endswith("the host causes it") for line in tails)
    short = measured(host_gap_hz=20.0, host_gap_us=QUIET_US * 4).verdict.evidence_of("LATENCY")
    assert any(line.startswith("PDR50: p99.9 ") and line.endswith("an NF or a vSwitch causes it") for line in short)


FLOW_PPS, GAP_NS = 200_000.0, 2_000_000
SENT = int(FLOW_PPS)


def lost_in_gaps() -> set[int]:
    """Numbers of packets that overflow a queue in each of ten interruptions of a second."""
    waiting = int(FLOW_PPS * GAP_NS * 1e-9)
    return {begin + each for begin in range(5_000, SENT, SENT // 10) for each in range(QUEUE_FRAMES, waiting)}


def losses(lost: set[int], label: str = "PDR", **lost_at: int) -> LossesAtLoad:
    arrived = [number for number in range(SENT) if number not in lost]
    found = count_losses(counted(arrived, SENT, kept=SENT), (10**18, 1e9 / FLOW_PPS))
    flow = FlowLosses(instance=1, direction=Direction.FORWARD, **asdict(found))
    return LossesAtLoad(label=label, load_pps=2 * FLOW_PPS, flows=(flow,), lost_at=lost_at)


@pytest.mark.parametrize(
    ("gaps", "lost", "cause"),
    [
        (9, lost_in_gaps(), "host"),
        (3, lost_in_gaps(), "both"),
        (0, lost_in_gaps(), "system under test"),
        (9, set(Random(1).sample(range(SENT), len(lost_in_gaps()))), "system under test"),
    ],
    ids=["of the floor", "more than the floor's", "on a quiet machine", "one by one"],
)
def test_losses_are_attributed_to_the_host_or_to_the_system(gaps: int, lost: set[int], cause: str) -> None:
    rows = [cpu_noise(cpu, 5_000, *[GAP_NS] * gaps, observed_s=0.9) for cpu in NF_CPUS[:1]]
    (found,) = HostNoise(PLAN, rows).losses([losses(lost)], GENERATOR)
    assert found.cause == cause, str(found)
    noise = HostNoise(PLAN, rows)
    assert noise.losses([losses(set()), losses(lost, "OVERLOAD")], GENERATOR) == ()
    assert HostNoise(PLAN, []).losses([losses(lost)], GENERATOR) == (), "nothing is known of its CPUs"


@pytest.mark.parametrize(
    ("lost", "lost_at", "words"),
    [
        (lost_in_gaps(), {"generator": 1300, "nf-1-1": 140}, "the generator's own ports dropped them; lost by"),
        (lost_in_gaps(), {"generator": 140, "nf-1-1": 1300}, "an NF or a vSwitch causes them; lost by"),
        ({7, 9}, {}, "there are too few to say what causes them"),
        (set(range(5, 25, 2)), {}, "an NF or a vSwitch causes them"),
    ],
)
def test_no_nf_is_named_for_losses_of_the_generator_or_for_a_few(
    lost: set[int], lost_at: dict[str, int], words: str
) -> None:
    cpu = NF_CPUS[0]
    (found,) = HostNoise(PLAN, [cpu_noise(cpu, 5_000, observed_s=1.0)]).losses([losses(lost, **lost_at)], GENERATOR)
    assert words in str(found)
