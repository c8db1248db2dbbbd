"""Verdicts of real packets: losses are made at a known place, and the verdict has to find it."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.openvpn.driver import missing as openvpn_missing
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.measurements.trial import HighestLoads, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.request.kinds import NfKind, UserProgram
from resources.libraries.python.model.result import MeasurementRequest, VerdictKind
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.findings.host_noise import QUEUE_FRAMES
from resources.libraries.python.search.findings.locate import by_owner
from resources.libraries.python.search.losses import LossPattern, losses_in_words, pattern_of
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.search.throughput import Progress
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.kinds.factory import make_testbed
from resources.libraries.python.testbed.node.checks.processors import observe
from tests.builders import cell_of, shipped
from tests.integration.cpu_pulses import CPU, pulses
from tests.integration.local_functions import named
from tests.integration.numbered_captures import dumped, seen_at
from tests.integration.traffic import when_free
from tests.integration.user_space import processes, victim

pytestmark = [pytest.mark.root, pytest.mark.skipif(shutil.which("nft") is None, reason="needs nftables")]
NO_OPENVPN = "; ".join(map(str, openvpn_missing()))
TOPOLOGY = shipped("local")
BRIEF = profile("quick")
BRIEF = BRIEF.model_copy(
    update={
        "goals": tuple(goal.model_copy(update={"duration_sum_s": 0.9, "relative_width": 0.2}) for goal in BRIEF.goals),
        "duration_max_s": 120.0,
        "mrr_trials": 4,
        "mrr_duration_s": 0.3,
    }
)
LIMIT_PPS = 8_000
MAX_PPS = 40_000.0
"""So little that even a busy machine neither loses packets nor fails to offer them."""
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
print("hogging", flush=True)
while True:
    end = time.monotonic() + 0.045
    while time.monotonic() < end:
        pass
    time.sleep(0.005)
"""

LEAKING = """
import subprocess, time
kept, begin = [], time.monotonic()
subprocess.run(["nft", "table ip t { chain c { type filter hook forward priority 0; }; };"], check=True)
while True:
    pps = 20_000 * 0.7 ** ((time.monotonic() - begin) / 60)
    rule = f"add rule ip t c limit rate over {pps:.0f}/second burst 20 packets drop"
    subprocess.run(["nft", f"flush chain ip t c; {rule}"], check=True)
    kept.append(b"x" * (1 << 20))
    time.sleep(0.2)
"""
"""Keeps more and more, and passes less and less: 30 % less in each minute."""

STOPPING = """
import os, signal, sys, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
print("stopping", flush=True)
while True:
    for number, pause_s in ((signal.SIGSTOP, 0.1), (signal.SIGCONT, 0.3)):
        for pid in map(int, sys.argv[1:]):
            os.kill(pid, number)
        time.sleep(pause_s)
"""
LONG_MS = 40
"""Longer than threads wait for a CPU on a machine that is busy with other things."""


@pytest.fixture(scope="module")
def world() -> Iterator[Testbed]:
    """The local world, waited for: other runs of this machine may hold it."""
    with closing(make_testbed(TOPOLOGY)) as found:
        when_free(found.open)
        yield found


class Capped(DensityTest):
    """An experiment whose generator is said to reach a certain load and no more."""

    most_pps = MAX_PPS
    before_trial: Callable[[], None] = staticmethod(lambda: None)

    def set_noise(self, noise: tuple[CpuNoise, ...]) -> None:
        self._noise = noise

    def _highest_loads(self) -> HighestLoads:
        return HighestLoads(offered_pps=self.most_pps, search_pps=self.most_pps)

    def measure(self, trial: Trial) -> TrialResult:
        if trial.purpose in {"search", "mrr"}:
            self.before_trial()
        return super().measure(trial)


