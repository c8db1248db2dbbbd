"""A study of outages on simulated systems whose truth is a queue, from specification to record."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin.arrivals import timeline
from resources.libraries.python.drivers.generators.builtin.flow_results import flow_timeline
from resources.libraries.python.drivers.sim.outage import Interruption, served
from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.measurements.disturbance import EventOccurrence
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.outage.analysis import impacts, outage_tables
from resources.libraries.python.studies.outage.model import CONTROL, Effect, Impact, Outage, OutageSpec
from resources.libraries.python.studies.outage.planning import immovable, refusals, starved
from resources.libraries.python.studies.outage.run import OutageTest, was_offered
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, cpus, finished, plan_of, shipped, simulated_by

RATE_PPS = 20_000
SPEC = """
name: small
instances: 3
nf_kinds: [linux_router]
frame: 64B
rate_pps: 20000
repetitions: 3
before_s: 0.4
after_s: 0.6
events:
  - {event: kill, target: nf-2-1}
  - {event: restart, target: nf-2-1}
  - {event: pause, target: nf-2-1, hold_s: 0.1}
  - {event: add, target: nf-2-1}
  - {event: move, target: nf-2-1}
  - {event: restart, target: vswitch}
"""


def topology(**interruptions: object) -> Topology:
    return simulated_by(interruptions=interruptions)


def spec_of(folder: Path, text: str = SPEC) -> OutageSpec:
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    return load_yaml(folder / "spec.yaml", OutageSpec)


def study_of(
    folder: Path, text: str = SPEC, testbed: Topology = SIM, on_progress: Callable[[StepEnded], None] = lambda _: None
) -> OutageTest:
    world = SimulatedTestbed(testbed)
    study = OutageTest(testbed, world, spec_of(folder, text), world.environment(), on_progress)
    study.plan()
    return study


def measured(folder: Path, text: str = SPEC, testbed: Topology = SIM) -> Outage:
    study = study_of(folder, text, testbed)
    study.run()
    study.enough()
    found = study.result()
    noisy = bool((testbed.simulation or {}).get("interruptions", {}).get("noisy_share"))
    for trial in found.trials:
        for impact in trial.impacts:
            check_consistency(impact, found.rate_pps, found.spec.duration_s, found.spec.bin_s)
            assert noisy or impact.outage_s <= impact.gap_s + 0.004, "packets of one interruption fit into it"
    return found


def check_consistency(impact: Impact, rate_pps: float, duration_s: float, bin_s: float) -> None:
    """Lost packets, rate, gap and recovery of one impact fit each other, whatever happened."""
    spacing_s = 1 / rate_pps
    sure_s = bin_s + 2 * spacing_s + 0.002  # packets that were on their way when it happened
    assert impact.outage_s / spacing_s * 0.999 <= impact.lost + 1
    assert impact.lost <= 2 * impact.outage_s / spacing_s * 1.001 + 1, "the direction that lost more is one of two"
    assert spacing_s * 0.99 <= impact.gap_s <= duration_s + sure_s
    if impact.recovery_s is None:
        assert impact.lost and impact.gap_s >= spacing_s
    else:
        assert impact.outage_s <= impact.recovery_s + sure_s, "what was lost was sent before the last gap was over"
    if impact.first_packet_s is not None:
        assert impact.recovery_s is None or impact.first_packet_s <= impact.recovery_s + sure_s


@given(
    rate_pps=st.floats(2_000, 100_000),
    hold_s=st.floats(0.005, 0.1),
    queue=st.integers(0, 512),
    delay_ns=st.integers(5_000, 500_000),
)
def test_a_pause_is_a_gap_of_its_length_whatever_waits_for_its_end(
    rate_pps: float, hold_s: float, queue: int, delay_ns: int
) -> None:
    """A full queue drops the last packets of a pause: those before them arrive at its end, before the next ones."""
    begin_ns, duration_s, spacing_ns = 1_700_000_000 * 10**9, 0.25, 1e9 / rate_pps
    left_ns = begin_ns + np.rint(np.arange(round(rate_pps * duration_s)) * spacing_ns).astype(np.int64)
    event = EventOccurrence(began_ns=begin_ns + 10**8, ended_ns=begin_ns + 10**8 + round(hold_s * 1e9), what="pause")
    arrived_ns = served(left_ns, delay_ns, Interruption(event.began_ns, event.ended_ns, queue))
    came = int((arrived_ns > 0).sum())
    found = timeline(arrived_ns, left_ns, (begin_ns, spacing_ns), 10**6, sent=len(left_ns), frames=came)
    flow: Any = SimpleNamespace(instance=1, direction=Direction.FORWARD)
    (impact,) = impacts([flow_timeline(flow, found, 0.001)], event)
    spacing_s = spacing_ns / 1e9
    assert impact.gap_s == pytest.approx(hold_s, abs=2 * spacing_s + 1e-5)
    assert impact.lost == pytest.approx(max(0, hold_s * rate_pps - queue), abs=2)
    check_consistency(impact, rate_pps, duration_s, 0.001)


def effect(found: Outage, event: str, instance: int) -> Effect:
    return next(each for each in found.effects if (each.event, each.instance) == (event, instance))


def test_the_one_hit_is_out_for_as_long_as_it_was_and_the_others_lose_nothing(tmp_path: Path) -> None:
    truth = {"restart_s": 0.2, "add_s": 0.1, "move_s": 0.05, "queue": 100}
    found = measured(tmp_path, testbed=topology(**truth))
    assert found.coverage == (21, 21)
    kill, restart, pause, add, move = (
        effect(found, f"{name} nf-2-1", 2) for name in ("kill", "restart", "pause", "add", "move")
    )
    assert kill.outage_s.mean == pytest.approx(0.6, abs=0.002)
    assert (kill.recovered, kill.recovery_s, kill.first_packet_s) == (0, None, None)
    assert restart.outage_s.mean == pytest.approx(0.2, rel=0.1), "its jitter is 10 %"
    assert restart.first_packet_s and restart.first_packet_s.mean == pytest.approx(restart.outage_s.mean, abs=0.002)
    assert restart.gap_s.mean == pytest.approx(restart.outage_s.mean, abs=0.002)
    # A hundred packets of each direction wait for the end of the pause: at 20 kpps they take 5 ms to come.
    assert pause.lost.mean == pytest.approx(2 * (0.1 * RATE_PPS - 100), abs=4)
    assert pause.gap_s.mean == pytest.approx(0.1, abs=1e-4)
    assert move.gap_s.mean == pytest.approx(0.05, rel=0.1)
    assert pause.worst_ns and pause.worst_ns == pytest.approx(0.1e9, rel=0.01)
    assert pause.during_ns and pause.before_ns and pause.during_ns.mean > 5 * pause.before_ns.mean
    assert pause.after_ns and pause.after_ns.mean == pytest.approx(pause.before_ns.mean, rel=0.01)
    assert add.gap_s.mean == pytest.approx(add.outage_s.mean, abs=0.002), "not since the begin of the trial"
    assert add.first_packet_s and add.first_packet_s.mean == pytest.approx(0.1, rel=0.1)
    assert move.lost.mean == pytest.approx(2 * (0.05 * RATE_PPS - 100), rel=0.12)
    for event in found.spec.columns:
        for instance in (1, 3):
            lost = effect(found, event, instance).lost.mean
            assert lost > 0 if event == "restart vswitch" else lost == 0, event
    assert all(effect(found, "restart vswitch", instance).is_target for instance in (1, 2, 3))
    assert not any(each.is_significant for each in found.effects if not each.is_target)


def test_a_stall_of_what_all_share_is_found_at_the_others(tmp_path: Path) -> None:
    """What the queue does not hold is lost: 20 kpps for 8 ms are 160 packets, of which 64 wait."""
    found = measured(tmp_path, testbed=topology(queue=64, stall_s={"kill": 0.008}))
    for instance in (1, 3):
        other = effect(found, "kill nf-2-1", instance)
        assert other.lost.mean == pytest.approx(2 * (160 - 64), rel=0.15)
        assert other.is_significant
        assert other.worst_ns and other.worst_ns == pytest.approx(8e6, rel=0.15)
        assert other.recovery_s and other.recovery_s.mean == pytest.approx(0.008, rel=0.15)
        assert effect(found, "move nf-2-1", instance).lost.mean == 0
    assert effect(found, CONTROL, 1).lost.mean == 0


def test_events_come_in_another_order_in_each_repetition_and_all_are_previewed(tmp_path: Path) -> None:
    seen: list[StepEnded] = []
    study = study_of(tmp_path, on_progress=seen.append)
    study.run()
    assert [ended.number for ended in seen] == list(range(1, study.cost.runs + 1))
    trials = study.result().trials
    assert [ended.name for ended in seen] == [trial.event for trial in trials]
    rows = [[trial.event for trial in trials if trial.repetition == repetition] for repetition in range(3)]
    assert rows[0] != rows[1]
    assert [sorted(row) for row in rows] == [sorted(study.spec.columns)] * 3
    assert [bool(trial.traces) for trial in trials] == [True] * 7 + [False] * 14


def test_an_instance_is_hit_as_a_whole_chain(tmp_path: Path) -> None:
    text = SPEC.replace("[linux_router]", "[linux_router, linux_firewall]")
    text = text[: text.index("events:")] + "events: [{event: kill, target: instance-2}, {event: reload, target: nf-2-2}"
    found = measured(tmp_path, text + ", {event: reload, target: instance-2}]\n", topology(reload_s=0.05, queue=0))
    assert list(found.refused) == ["reload instance-2"]
    kill = effect(found, "kill instance-2", 2)
    assert kill.is_target and kill.outage_s.mean == pytest.approx(0.6, abs=0.002)
    assert effect(found, "kill instance-2", 1).lost.mean == 0
    assert effect(found, "reload nf-2-2", 2).outage_s.mean == pytest.approx(0.05, rel=0.12)


@pytest.mark.slow
def test_repetitions_in_which_the_host_loses_packets_without_an_event_are_quarantined(tmp_path: Path) -> None:
    """In a third of the trials the simulated host stalls for 30 ms, 3 % of a trial."""
    truth = topology(restart_s=0.1, queue=0, noisy_share=0.35, noise_s=0.03)
    text = SPEC.replace("repetitions: 3", "repetitions: 8")
    found = measured(tmp_path, text, truth)
    controls = [trial for trial in found.trials if trial.event == CONTROL]
    noisy_controls = {each.repetition for each in controls if any(hit.lost or hit.lost_before for hit in each.impacts)}
    assert 0 < len(noisy_controls) < 7
    left_out = {each.trial: each.reason for each in found.quarantined}
    for trial in found.trials:
        others_before = [impact.lost_before for impact in trial.impacts if impact.instance != 2]
        assert (trial.number in left_out) == (trial.repetition in noisy_controls or any(others_before)), trial.event
    assert any("without an event" in reason for reason in left_out.values())
    assert any("before the event" in reason for reason in left_out.values())
    assert effect(found, CONTROL, 1).lost.mean == 0, "the controls that remain are clean"
    raw = measured(tmp_path, text + "quarantine_loss: 1\n", truth)
    assert not raw.quarantined
    assert effect(raw, CONTROL, 1).lost.mean > 0
    restart, noisy = effect(found, "restart nf-2-1", 2), effect(raw, "restart nf-2-1", 2)
    assert noisy.lost.samples == 8 > restart.lost.samples >= 2
    assert restart.control is not None and restart.control.mean == 0
    assert effect(raw, "restart nf-2-1", 1).control == effect(raw, CONTROL, 1).lost


def test_where_all_repetitions_are_noisy_all_are_used(tmp_path: Path) -> None:
    found = measured(tmp_path, testbed=topology(noisy_share=1.0, noise_s=0.1))
    assert len(found.quarantined) == len(found.trials) == 21
    assert all(each.lost.samples == 3 for each in found.effects)


def test_a_load_is_a_share_of_ndr_and_no_more_than_the_receiver_keeps(tmp_path: Path) -> None:
    text = SPEC.replace("rate_pps: 20000", "share: 0.5\nsearch: 'quick,width=0.2,sum=0.6'")
    study = study_of(tmp_path, text, simulated_by(capacity_scale=0.05))
    study.prepare()
    assert study.load.rate_pps == pytest.approx(0.5 * study.load.ndr_pps / 6)
    fast = study_of(tmp_path, SPEC.replace("20000", "2000000"))
    fast.prepare()
    assert fast.load.rate_pps == 1_000_000


def test_what_a_driver_or_generator_cannot_do_is_refused_once_and_the_others_are_measured(tmp_path: Path) -> None:
    text = SPEC.replace("{event: kill, target: nf-2-1}", "{event: pause, target: vswitch}")
    study = study_of(tmp_path, text)
    assert (study.cost.runs, study.draft.outage) == (18, None), "refused before anything is deployed"
    found = measured(tmp_path, text)
    assert found.refused == {"pause vswitch": "pause is not possible for vswitch: sim supports kill, restart"}
    assert found.coverage == (18, 18)
    assert "pause vswitch" not in {each.event for each in found.effects}
    only = SPEC[: SPEC.index("events:")] + "events: [{event: move, target: vswitch}]\n"
    with pytest.raises(Unsupported, match=r"^move is not possible for vswitch"):
        study_of(tmp_path, only)
    world = SimulatedTestbed(SIM)
    study = OutageTest(shipped("local-trex"), world, spec_of(tmp_path), world.environment())
    with pytest.raises(Unsupported, match="the generator trex numbers no packets"):
        study.plan()


@pytest.mark.parametrize("rules", [0, 100])
def test_rules_are_loaded_anew_where_a_testbed_has_some(tmp_path: Path, rules: int) -> None:
    events = ", ".join(f"{{event: {event}, target: nf-1-1}}" for event in ("reload", "move"))
    text = SPEC[: SPEC.index("events:")].replace("linux_router", "vpp")
    dut = shipped("local-vpp").dut
    dut = dut.model_copy(update={"vpp": dut.settings(Vpp).model_copy(update={"acl_rules": rules})})
    assert list(refusals(spec_of(tmp_path, f"{text}events: [{events}]\n"), dut)) == ([] if rules else ["reload nf-1-1"])


def with_generator(plan: Plan, **thread: Any) -> Plan:
    """The same with the generator's threads elsewhere."""
    rows = [row.model_copy(update=thread if row.owner == "generator" else {}) for row in plan.cores.threads]
    return plan.model_copy(update={"cores": plan.cores.model_copy(update={"threads": tuple(rows)})})


