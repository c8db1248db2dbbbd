"""The characterization suites on the simulated testbed, whose truth is known: what they find, and what they write."""

from pathlib import Path

import pytest

from csit_utils.dataset.items import Status
from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import simulation_of
from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.sweep.model import Indicator, ProfileMetric, SweepRecord
from tests.integration.robot_runs import PROJECT, SIM, SUITES, run_robot
from tests.loaded import load

pytestmark = pytest.mark.parallel

TOPOLOGY = PROJECT / "topologies" / "sim.yaml"
OURS = [SUITES / name for name in ("bursts.robot", "chain.robot", "sweep.robot")]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps")
    run_robot(folder, *SIM, sources=OURS)
    return folder


@pytest.fixture(scope="module")
def records(output: Path) -> dict[str, SweepRecord]:
    """By name of the test, from output.xml alone; what the chains have measured is not measured again."""
    dataset = load([output / "output.xml"])
    assert (dataset.problems, dataset.of(DensityRecord)) == ([], [])
    (left_out,) = dataset.unrecorded
    assert (left_out.name, left_out.status) == ("Firewall", Status.SKIP)
    assert "has been measured by" in left_out.message
    return {item.record.test_name: item.record for item in dataset.characterizations}


def truth_gbps(record: SweepRecord) -> float:
    """What the simulated service can forward, one way."""
    assert record.plan is not None and record.sweep is not None
    simulation = simulation_of(load_topology(TOPOLOGY))
    frame = record.sweep.spec.frame
    system = SimulatedSystem(record.plan, simulation, VirtualClock(), TestType.MRR)
    return system.capacity_pps(frame) / 2 * frame.mean_bytes * 8 / 1e9


def test_the_path_alone_makes_the_delay_of_a_chain_that_of_its_parts(records: dict[str, SweepRecord]) -> None:
    """The simulated path takes 16.7 us: two crossings of the vSwitch and both ports of the generator."""
    path = records["Path Alone"]
    assert path.sweep is not None and path.profile is not None
    found = path.profile.break_point
    assert found is not None
    assert (path.sweep.vnfs, found.indicator, found.vnf) == ((), Indicator.LOSS, None), "the vSwitch loses packets"
    assert found.low is not None and found.high is not None
    assert found.low <= truth_gbps(path) <= found.high
    (prediction,) = records["Router And Firewall"].predictions
    assert prediction.path == "path"
    assert prediction.summed_delay_error is not None
    assert prediction.errors[ProfileMetric.DELAY] < 0.08
    assert prediction.summed_delay_error > 0.2
    for point in prediction.points:
        assert point.summed_delay is not None
        assert point.summed_delay - point.predicted[ProfileMetric.DELAY] == pytest.approx(0.0167, rel=0.1)


def test_branches_halve_what_each_firewall_does(records: dict[str, SweepRecord]) -> None:
    alone, split = records["Firewall Alone"].sweep, records["Two Branches Between Two Routers"].sweep
    assert alone is not None and split is not None
    assert [vnf.name for vnf in split.vnfs] == ["nf-0-1", "nf-1-2", "nf-0-3", "nf-2-2"]
    per_pps = alone.points[0].cpu["nf-1-1"][0] / alone.points[0].input_pps
    half = split.points[0].cpu["nf-1-2"][0] / split.points[0].input_pps
    assert half == pytest.approx(per_pps / 2, rel=0.05)


def test_bursts_are_samples_with_idle_seconds_and_no_profile(records: dict[str, SweepRecord]) -> None:
    record = records["Bursts Above Saturation"]
    assert (record.kind, record.profile) == ("bursts", None)
    assert record.sweep is not None
    assert record.sweep.points == ()
    on = [sample.rate_pps > 0 for sample in record.sweep.samples]
    assert on == [True, True, True, False, False] * 2
    assert all((sample.input_pps > 0) == (sample.rate_pps > 0) for sample in record.sweep.samples)
    assert all((sample.loss_ratio or 0) > 0.1 for sample in record.sweep.samples if sample.rate_pps)


def test_profiles_of_an_earlier_run_predict_a_chain(output: Path, tmp_path: Path) -> None:
    options = ("--test", "Router And Firewall", "-v", f"PROFILES:{output}")
    run_robot(tmp_path, *SIM, *options, sources=[SUITES / "chain.robot"])
    (item,) = load([tmp_path / "output.xml"]).characterizations
    assert item.record.predictions[0].parts == ("router", "firewall")


def test_bad_input_is_reported_and_what_does_not_fit_is_skipped(tmp_path: Path) -> None:
    kinds = ("-v", "FIREWALL:testpmd", "--test", "Firewall")
    done = run_robot(tmp_path, *SIM, *kinds, sources=[SUITES / "sweep.robot"])
    assert "1 test, 0 passed, 0 failed, 1 skipped" in done.stdout
    assert "testbed sim has no NFs of kind testpmd for a CSP" in done.stdout
    done = run_robot(tmp_path, *SIM, *kinds, "-v", "NAT:iptables", sources=[SUITES / "sweep.robot"], check=False)
    assert done.returncode == 252, done.stdout + done.stderr
    assert "no NF kind 'iptables'; choose from ipsec, linux_router" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "results").exists()


def test_a_chain_without_profiles_of_its_parts_keeps_what_was_measured(tmp_path: Path) -> None:
    done = run_robot(tmp_path, *SIM, "--test", "Router And Firewall", sources=[SUITES / "chain.robot"], check=False)
    assert done.returncode == 1
    assert "no profile of 'router' with 64B frames on testbed sim (available: none)" in done.stdout
    (item,) = load([tmp_path / "output.xml"]).characterizations
    assert not item.record.passed
    assert item.record.sweep is not None
    assert len(item.record.sweep.points) == 12
    assert item.record.profile is not None


def test_rates_beyond_the_generator_are_flagged_and_the_sweep_goes_on(tmp_path: Path) -> None:
    slow = tmp_path / "slow.yaml"
    slow.write_text(TOPOLOGY.read_text(encoding="utf-8").replace("  seed: 1", "  seed: 1\n  generator_max_pps: 576"))
    rates = ("-v", "SWEEP_RATES:200-1000/400", "--test", "Firewall", "-v", f"TOPOLOGY:{slow}")
    run_robot(tmp_path / "out", *SIM, *rates, sources=[SUITES / "sweep.robot"])
    (item,) = load([tmp_path / "out" / "output.xml"]).characterizations
    assert item.record.sweep is not None
    flags = [point.flagged for point in item.record.sweep.points]
    assert flags[0] is None
    assert flags[2] is not None
    assert flags[2].startswith("the generator offered 288 pps of 1.00 kpps")
    assert any("2 of 3 loads were not offered as intended" in line for line in item.record.warnings)
