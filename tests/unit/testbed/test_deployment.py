"""A deployment that fails says what it fails of, and stops what was started."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.errors import ConnectionFailed, CsitError, NotReady, RunStopped, SystemBroken
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import Affinity, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.deployment import cell as cell_module
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Deployment, VSwitchFlush
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM as TOPOLOGY
from tests.builders import Altered, cell_of, finished, raising, shipped
from tests.unit.planning.labs import lab

ONE = cell_of("CSC")


def failing(*problems: str, **functions: Any) -> tuple[Plan, Parts, list[str]]:
    """Parts of which the vSwitch has problems and NFs wait in vain for their links; the list gets its stop."""
    plan, parts = simulated()
    stopped: list[str] = []
    switch: Any = Altered(parts.switch, problems=lambda: problems, stop=lambda: stopped.append("switch"))
    waits = {"start": raising(NotReady("links of nf-1-1", 20.0, "none"))}
    waiting: Any = Altered(parts.functions, **{**waits, **functions})
    return plan, replace(parts, switch=switch, functions=waiting), stopped


def asked_for(cell: Cell) -> MeasurementRequest:
    return MeasurementRequest(test_type=TestType.MRR, cell=cell, frame=frame("64B"), profile=profile("quick"))


def simulated(cell: Cell = ONE) -> tuple[Plan, Parts]:
    world = SimulatedTestbed(TOPOLOGY)
    plan = make_plan(TOPOLOGY, cell, world.layout)
    return plan, world.parts(plan, asked_for(cell))


def test_a_wait_for_a_part_that_died_reports_its_death_and_another_is_a_timeout() -> None:
    said = "links of nf-1-1 not ready after 20"
    plan, parts, stopped = failing("the vSwitch was killed by SIGABRT")
    with pytest.raises(SystemBroken, match=rf"^the vSwitch was killed by SIGABRT; {said}"):
        Deployment(plan, parts).__enter__()
    plan, parts, also_stopped = failing()
    with pytest.raises(NotReady, match=rf"^{said}"):
        Deployment(plan, parts).__enter__()
    assert stopped and also_stopped


def negotiating(topology: Topology, looks: float) -> tuple[Deployment, list[str]]:
    """A cell of simulated parts, whose cable with two VLANs gets its link after so many looks, and what was done."""
    cell, notes = cell_of("CSC", 2), list[str]()
    _, parts = simulated(cell)

    def without_link() -> tuple[str, ...]:
        notes.append("asked")
        return ("csv1p2", "csv2p2", "csv1p3", "csv2p3") if notes.count("asked") <= looks else ()

    def problems() -> tuple[str, ...]:
        return tuple(f"{name} has no carrier" for name in without_link())

    stop = partial(notes.append, "stopped")
    switch: Any = Altered(parts.switch, without_link=without_link, problems=problems, stop=stop)
    return Deployment(make_plan(topology, cell, topology.dut.layout), replace(parts, switch=switch)), notes


def test_cables_between_two_duts_are_waited_for_and_one_without_link_or_the_crash_that_is_its_cause_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell_module, "_LINKS_PAUSE_S", 0.0)
    deployed, notes = negotiating(lab(2, discriminator="vlan"), looks=3)
    with deployed:
        assert notes == ["asked"] * 4
    assert notes[-1] == "stopped"
    deployed, notes = negotiating(TOPOLOGY, looks=float("inf"))
    with deployed:
        assert notes == []
    monkeypatch.setattr(cell_module, "CABLES_WITHIN_S", 0.01)
    deployed, notes = negotiating(lab(2, discriminator="vlan"), looks=float("inf"))
    with pytest.raises(NotReady) as found:
        deployed.__enter__()
    assert found.value.what == "links of cables"
    assert found.value.last_seen == "no link at DUT1.port2 (csv1p2), DUT2.port1 (csv1p3)"
    assert notes[-1] == "stopped"
    deployed, notes = negotiating(lab(2, discriminator="vlan"), looks=float("inf"))
    crashed: Any = Altered(deployed.parts.generator, problems=lambda: ("TRex was killed by SIGSEGV",))
    deployed.parts = replace(deployed.parts, generator=crashed)
    with pytest.raises(SystemBroken, match=r"^TRex was killed by SIGSEGV; links of cables not ready after 0"):
        deployed.__enter__()
    assert notes[-1] == "stopped"


def under_test() -> CellUnderTest:
    """The smallest simulated cell, deployed."""
    cell = CellUnderTest(TOPOLOGY, SimulatedTestbed(TOPOLOGY), asked_for(ONE))
    cell.deploy(cell.plan())
    return cell


@pytest.mark.parametrize("signal", [True, False])
def test_a_signal_in_a_removal_ends_the_run_and_another_failure_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, signal: bool
) -> None:
    class Failure(Exception):
        """As Robot's, of a signal that it has been sent."""

        exit = signal

    cell = under_test()
    monkeypatch.setattr(Deployment, "__exit__", raising(Failure("Execution terminated by signal")))
    if signal:
        with pytest.raises(RunStopped, match=r"^Execution terminated by signal$"):
            cell.remove()
    else:
        assert cell.remove() == "the cell could not be removed: Execution terminated by signal"
    assert not cell.is_deployed