@pytest.mark.parametrize(("kind", "testbed"), [("vpp", "local-vpp"), ("testpmd", "local-ovs")])
@pytest.mark.parametrize(("count", "is_starved"), [(2, True), (16, False)])
def test_a_start_on_a_cpu_that_the_generator_takes_is_refused(
    tmp_path: Path, kind: str, testbed: str, count: int, is_starved: bool
) -> None:
    spec = spec_of(tmp_path, SPEC.replace("linux_router", kind))
    plan = plan_of(testbed, "CSC", 3, 1, cpus(count), nf_kinds=spec.nf_kinds)
    found = starved(spec, "ovs", plan)
    assert set(found) == ({"restart nf-2-1", "add nf-2-1"} if is_starved else set())
    assert all("CPU 0 of the main thread of nf-2-1" in sentence for sentence in found.values())
    assert not starved(spec, "ovs", plan_of("local-ovs", "CSC", 3, 1, cpus(2), nf_kinds=(NfKind("linux_router"),)))
    assert not starved(spec, "ovs", with_generator(plan, machine="TG")), "CPU 0 of another machine"


def test_a_move_needs_another_cpu_of_the_same_machine(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    plan = plan_of("local", "CSC", 3, 1, cpus(1), nf_kinds=spec.nf_kinds)
    assert list(immovable(spec, plan)) == ["move nf-2-1"]
    assert not immovable(spec, plan_of("local", "CSC", 3, 1, cpus(2), nf_kinds=spec.nf_kinds))
    assert immovable(spec, with_generator(plan, machine="TG", cpu=5)), "CPU 5 of another machine"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("nf-2-1}", "nf-4-1}"), "nf-4-1 is not among 3 instances"),
        (("nf-2-1}", "instance-4}"), "instance-4 is not among 3 instances"),
        (("nf-2-1}", "nf-2-2}"), "nf-2-2 is not among 3 instances of 1 network functions"),
        (("event: restart, target: nf", "event: kill, target: nf"), "kill nf-2-1 more than once"),
        (("hold_s: 0.1", "hold_s: 0.6"), "pause nf-2-1 takes 0.6 s"),
        (("target: vswitch", "target: generator"), "events.5.target"),
        (("instances: 3", "instances: 1"), "instances"),
        (("[linux_router]", "[process]"), "needs a program"),
        (("rate_pps: 20000", "search: soak"), "search 'soak' finds no NDR"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(change: tuple[str, str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=reason):
        study_of(tmp_path, SPEC.replace(*change))


def test_tables_have_a_line_for_each_event_and_instance(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    study.run()
    record = study.draft.finish(test_id="a.b", test_name="b", tags=(), passed=True, message="")
    tables = dict(outage_tables(record))
    assert {name: len(rows) for name, rows in tables.items()} == {"outage_effects": 22, "outage_trials": 64}
    assert all(len(row) == len(rows[0]) for rows in tables.values() for row in rows)


@pytest.mark.parametrize(
    ("sent", "offered_s", "limited", "offered"),
    [(1596, 4.0064, True, True), (1570, 4.0, True, False), (1600, 4.05, True, False), (1570, 4.0, False, True)],
)
def test_a_load_that_is_off_by_less_than_a_hundredth_was_offered(
    sent: int, offered_s: float, limited: bool, offered: bool
) -> None:
    trial = Trial(load_pps=400, duration_s=4.0, frame=frame("64B"), purpose="outage")
    assert (
        was_offered(finished(trial, (sent, sent), offered_duration_s=offered_s, generator_limited=limited)) is offered
    )