@contextmanager
def running(
    world: Testbed,
    service_type: str = "CSC",
    rows: int = 1,
    columns: int = 1,
    *,
    kinds: tuple[str, ...] = (),
    change: Callable[[Plan], Plan] = lambda plan: plan,
    on_progress: Callable[[Progress], None] = lambda _: None,
    mrr: tuple[int, float] = (BRIEF.mrr_trials, BRIEF.mrr_duration_s),
    programs: tuple[UserProgram, ...] = (),
    searched: SearchProfile = BRIEF,
) -> Iterator[Capped]:
    cell = cell_of(service_type, rows, columns, nf_kinds=tuple(map(NfKind, kinds)), programs=programs)
    search = searched.model_copy(update={"mrr_trials": mrr[0], "mrr_duration_s": mrr[1]})
    asked = MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=search)
    experiment = Capped(TOPOLOGY, world, asked, fingerprint(), on_progress)
    experiment.draft.plan = change(experiment.plan())
    experiment.deploy()
    try:
        experiment.verify_traffic()
        yield experiment
    finally:
        assert experiment.remove() is None


def inside(owner: str, *argv: str) -> None:
    subprocess.run(["ip", "netns", "exec", f"csit-{owner}", *argv], check=True)


def limit_bridged(interface: str, pps: int = LIMIT_PPS) -> None:
    """Drop what the vSwitch receives at an interface beyond a rate."""
    rules = (
        f"table netdev t {{ chain c {{ type filter hook ingress device {interface} priority 0; "
        f"limit rate over {pps}/second burst 20 packets drop; }}; }};"
    )
    inside("vswitch", "nft", rules)


def limit_routed(owner: str, pps: int = LIMIT_PPS) -> None:
    """Drop what an NF routes beyond a rate, both directions together."""
    rules = (
        "table ip t { chain c { type filter hook forward priority 0; "
        f"limit rate over {pps}/second burst 20 packets drop; }}; }};"
    )
    inside(owner, "nft", rules)


@contextmanager
def hogged(cpu: int) -> Iterator[None]:
    """Nine tenths of a CPU are taken from everybody else, real-time threads included."""
    with victim(HOG, str(cpu), says="hogging"):
        yield


@contextmanager
def stopping(pids: Iterable[int]) -> Iterator[None]:
    """Stop processes for 100 ms of every 400 ms; no CPU is taken from anybody."""
    try:
        with victim(STOPPING, *map(str, pids), says="stopping"):
            yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def verdict_kinds(experiment: DensityTest, number: str) -> set[VerdictKind]:
    """Kinds of one number, without what this machine's size adds to each of them."""
    assert experiment.draft.verdict is not None and experiment.draft.plan is not None
    kinds = set(experiment.draft.verdict.of(number))
    # A machine with few cores says so of every number, and only it does.
    assert (VerdictKind.OVERSUBSCRIBED in kinds) == experiment.draft.plan.cores.oversubscribed
    return kinds - {VerdictKind.OVERSUBSCRIBED}


def evidence(experiment: DensityTest) -> str:
    assert experiment.draft.verdict is not None
    return "\n".join(experiment.draft.verdict.evidence)


def test_a_limit_in_the_vswitch_is_found_there(world: Testbed) -> None:
    with running(world, "CSC", 1, 2) as experiment:
        limit_bridged("csv1x1i2")
        experiment.search(("PDR",))
        assert VerdictKind.VSWITCH_BOUND in verdict_kinds(experiment, "PDR")
        located = experiment.draft.located
        assert located is not None
        assert next(iter(by_owner(located.hops))) == "vswitch"
        first = located.hops[0]
        assert (first.direction, first.cause, first.last, first.next) == ("forward", "inside", "csv1x1i2", "csv1x2i1")
        assert sum(hop.lost for hop in located.hops) == pytest.approx(located.sent - located.received, abs=10)
        # One trial more than the search needs, of the length of an MRR trial.
        extra = [done for done in experiment.draft.trials if done.trial.purpose == "locate"]
        assert [done.trial.duration_s for done in extra] == [BRIEF.mrr_duration_s]
        # How busy its thread was hangs on what else this machine does; that it is told does not.
        assert "vswitch's data thread on CPU" in evidence(experiment)


