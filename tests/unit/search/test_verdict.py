"""A verdict names what limits the number, and never comes without evidence: losses by place, times of threads."""

from typing import Any, Literal

import pytest

from resources.libraries.python.model.findings import CpuLoad, HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import Affinity, Finding, ReceiveRate, Verdict, VerdictKind
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.findings.limits import DATA_THREADS, POLL, limits
from resources.libraries.python.search.findings.verdict import judge, verdict_text
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import SearchOutcome
from tests.builders import cell_of
from tests.unit.planning.labs import lab
from tests.unit.search.search_fakes import Bench, capped, planned, search, trial_result

PLAN = planned("CSC", 1, 1)
CROWDED = PLAN.model_copy(
    update={"cores": PLAN.cores.model_copy(update={"oversubscribed": True, "cores_needed": 5, "cores_there": 2})}
)
STRAY = Affinity(owner="nf-1-1", interface="csn1x1i1", planned_cpu=3, actual_cpus=(1, 3))
LOST = Affinity(owner="nf-1-1", interface="csn1x1i2", planned_cpu=3, actual_cpus=())
RIGHT = Affinity(owner="vswitch", interface="csv1p1", planned_cpu=2, actual_cpus=(2,))
COMPLAINT = "CSC instance 1 forward: 200 sent, last seen at nf-1-1 csn1x1i1 rx (200), not at nf-1-1 csn1x1i2 tx (0)"


def outcome(capacity_pps: float, limit_s: float = 1200.0) -> SearchOutcome:
    profile = LADDER.model_copy(update={"duration_max_s": limit_s})
    return search(Bench(capped(capacity_pps)), profile=profile)


def judged(plan: Plan = PLAN, **known: Any) -> Verdict:
    return judge(plan, **known)


LIMITED = trial_result(2000.0, 5).model_copy(update={"generator_limited": True})


@pytest.mark.parametrize(
    ("known", "kinds", "words"),
    [
        ({"outcome": outcome(4e6), "affinity": [RIGHT]}, ["measured"], "none limited by the generator"),
        ({}, ["measured"], "every service instance"),
        ({"mrr_trials": [trial_result(1000.0, 5)] * 3}, ["measured"], "3 trials at the highest load"),
        ({"outcome": outcome(4e7)}, ["generator-bound"], "still met at 29.8 Mpps"),
        ({"mrr_trials": [trial_result(1000.0)] * 3}, ["generator-bound"], "nothing was lost at 1.00 kpps"),
        ({"mrr_trials": [LIMITED]}, ["generator-bound"], "1 of 1 trials, down to 1.00 kpps of 2.00 kpps"),
        ({"outcome": outcome(0.0)}, ["below-range"], "even at 18.0 kpps"),
        ({"outcome": outcome(4e6, 20.0)}, ["incomplete"], "time limit of 20 s"),
        ({"plan": CROWDED}, ["oversubscribed"], "needs 5 cores, 2 are available"),
        ({"affinity": [RIGHT, STRAY]}, ["affinity-lost"], "planned on CPU 3 and may run on CPUs 1, 3"),
        ({"affinity": [LOST]}, ["affinity-lost"], "csn1x1i2 is planned on CPU 3 and was not found"),
        ({"complaints": (COMPLAINT,)}, ["no-traffic"], COMPLAINT),
        (
            {"plan": CROWDED, "outcome": outcome(4e7), "affinity": [STRAY], "complaints": (COMPLAINT,)},
            ["no-traffic", "generator-bound", "affinity-lost", "oversubscribed"],
            COMPLAINT,
        ),
    ],
)
def test_each_flaw_has_its_kind_and_its_numbers(known: dict[str, Any], kinds: list[str], words: str) -> None:
    verdict = judged(**known)
    assert list(verdict.kinds) == kinds
    assert words in "\n".join(verdict.evidence)
    assert len(set(verdict.evidence)) == len(verdict.evidence) >= len(kinds)


def loss(owner: str, lost: int, cause: Literal["queue", "inside"] = "queue", instance: int = 1) -> HopLoss:
    places = {
        "vswitch": ("csg1p1", "csv1p1"), "generator": ("csv1x1i2", "csg1p2"),
        "nf-1-1": ("csv1p1", "csn1x1i1"), "nf-2-1": ("csv2p1", "csn2x1i1"),
    }  # fmt: skip
    last, following = places[owner]
    if cause == "inside":
        last, following = following, f"{following[:-1]}2"
    ends = {"last": last, "next": following}
    return HopLoss(instance=instance, direction=Direction.FORWARD, owner=owner, cause=cause, lost=lost, **ends)