def test_the_first_cause_is_reported_before_all_failed_stops_and_one_that_ends_the_run_ends_it() -> None:
    lost = ConnectionFailed("DUT1: the agent ended with 137")
    in_removal = CsitError("TG: port cab1 cannot be given back")
    plan, parts, _ = failing(start=raising(lost), stop=raising(in_removal))
    with pytest.raises(SystemBroken, match=f"^{lost}; {in_removal}$") as told:
        Deployment(plan, parts).__enter__()
    assert told.value.__cause__ is lost
    ends = RunStopped("DUT1 does not come back")
    plan, parts, _ = failing(start=raising(ConnectionFailed("DUT1: gone")), stop=raising(ends))
    with pytest.raises(RunStopped, match=f"^{ends}$"):
        Deployment(plan, parts).__enter__()
    plan, parts = simulated()
    functions: Any = Altered(parts.functions, stop=raising(OSError(16, "Device or resource busy")))
    deployment = Deployment(
        plan, replace(parts, functions=functions, switch=Altered(parts.switch, stop=raising(in_removal)))
    )
    with pytest.raises(CsitError, match=r"Device or resource busy; TG: port cab1 cannot be given back$"), deployment:
        pass


def test_a_part_is_prepared_before_the_others_start_and_ended_if_these_cannot() -> None:
    plan, parts, _ = failing()
    done: list[str] = []
    steps = {name: partial(done.append, f"{name} generator") for name in ("prepare", "start", "stop")}
    cables: Any = SimpleNamespace(start=lambda: done.append("start cables"), stop=lambda: done.append("stop cables"))
    generator: Any = Altered(parts.generator, **steps)
    with pytest.raises(NotReady, match="links of nf-1-1"):
        Deployment(plan, replace(parts, cables=(cables,), generator=generator)).__enter__()
    assert done == ["prepare generator", "start cables", "stop cables", "stop generator"]


@pytest.mark.parametrize(
    ("looks", "of_generator", "found"),
    [
        (((), ("killed by SIGKILL",)), ("no carrier",), ("killed by SIGKILL", "no carrier")),
        ((("csv1p1 has no carrier",), ()), (), ("csv1p1 has no carrier",)),
    ],
    ids=["a part that ends meanwhile comes before what others have lost", "one look is enough"],
)
def test_problems_are_looked_for_twice(
    looks: tuple[tuple[str, ...], ...], of_generator: tuple[str, ...], found: tuple[str, ...]
) -> None:
    plan, parts = simulated()
    switch, functions = SimpleNamespace(problems=iter(looks).__next__), SimpleNamespace(problems=tuple)
    generator = SimpleNamespace(problems=lambda: of_generator)
    assert Deployment(plan, replace(parts, switch=switch, functions=functions, generator=generator)).problems() == found