def test_a_limit_in_an_nf_is_found_in_that_nf_of_that_instance(world: Testbed) -> None:
    with running(world, "CSP", 2, 2) as experiment:
        limit_routed("nf-2-1")
        experiment.search(("PDR",))
        assert VerdictKind.NF_BOUND in verdict_kinds(experiment, "PDR")
        assert "of them at nf-2-1: " in evidence(experiment)
        located = experiment.draft.located
        assert located is not None
        assert next(iter(by_owner(located.hops))) == "nf-2-1"
        overload = next(item for item in experiment.draft.itemized if item.number == "overload")
        assert overload.worst_instance == 2
        assert overload.worst_loss_ratio > 0.05
        assert overload.fairness is not None
        assert overload.fairness < 0.9999
        for owner in ("vswitch", "nf-1-1", "nf-2-2"):
            assert by_owner(located.hops).get(owner, 0) < 0.1 * by_owner(located.hops)["nf-2-1"]


def apart(victim: str) -> Callable[[Plan], Plan]:
    """Data threads of one owner on CPU 1, all others on CPU 0."""

    def change(plan: Plan) -> Plan:
        placed = tuple(
            thread.model_copy(update={"cpu": 1 if thread.owner.startswith(victim) else 0})
            if thread.role is ThreadRole.DATA
            else thread
            for thread in plan.cores.threads
        )
        return plan.model_copy(update={"cores": plan.cores.model_copy(update={"threads": placed})})

    return change


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize(("victim", "kind"), [("vswitch", VerdictKind.VSWITCH_BOUND), ("nf-1-1", VerdictKind.NF_BOUND)])
def test_a_part_without_cpu_time_loses_packets_in_its_queues_and_its_cpu_says_so(
    world: Testbed, victim: str, kind: VerdictKind
) -> None:
    with running(world, change=apart(victim)) as experiment, hogged(1):
        experiment.mrr()
        assert kind in verdict_kinds(experiment, "MRR")
        located = experiment.draft.located
        assert located is not None
        assert next(iter(by_owner(located.hops))) == victim
        causes = {hop.cause: hop.lost for hop in reversed(located.hops) if hop.owner == victim}
        # What still waits in a queue of 256 when the counters are read is neither received nor dropped.
        assert causes.pop("queue") > 10 * max(causes.values(), default=0)
        told = next(line for line in experiment.draft.verdict.evidence if "CPU 1" in line)  # type: ignore[union-attr]
        assert told.startswith(f"{victim}'s data thread")
        assert "other threads" in told


def losses_are_those_of_tcpdump(experiment: DensityTest, folder: Path) -> None:
    """Lose 1 of 50 at random in an NF; the record agrees with nftables, and with tcpdump packet by packet."""
    left, right = folder / "left.pcap", folder / "right.pcap"
    inside("nf-1-1", "nft", "table ip t { counter lost { }; chain c { type filter hook forward priority 0; "
           "numgen random mod 50 == 0 counter name lost drop; }; };")  # fmt: skip
    with dumped("csv1p1", left, "csit-vswitch"), dumped("csv1p2", right, "csit-vswitch"):
        (said, _) = experiment.losses(1.0)
    (row,) = experiment.draft.losses
    assert (row.label, row.load_pps, row.remarks) == ("PDR", 4000.0, ())
    for flow, seen in zip(row.flows, seen_at(left, right).values(), strict=True):
        assert flow.sent == 2000 and flow.lost > 10
        seen.agrees_with(flow)
        assert pattern_of(flow) is LossPattern.RANDOM, losses_in_words(flow)
    assert row.lost_at == {"nf-1-1": sum(flow.lost for flow in row.flows)} == {"nf-1-1": named("nf-1-1")["lost"]}
    assert "at random" in said