def located(*lost: tuple[str, int], purpose: Literal["mrr", "locate"] = "mrr") -> LocatedLosses:
    hops = tuple(loss(owner, count) for owner, count in lost)
    received = 10_000 - sum(count for _, count in lost)
    return LocatedLosses(
        purpose=purpose, load_pps=1e9, offered_pps=1e9, trials=1, sent=10_000, received=received, hops=hops
    )


VSWITCH, NF, TG = VerdictKind.VSWITCH_BOUND, VerdictKind.NF_BOUND, VerdictKind.GENERATOR_BOUND


def test_the_greater_loss_comes_first() -> None:
    trials = [trial_result(1000.0, 500)] * 3
    for lost, kinds in (
        ((("nf-1-1", 1000), ("vswitch", 900)), (NF, VSWITCH)),
        ((("nf-1-1", 900), ("vswitch", 1000)), (VSWITCH, NF)),
    ):
        assert judged(mrr_trials=trials, located=located(*lost)).kinds == kinds
    crowded = judged(CROWDED, mrr_trials=trials, located=located(("nf-1-1", 1000)))
    assert crowded.kinds == crowded.of("MRR") == (VerdictKind.OVERSUBSCRIBED, NF)
    assert crowded.of("NDR") == (VerdictKind.OVERSUBSCRIBED,)


def test_later_trials_that_meet_a_goal_or_fail_speak_against_its_bounds() -> None:
    found = judged(outcome=outcome(4e6), located=located(("vswitch", 40), purpose="locate"))
    assert found.kinds == (VerdictKind.UNSTABLE, VSWITCH)
    assert "PDR: 40 of 10,000 packets were lost in a later trial at 1.00 Gpps" in found.evidence[0]
    assert found.of("NDR") == (VSWITCH,)
    assert judged(outcome=outcome(4e6), located=located(("vswitch", 60), purpose="locate")).kinds == (VSWITCH,)
    lossy = trial_result(2e6, 10)
    found = judged(outcome=outcome(4e6), latency_trials=[lossy, trial_result(1e6, 5)])
    assert found.kinds == (VerdictKind.UNSTABLE,)
    assert found.of("LATENCY") == found.of("PDR") == (VerdictKind.UNSTABLE,)
    assert found.of("NDR") == (VerdictKind.MEASURED,)
    assert "1.00 % of the packets were lost at 2.00 Mpps" in found.evidence[0]
    slow = lossy.model_copy(update={"generator_limited": True})
    assert judged(outcome=outcome(4e6), latency_trials=[slow]).of("LATENCY") == (VerdictKind.GENERATOR_BOUND,)


def test_the_verdicts_of_numbers_are_distinguished_where_they_differ() -> None:
    assert verdict_text({"NDR": ["a", "b"], "PDR": ["a", "b"]}) == "a, b"
    assert verdict_text({"NDR": ["a"], "PDR": ["a", "b"]}) == "NDR a; PDR a, b"


def test_an_mrr_below_the_rate_at_a_lower_load_is_explained() -> None:
    def rate(mean_pps: float, offered_pps: float) -> ReceiveRate:
        return ReceiveRate(offered_pps=offered_pps, receive_rates_pps=(mean_pps,), mean_pps=mean_pps, stdev_pps=None)

    verdict = judged(mrr=rate(106e3, 3e6), orr=rate(230e3, 1e6), mrr_trials=[trial_result(3e6, 900)] * 3)
    (line,) = [line for line in verdict.evidence_of("MRR") if "forwards less" in line]
    assert "106 kpps received of 3.00 Mpps, and 230 kpps of only 1.00 Mpps" in line
    level = judged(mrr=rate(228e3, 3e6), orr=rate(230e3, 1e6), mrr_trials=[trial_result(3e6, 900)] * 3)
    assert "forwards less" not in "\n".join(level.evidence)


PAIR = planned("CSC", 2, 1)


def thread(owner: str, interface: str, running: float, waiting: float = 0.0, cpu: int = 3) -> ThreadLoad:
    return ThreadLoad(owner=owner, interface=interface, cpu=cpu, running=running, waiting=waiting)


def found(
    *hops: HopLoss,
    threads: tuple[ThreadLoad, ...] = (),
    cpus: tuple[CpuLoad, ...] = (),
    plan: Plan = PAIR,
    facts: dict[str, dict[str, str]] | None = None,
) -> list[Finding]:
    lost = sum(hop.lost for hop in hops)
    located = LocatedLosses(
        purpose="locate", load_pps=1e6, offered_pps=1e6, trials=1, sent=500_000, received=500_000 - lost,
        hops=hops, usage=Usage(threads=threads, cpus=cpus),
    )  # fmt: skip
    return limits(plan, located, ("NDR",), facts)