@pytest.mark.parametrize("cpus", [(), None], ids=["its threads are gone", "it cannot be asked"])
def test_a_part_that_has_ended_is_named_and_not_the_threads_that_it_had(cpus: tuple[int, ...] | None) -> None:
    placed = Affinity(owner="DUT1", interface="csv1p1", planned_cpu=1, actual_cpus=(1,))

    def affinity() -> tuple[Affinity, ...]:
        if cpus is None:
            raise CsitError("VPP closed the connection")
        return (placed.model_copy(update={"actual_cpus": cpus}),)

    tested = under_test()
    tested.placed = (placed,)
    tested.deployment.affinity = affinity
    (found,) = tested.moved()
    tested.deployment.problems = lambda: ("VPP was killed by SIGKILL",)
    assert tested.moved() == ("VPP was killed by SIGKILL",)
    assert found == (
        "data threads cannot be looked at: VPP closed the connection"
        if cpus is None
        else "the data thread of DUT1 csv1p1 has moved from CPUs 1 to none"
    )


@pytest.mark.parametrize(("lossy", "trials"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_packets_that_are_lost_in_each_of_three_trials_at_a_low_rate_are_a_complaint(lossy: int, trials: int) -> None:
    cell, done = under_test(), list[Trial]()
    parts = cell.deployment.parts

    def run(trial: Trial) -> TrialResult:
        done.append(trial)
        result = parts.generator.run(trial)
        lost = tuple(flow.model_copy(update={"received": flow.sent // 2}) for flow in result.flows)
        return result.model_copy(update={"flows": lost}) if len(done) <= lossy else result

    cell.deployment.parts = replace(parts, generator=Altered(parts.generator, run=run))
    found = cell.connectivity(cell.measure)
    assert (len(done), found is None) == (trials, lossy < 3)
    if found is not None:
        assert found.text.startswith("packets are lost at a low rate: ")
        assert "packets are lost, last seen at" in found.complaints[0]
        done.clear()
        dead = Altered(parts.functions, problems=lambda: ("nf-1-1 was killed by SIGKILL",))
        cell.deployment.parts = replace(cell.deployment.parts, functions=dead)
        with pytest.raises(SystemBroken, match="nf-1-1 was killed by SIGKILL"):  # the cause, not its loss
            cell.connectivity(cell.measure)


OVS, BRIDGE = shipped("local-ovs"), shipped("local")
CAPACITY_PPS, RING, KICKED = 100e3, 2048, 4


class Keeping:
    """Forwards up to a capacity; what comes above it stays in a ring, and each packet brings some of it out."""

    def __init__(self, ring: int) -> None:
        self.ring, self.trials = ring, list[Trial]()

    def run(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        sent = round(trial.load_pps * trial.duration_s)
        out = min(self.ring, KICKED * sent)
        self.ring -= out
        forwarded = min(sent, round(CAPACITY_PPS * trial.duration_s))
        self.ring = min(RING, self.ring + sent - forwarded)
        return finished(trial, (sent, forwarded + out))


def rates(topology: Topology, *loads_pps: float, calibrated: bool = False) -> tuple[list[int], list[str]]:
    """Packets that came back of each trial of 0.1 s, and what all trials were for."""
    system, clearing, found = Keeping(RING * calibrated), VSwitchFlush(topology), []
    if calibrated:
        clearing.overloaded()
    for load_pps in loads_pps:
        trial = Trial(load_pps=load_pps, duration_s=0.1, frame=frame("64B"))
        clearing.before(system.run, trial, 1)
        result = system.run(trial)
        clearing.after(result)
        found.append(result.received)
    return found, [trial.purpose for trial in system.trials]


def test_after_a_loss_a_few_packets_bring_out_what_was_kept_and_others_are_left_alone() -> None:
    assert rates(OVS, 200e3, 50e3, 60e3) == (
        [10_000, 5_000, 6_000],
        ["search", "clearing", "clearing", "clearing", "clearing", "search", "search"],
    )
    assert rates(OVS, 50e3, calibrated=True)[0] == [5_000]
    tg = OVS.tg.model_copy(update={"generator": OVS.tg.generator.model_copy(update={"driver": "iperf3"})})
    for other in (BRIDGE, OVS.model_copy(update={"nodes": {**OVS.nodes, "TG": tg}})):
        assert rates(other, 200e3, 50e3, calibrated=True)[1] == ["search", "search"]