def test_what_the_system_can_more_than_carry_is_bound_by_the_generator(world: Testbed, tmp_path: Path) -> None:
    with running(world) as experiment:
        experiment.most_pps = 4_000.0
        experiment.search(("PDR",))
        assert VerdictKind.GENERATOR_BOUND in verdict_kinds(experiment, "PDR")
        assert "still met at 4.00 kpps" in evidence(experiment)
        losses_are_those_of_tcpdump(experiment, tmp_path)


_MOMENTS = 20
"""Trials among which one is in a moment in which the machine does not stand still."""


def floor() -> tuple[CpuNoise, ...]:
    """The noise floor of the CPU that pulses are on."""
    with closing(LocalConnection()) as here:
        return observe(here, [CPU], 0.9, python=sys.executable)


def quiet_floor() -> tuple[CpuNoise, ...]:
    """That of a quiet moment: what this machine's own host takes of the CPU is none of what is planted."""
    seen = []
    for _ in range(5):
        seen.append(floor())
        if seen[-1][0].longest_ns < 1_000_000:
            break
    return min(seen, key=lambda rows: rows[0].longest_ns)


def loss_cause(experiment: Capped) -> str:
    """Count losses at PDR; return the sentence about their cause."""
    experiment.draft.losses = ()
    experiment.losses(1.0)
    assert experiment.draft.verdict is not None
    found = [line for line in experiment.draft.verdict.evidence if line.startswith("PDR: instance ")]
    assert len(found) == 1, (experiment.draft.losses, experiment.draft.verdict.evidence)
    return found[0]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_losses_are_the_hosts_or_those_of_the_nf_that_drops_packets(world: Testbed) -> None:
    quiet = quiet_floor()
    with running(world) as experiment:
        experiment.most_pps = 240_000.0
        experiment.search(("PDR",))
        with pulses():
            experiment.set_noise(floor())
            said = loss_cause(experiment)
            assert "the host causes them" in said and f" on CPU {CPU}, observed for 0.9 s" in said, said
        experiment.set_noise(quiet)
        inside("nf-1-1", "nft", "table ip t { chain c { type filter hook forward priority 0; "
               "numgen random mod 300 == 0 drop; }; };")  # fmt: skip
        said = next(
            (line for line in (loss_cause(experiment) for _ in range(_MOMENTS)) if longest_burst(line) < 20), ""
        )
        assert "an NF or a vSwitch causes them; lost by the counters of all hops: nf-1-1 " in said, said


def longest_burst(said: str) -> int:
    """Packets in a row: one of 300 at random are never many, a machine that stands still loses hundreds."""
    found = re.search(r"([\d,]+) in a row at most", said)
    return int(found[1].replace(",", "")) if found else 0


def tail_cause(experiment: Capped) -> str:
    """Measure latency of probes only; return the sentence about its tail."""
    experiment.latency()
    assert experiment.draft.verdict is not None
    (said,) = [line for line in experiment.draft.verdict.evidence if "p99.9" in line]
    return said


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.skipif(bool(NO_OPENVPN), reason=NO_OPENVPN)
def test_a_tail_is_the_hosts_or_that_of_the_nf_that_stands_still(world: Testbed) -> None:
    quiet = quiet_floor()
    with running(world, kinds=("openvpn",)) as experiment:
        threads = [each for each in experiment.deployment.plan.cores.threads if each.role is ThreadRole.DATA]
        assert CPU in {each.cpu for each in threads if each.owner != GENERATOR}
        experiment.set_noise(quiet)
        with stopping(processes("openvpn")):
            said = tail_cause(experiment)
        assert said.endswith(": an NF or a vSwitch causes it"), said
        with pulses(LONG_MS, 5 * LONG_MS):
            experiment.set_noise(floor())
            said = tail_cause(experiment)
        assert said.endswith(": the host causes it") and f" on CPU {CPU}, observed for 0.9 s" in said, said
        experiment.most_pps = 1_000_000.0
        why = experiment.too_noisy() or ""
        assert why in experiment.draft.warnings
        found = re.match(r"interruptions of data CPUs can limit NDR above (\S+) kpps.*longest: (\S+) ms on CPU", why)
        assert found, why
        assert 1000 * float(found[1]) == pytest.approx(2 * QUEUE_FRAMES / float(found[2]) * 1000, rel=0.02)