def kinds(*hops: HopLoss) -> list[VerdictKind]:
    return list(dict.fromkeys(finding.kind for finding in found(*hops)))


def test_the_place_of_the_loss_decides() -> None:
    assert kinds() == []
    assert kinds(loss("vswitch", 1000)) == [VSWITCH]
    assert kinds(loss("nf-2-1", 1000)) == [NF]
    assert kinds(loss("generator", 1000)) == [TG]
    assert kinds(loss("nf-1-1", 1000), loss("vswitch", 100)) == [NF]
    assert kinds(loss("nf-1-1", 1000), loss("vswitch", 900)) == [NF, VSWITCH]
    assert kinds(loss("vswitch", 10).model_copy(update={"owner": "vswitch-2"})) == [VSWITCH]
    # Many NFs that lose a little each are NFs all the same.
    assert kinds(loss("vswitch", 500), loss("nf-1-1", 400), loss("nf-2-1", 400)) == [NF, VSWITCH]


def text(*hops: HopLoss, **more: object) -> str:
    return "\n".join(finding.text for finding in found(*hops, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([(0.98, 0.0)], "nf-1-1's data thread on CPU 3 (csn1x1i1) was busy for 98 % of the time\n"),
        ([(0.49, 0.0)], "had work for only 49 % of the time"),
        ([(0.51, 0.0)], "was busy for 51 % of the time, which neither confirms nor rules out"),
        ([(0.89, 0.0)], "was busy for 89 % of the time, which neither confirms nor rules out"),
        ([(0.91, 0.0)], "was busy for 91 % of the time\n"),
        ([(0.79, 0.21)], "had work for 100 % of the time and ran for 79 %; the CPU had nf-1-1 79 %"),
        ([(0.81, 0.19)], "was busy for 100 % of the time\n"),
        # Kernel threads of one data thread: one waits while the other runs.
        ([(0.5, 0.45), (0.48, 0.45)], "nf-1-1's data thread on CPU 3 (csn1x1i1) was busy for 98 % of the time"),
    ],
)
def test_a_thread_is_idle_below_half_of_the_time_alone_from_80_and_at_its_limit_from_90_percent(
    shares: list[tuple[float, float]], expected: str
) -> None:
    threads = tuple(thread("nf-1-1", f"csn1x1i{number}", *times) for number, times in enumerate(shares, 1))
    assert expected in f"{text(loss('nf-1-1', 1000), threads=threads)}\n"


def test_times_of_other_threads_are_named_and_may_contradict() -> None:
    waits = (thread("nf-1-1", "csn1x1i1", 0.2, 0.75), thread("vswitch", "csv1p1", 0.7, 0.2))
    said = text(loss("nf-1-1", 1000), threads=waits)
    assert "had work for 95 % of the time and ran for 20 %; the CPU had vswitch 70 %, nf-1-1 20 %: the place of" in said
    elsewhere = (thread("nf-1-1", "csn1x1i1", 0.3), thread("vswitch", "csv1p1", 0.97, cpu=2))
    said = text(loss("nf-1-1", 1000), threads=elsewhere)
    assert "this contradicts the CPU time of threads: vswitch's data thread on CPU 2 was busy for 97 %" in said
    cpu = CpuLoad(cpu=3, user=0.85, system=0.12, softirq=0.0, stolen=0.0)
    said = text(loss("vswitch", 1000), threads=(thread("vswitch", "csv1p1", 0.1, 0.9),), cpus=(cpu,))
    assert "ran for 10 %; the CPU had vswitch 10 %, other threads 87 %" in said


def test_evidence_names_owners_by_their_shares_places_and_numbers() -> None:
    said = text(loss("nf-2-1", 900, "inside", 2), loss("nf-1-1", 100))
    assert "at 1.00 Mpps 1,000 of 500,000 packets were lost, 900 of them at nf-2-1" in said
    assert "900 in instance 2 forward were received at csn2x1i1 and not sent at csn2x1i2" in said
    assert "100 in instance 1 forward met a full receive queue at csn1x1i1" in said
    assert all(finding.numbers == ("NDR",) for finding in found(loss("vswitch", 9)))
    places = text(*(loss("nf-1-1", 100, instance=number) for number in range(1, 7)))
    assert places.count("full receive queue") == 4 and places.endswith("; 2 more places")
    owners = [loss("nf-1-1", 100).model_copy(update={"owner": f"nf-{number}-1"}) for number in range(1, 8)]
    assert text(*owners).endswith("\n300 of 700 packets were lost at nf-5-1, nf-6-1, nf-7-1")
    assert kinds(loss("nf-1-1", 740), loss("vswitch", 260)) == [NF, VSWITCH]
    assert kinds(loss("nf-1-1", 760), loss("vswitch", 240)) == [NF]
    assert "60 of them at nf-2-1" in text(loss("nf-1-1", 940), loss("nf-2-1", 60))
    assert "40 of 1,000 packets were lost at nf-2-1" in text(loss("nf-1-1", 960), loss("nf-2-1", 40))


def test_the_thread_of_a_trunk_is_that_of_all_its_vlans() -> None:
    topology = lab(discriminator="vlan", vswitch="linux_bridge", generator="ring", containers="linux_router")
    plan = make_plan(topology, cell_of("CSC", 2, 1), {})
    hop = loss("vswitch", 1000, instance=2).model_copy(update={"last": "csg2p1", "next": "csv2p1"})
    (finding, *_) = [
        row for row in found(hop, threads=(thread("vswitch", "csv0p1", 0.95),), plan=plan) if "CPU 3" in row.text
    ]
    assert finding.kind is VSWITCH
    assert "vswitch's data thread on CPU 3 (csv0p1) was busy for 95 % of the time" in finding.text


def test_without_threads_the_planned_cpus_are_reported() -> None:
    cpu = PAIR.cores.cpus("nf-1-1")[0]
    busy = CpuLoad(cpu=cpu, user=0.99, system=0.0, softirq=0.0, stolen=0.0)
    assert f"CPU {cpu}, planned for nf-1-1, was busy for 99 % of the time" in text(loss("nf-1-1", 9), cpus=(busy,))
    idle = busy.model_copy(update={"user": 0.2})
    assert "not for lack of CPU" in text(loss("nf-1-1", 9), cpus=(idle,))


def test_cpus_of_another_machine_are_other_cpus() -> None:
    """CPU 3 of DUT2 does not share CPU 3 of DUT1, and of DUT2 no time of CPUs is known."""
    plan = make_plan(lab(2), cell_of(), {})
    here = loss("nf-1-1", 1000)
    there = here.model_copy(update={"owner": "nf-1-2", "next": "csn1x2i1", "last": "csv1p3"})
    own = thread("nf-1-1", "csn1x1i1", 0.2, 0.75)
    foreign = thread("vswitch-2", "csv1p3", 0.7).model_copy(update={"machine": "DUT2"})
    busy = CpuLoad(cpu=plan.cores.cpus("nf-1-2")[0], user=0.99, system=0.0, softirq=0.0, stolen=0.0)
    router = {"kind": NfKind("linux_router")}
    plan = plan.model_copy(update={"functions": tuple(nf.model_copy(update=router) for nf in plan.functions)})
    said = text(here, threads=(own, foreign), plan=plan)
    assert "the CPU had nf-1-1 20 %:" in said
    assert "vswitch-2 70 %" not in said
    assert "was busy for" not in text(there, cpus=(busy,), plan=plan)
    assert "was busy for 99 %" in text(there, cpus=(busy.model_copy(update={"machine": "DUT2"}),), plan=plan)


@pytest.mark.parametrize(
    ("kind", "owner", "role", "polls"),
    [
        ("vpp", "nf-1-1", "functions", True),
        ("vpp", "nf-1-1", "vswitch", False),
        ("vpp", "vswitch", "vswitch", True),
        ("vpp", "vswitch", "functions", False),
        ("testpmd", "nf-1-1", "vswitch", True),
    ],
)
def test_threads_that_poll_have_no_time(kind: str, owner: str, role: str, polls: bool) -> None:
    """DPDK's programs always do, a VPP where its own driver says so."""
    functions = tuple(nf.model_copy(update={"kind": NfKind(kind)}) for nf in PAIR.functions)
    plan, facts = PAIR.model_copy(update={"functions": functions}), {role: {DATA_THREADS: POLL}}
    place = {"nf-1-1": "csn1x1i1", "vswitch": "csv1p1"}[owner]
    said = text(loss(owner, 9), threads=(thread(owner, place, 1.0),), plan=plan, facts=facts)
    assert (f"{owner}'s data threads poll" in said) is polls
    assert ("was busy for 100 %" in said) is not polls


@pytest.mark.parametrize(("accelerator", "emulated"), [("tcg", True), ("kvm", False), (None, False)])
def test_emulated_guests_are_a_finding_with_the_reason(accelerator: str | None, emulated: bool) -> None:
    why = "no guest boots with KVM here: it hangs for 20 s"
    facts = {"functions": {"accelerator": accelerator, "why": why}} if accelerator else {}
    verdict = judge(planned("VSC", 1, 1), facts=facts)
    assert (VerdictKind.EMULATED in verdict.kinds) is emulated
    assert (f"virtual machines ran in software emulation (TCG): {why}" in verdict.evidence) is emulated