def test_a_data_thread_moved_during_the_measurement_is_noticed(world: Testbed) -> None:
    moved: list[int] = []

    def move(progress: Progress) -> None:
        if progress.trials == 2:
            (thread,) = data_threads.find(["csn1x1i1"]).values()
            os.sched_setaffinity(thread, {0})
            moved.append(thread)

    with running(world, on_progress=move) as experiment:
        assert all(row.actual_cpus == (row.planned_cpu,) for row in experiment.draft.affinity)
        (planned,) = {row.planned_cpu for row in experiment.draft.affinity if row.interface == "csn1x1i1"}
        if planned == 0:
            pytest.skip("the thread is planned on CPU 0")
        experiment.search(("PDR",))
        assert moved
        assert VerdictKind.AFFINITY_LOST in verdict_kinds(experiment, "PDR")
        assert f"nf-1-1 csn1x1i1 is planned on CPU {planned}, was there after deployment" in evidence(experiment)
        assert [row.interface for row in experiment.draft.affinity if row.actual_cpus == (0,)] == ["csn1x1i1"]


def drop_routed(owner: str, percent: int) -> None:
    """Drop a share of what an NF routes, packet by packet, at any rate."""
    rules = (
        "table ip t; delete table ip t; table ip t { chain c { type filter hook forward priority 0; "
        f"numgen inc mod 100 < {percent} drop; }}; }};"
    )
    inside(owner, "nft", rules)


def test_a_system_that_is_slow_in_some_trials_runs_in_two_bands_and_a_steady_one_does_not(world: Testbed) -> None:
    with running(world, mrr=(12, 0.2)) as experiment:
        experiment.most_pps = 4_000.0  # of which queues hold what comes in 60 ms, should a data thread wait so long
        drop_routed("nf-1-1", 20)
        experiment.mrr()
        assert VerdictKind.UNSTABLE not in verdict_kinds(experiment, "MRR")
        steady = len(experiment.draft.trials)
        numbers = itertools.count()

        def toggle() -> None:
            # Half of the trials in the low band.
            drop_routed("nf-1-1", 60 if next(numbers) % 2 else 20)

        experiment.before_trial = toggle
        experiment.mrr()
        assert VerdictKind.UNSTABLE in verdict_kinds(experiment, "MRR")
        assert VerdictKind.NF_BOUND in verdict_kinds(experiment, "MRR")
        # A trial that the generator did not offer in time says nothing about the system.
        counted = [done for done in experiment.draft.trials[steady:] if not done.generator_limited]
        low = [done for done in counted if (done.loss_ratio or 0.0) > 0.4]
        assert f"two bands: of {len(counted)} trials at the highest load {len(low)} forwarded" in evidence(experiment)


def test_a_leaking_nf_ends_the_search_as_decaying_and_its_memory_is_named(world: Testbed) -> None:
    leaking = UserProgram(start=(sys.executable, "-c", LEAKING))
    with running(world, kinds=("process",), programs=(leaking,), searched=profile("ladder")) as experiment:
        experiment.search(("NDR", "PDR"))
        assert VerdictKind.DECAYING in verdict_kinds(experiment, "PDR"), evidence(experiment)
        rose = next(line for line in experiment.draft.verdict.evidence if " rose with it: " in line)
        assert re.search(r"memory of nf-1-1 from \d+ to \d+ MiB", rose), rose
        read = {name for name in experiment.deployment.state().counts if name.endswith(" of csn1x1i1")}
        assert "rx_queue_0_drops of csn1x1i1" in read, "the veth driver's own counters"
