"""A verdict names what limits the number, and never comes without evidence: losses by place, times of threads."""

import pytest

from resources.libraries.python.model.findings.evidence import CpuLoad, HopLoss, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import Affinity, Finding, ReceiveRate, Verdict, VerdictKind
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.findings.limits import DATA_THREADS, POLL, limits
from resources.libraries.python.search.findings.verdict import judge, verdict_text
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import SearchOutcome, search_throughput
from tests.unit.planning.labs import lab
from tests.unit.search.search_fakes import FRAME, LINE_PPS, Bench, capped, planned, trial_result

PLAN = planned("CSC", 1, 1)
CROWDED = PLAN.model_copy(
    update={"cores": PLAN.cores.model_copy(update={"oversubscribed": True, "cores_needed": 5, "cores_there": 2})}
)
STRAY = Affinity(owner="nf-1-1", interface="csn1x1i1", planned_cpu=3, actual_cpus=(1, 3))
LOST = Affinity(owner="nf-1-1", interface="csn1x1i2", planned_cpu=3, actual_cpus=())
RIGHT = Affinity(owner="vswitch", interface="csv1p1", planned_cpu=2, actual_cpus=(2,))
COMPLAINT = "CSC instance 1 forward: 200 sent, last seen at nf-1-1 csn1x1i1 rx (200), not at nf-1-1 csn1x1i2 tx (0)"


def outcome(capacity_pps: float, limit_s: float = 1200.0) -> SearchOutcome:
    bench = Bench(capped(capacity_pps))
    profile = LADDER.model_copy(update={"duration_max_s": limit_s})
    return search_throughput(bench.measure, profile, FRAME, LINE_PPS, bench.clock.now)


def judged(plan: Plan = PLAN, **known: object) -> Verdict:
    return judge(plan, **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("plan", "known", "kinds", "words"),
    [
        (PLAN, {"outcome": outcome(4e6), "affinity": [RIGHT]}, [VerdictKind.MEASURED], "none limited by the generator"),
        (PLAN, {}, [VerdictKind.MEASURED], "every service instance"),
        (PLAN, {"outcome": outcome(4e7)}, [VerdictKind.GENERATOR_BOUND], "still met at 29.8 Mpps"),
        (PLAN, {"outcome": outcome(0.0)}, [VerdictKind.BELOW_RANGE], "even at 18.0 kpps"),
        (PLAN, {"outcome": outcome(4e6, 20.0)}, [VerdictKind.INCOMPLETE], "time limit of 20 s"),
        (CROWDED, {}, [VerdictKind.OVERSUBSCRIBED], "needs 5 cores, 2 are available"),
        (PLAN, {"affinity": [RIGHT, STRAY]}, [VerdictKind.AFFINITY_LOST], "planned on CPU 3 and may run on CPUs 1, 3"),
        (PLAN, {"affinity": [LOST]}, [VerdictKind.AFFINITY_LOST], "csn1x1i2 is planned on CPU 3 and was not found"),
        (PLAN, {"complaints": (COMPLAINT,)}, [VerdictKind.NO_TRAFFIC], COMPLAINT),
        (
            PLAN,
            {"mrr_trials": [trial_result(1000.0)] * 3},
            [VerdictKind.GENERATOR_BOUND],
            "nothing was lost at 1.00 kpps",
        ),
        (
            PLAN,
            {"mrr_trials": [trial_result(2000.0, 5).model_copy(update={"generator_limited": True})]},
            [VerdictKind.GENERATOR_BOUND],
            "1 of 1 trials, down to 1.00 kpps of 2.00 kpps",
        ),
        (PLAN, {"mrr_trials": [trial_result(1000.0, 5)] * 3}, [VerdictKind.MEASURED], "3 trials at the highest load"),
        (
            CROWDED,
            {"outcome": outcome(4e7), "affinity": [STRAY], "complaints": (COMPLAINT,)},
            [
                VerdictKind.NO_TRAFFIC,
                VerdictKind.GENERATOR_BOUND,
                VerdictKind.AFFINITY_LOST,
                VerdictKind.OVERSUBSCRIBED,
            ],
            COMPLAINT,
        ),
    ],
)
def test_each_flaw_has_its_kind_and_its_numbers(
    plan: Plan, known: dict[str, object], kinds: list[VerdictKind], words: str
) -> None:
    verdict = judged(plan, **known)
    assert list(verdict.kinds) == kinds
    assert words in "\n".join(verdict.evidence)
    assert len(set(verdict.evidence)) == len(verdict.evidence) >= len(kinds)


def located(*lost: tuple[str, int], sent: int = 10_000, purpose: str = "mrr") -> LocatedLosses:
    hops = tuple(
        HopLoss(
            instance=1, direction=Direction.FORWARD, last="a", next="b", owner=owner, cause="queue", lost=count
        )
        for owner, count in lost
    )  # fmt: skip
    received = sent - sum(count for _, count in lost)
    return LocatedLosses(
        purpose=purpose, load_pps=1e9, offered_pps=1e9, trials=1, sent=sent, received=received, hops=hops  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_greater_loss_comes_first() -> None:
    trials = [trial_result(1000.0, 500)] * 3
    vswitch, nf = VerdictKind.VSWITCH_BOUND, VerdictKind.NF_BOUND
    for lost, kinds in (
        ((("nf-1-1", 1000), ("vswitch", 900)), (nf, vswitch)),
        ((("nf-1-1", 900), ("vswitch", 1000)), (vswitch, nf)),
    ):
        assert judged(mrr_trials=trials, located=located(*lost)).kinds == kinds
    crowded = judged(CROWDED, mrr_trials=trials, located=located(("nf-1-1", 1000)))
    assert crowded.kinds == (VerdictKind.OVERSUBSCRIBED, nf)
    assert crowded.of("MRR") == crowded.kinds
    assert crowded.of("NDR") == (VerdictKind.OVERSUBSCRIBED,)


def test_a_trial_beyond_the_bounds_that_meets_the_goal_speaks_against_the_bounds() -> None:
    found = judged(outcome=outcome(4e6), located=located(("vswitch", 40), purpose="locate"))
    assert found.kinds == (VerdictKind.UNSTABLE, VerdictKind.VSWITCH_BOUND)
    assert "PDR: 40 of 10,000 packets were lost in a later trial at 1.00 Gpps" in found.evidence[0]
    assert found.of("NDR") == (VerdictKind.VSWITCH_BOUND,)
    assert judged(outcome=outcome(4e6), located=located(("vswitch", 60), purpose="locate")).kinds == (
        VerdictKind.VSWITCH_BOUND,
    )


def test_failures_during_a_latency_measurement_are_reported_as_such() -> None:
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


def test_the_first_sentence_is_about_the_first_kind() -> None:
    verdict = judged(CROWDED, affinity=[STRAY], complaints=(COMPLAINT,))
    assert verdict.evidence[0] == COMPLAINT
    assert "cores" in verdict.evidence[-1]


def test_of_several_machines_the_one_that_is_too_small_is_named() -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    plan = make_plan(lab(2, oversubscribe=True, cores=8, tg_cores=1), cell, {})
    (finding,) = judge(plan).findings
    assert finding.kind is VerdictKind.OVERSUBSCRIBED
    assert finding.text == "the plan for TG needs 2 cores, 1 are available: data threads share cores"


def test_an_mrr_below_the_rate_at_a_lower_load_is_explained() -> None:
    def rate(mean_pps: float, offered_pps: float) -> ReceiveRate:
        return ReceiveRate(offered_pps=offered_pps, receive_rates_pps=(mean_pps,), mean_pps=mean_pps, stdev_pps=None)

    verdict = judged(mrr=rate(106e3, 3e6), orr=rate(230e3, 1e6), mrr_trials=[trial_result(3e6, 900)] * 3)
    (line,) = [line for line in verdict.evidence_of("MRR") if "forwards less" in line]
    assert "106 kpps received of 3.00 Mpps, and 230 kpps of only 1.00 Mpps" in line
    level = judged(mrr=rate(228e3, 3e6), orr=rate(230e3, 1e6), mrr_trials=[trial_result(3e6, 900)] * 3)
    assert "forwards less" not in "\n".join(level.evidence)


WHY = "no guest boots with KVM here: it hangs for 20 s"


def test_emulated_guests_are_a_finding_with_the_reason() -> None:
    verdict = judge(planned("VSC", 1, 1), facts={"functions": {"accelerator": "tcg", "why": WHY}})
    assert VerdictKind.EMULATED in verdict.kinds
    assert f"virtual machines ran in software emulation (TCG): {WHY}" in verdict.evidence


@pytest.mark.parametrize("facts", [{}, {"functions": {}}, {"functions": {"accelerator": "kvm", "why": "it boots"}}])
def test_others_are_not(facts: dict[str, dict[str, str]]) -> None:
    assert VerdictKind.EMULATED not in judge(planned("VSC", 1, 1), facts=facts).kinds


PAIR = planned("CSC", 2, 1)
VSWITCH, NF, TG = VerdictKind.VSWITCH_BOUND, VerdictKind.NF_BOUND, VerdictKind.GENERATOR_BOUND


def loss(owner: str, lost: int, cause: str = "queue", instance: int = 1) -> HopLoss:
    places = {
        "vswitch": ("csg1p1", "csv1p1"),
        "generator": ("csv1x1i2", "csg1p2"),
        "nf-1-1": ("csv1p1", "csn1x1i1"),
        "nf-2-1": ("csv2p1", "csn2x1i1"),
    }
    last, following = places[owner]
    if cause == "inside":
        last, following = following, f"{following[:-1]}2"
    return HopLoss(
        instance=instance, direction=Direction.FORWARD, last=last, next=following, owner=owner,
        cause=cause, lost=lost,  # type: ignore[arg-type]
    )  # fmt: skip


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
    # Many NFs that lose a little each are NFs all the same.
    assert kinds(loss("vswitch", 500), loss("nf-1-1", 400), loss("nf-2-1", 400)) == [NF, VSWITCH]


def text(*hops: HopLoss, **more: object) -> str:
    return "\n".join(finding.text for finding in found(*hops, **more))  # type: ignore[arg-type]


def test_evidence_names_owner_place_and_numbers() -> None:
    said = text(loss("nf-2-1", 900, "inside", 2), loss("nf-1-1", 100))
    assert "at 1.00 Mpps 1,000 of 500,000 packets were lost, 900 of them at nf-2-1" in said
    assert "900 in instance 2 forward were received at csn2x1i1 and not sent at csn2x1i2" in said
    assert "100 in instance 1 forward met a full receive queue at csn1x1i1" in said
    assert "10 of 1,010 packets were lost at nf-1-1" in text(loss("nf-2-1", 1000), loss("nf-1-1", 10))
    assert all(finding.numbers == ("NDR",) for finding in found(loss("vswitch", 9)))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([(0.98, 0.0)], "nf-1-1's data thread on CPU 3 (csn1x1i1) was busy for 98 % of the time\n"),
        ([(0.12, 0.0)], "had work for only 12 % of the time: packets are lost there by a"),
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


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        (
            (thread("nf-1-1", "csn1x1i1", 0.2, 0.75), thread("vswitch", "csv1p1", 0.7, 0.2)),
            "had work for 95 % of the time and ran for 20 %; the CPU had vswitch 70 %, nf-1-1 20 %: the place of the ",
        ),
        (
            (thread("nf-1-1", "csn1x1i1", 0.3), thread("vswitch", "csv1p1", 0.97, cpu=2)),
            "this contradicts the CPU time of threads: vswitch's data thread on CPU 2 was busy for 97 %",
        ),
    ],
)
def test_threads_of_others_may_contradict(threads: tuple[ThreadLoad, ...], expected: str) -> None:
    assert expected in text(loss("nf-1-1", 1000), threads=threads)


def test_a_second_kind_limits_from_a_quarter_of_the_losses_and_an_owner_has_a_line_from_a_twentieth() -> None:
    assert kinds(loss("nf-1-1", 740), loss("vswitch", 260)) == [NF, VSWITCH]
    assert kinds(loss("nf-1-1", 760), loss("vswitch", 240)) == [NF]
    assert "60 of them at nf-2-1" in text(loss("nf-1-1", 940), loss("nf-2-1", 60))
    assert "40 of 1,000 packets were lost at nf-2-1" in text(loss("nf-1-1", 960), loss("nf-2-1", 40))


def test_four_owners_and_four_places_of_each_are_named_and_others_counted() -> None:
    owners = [loss("nf-1-1", 100).model_copy(update={"owner": f"nf-{number}-1"}) for number in range(1, 8)]
    *_, last = said = text(*owners).splitlines()
    assert len(said) == 5
    assert last == "300 of 700 packets were lost at nf-5-1, nf-6-1, nf-7-1"
    places = text(*(loss("nf-1-1", 100, instance=number) for number in range(1, 7)))
    assert places.count("full receive queue") == 4
    assert "instance 4" in places and places.endswith("; 2 more places")


def test_the_thread_of_a_trunk_is_that_of_all_its_vlans() -> None:
    topology = lab(discriminator="vlan", vswitch="linux_bridge", generator="ring", containers="linux_router")
    plan = make_plan(topology, Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=1), {})
    hop = loss("vswitch", 1000, instance=2).model_copy(update={"last": "csg2p1", "next": "csv2p1"})
    (finding, *_) = [
        row for row in found(hop, threads=(thread("vswitch", "csv0p1", 0.95),), plan=plan) if "CPU 3" in row.text
    ]
    assert finding.kind is VSWITCH
    assert "vswitch's data thread on CPU 3 (csv0p1) was busy for 95 % of the time" in finding.text


def test_threads_other_than_data_threads_are_distinguished_in_the_time_of_the_cpu() -> None:
    said = text(
        loss("vswitch", 1000),
        threads=(thread("vswitch", "csv1p1", 0.1, 0.9),),
        cpus=(CpuLoad(cpu=3, user=0.85, system=0.12, softirq=0.0, stolen=0.0),),
    )
    assert "ran for 10 %; the CPU had vswitch 10 %, other threads 87 %" in said


def test_without_threads_the_planned_cpus_are_reported() -> None:
    cpu = PAIR.cores.cpus("nf-1-1")[0]
    busy = CpuLoad(cpu=cpu, user=0.99, system=0.0, softirq=0.0, stolen=0.0)
    assert f"CPU {cpu}, planned for nf-1-1, was busy for 99 % of the time" in text(loss("nf-1-1", 9), cpus=(busy,))
    idle = busy.model_copy(update={"user": 0.2})
    assert "not for lack of CPU" in text(loss("nf-1-1", 9), cpus=(idle,))


def test_threads_that_poll_have_no_time() -> None:
    functions = tuple(nf.model_copy(update={"kind": NfKind("testpmd")}) for nf in PAIR.functions)
    polling = PAIR.model_copy(update={"functions": functions})
    said = text(loss("nf-1-1", 9), threads=(thread("nf-1-1", "csn1x1i1", 1.0),), plan=polling)
    assert "poll" in said
    assert "busy" not in said


@pytest.mark.parametrize(
    ("owner", "role", "polls"),
    [
        ("nf-1-1", "functions", True),
        ("nf-1-1", "vswitch", False),
        ("vswitch", "vswitch", True),
        ("vswitch", "functions", False),
    ],
)
def test_a_vpp_polls_where_its_own_driver_says_so(owner: str, role: str, polls: bool) -> None:
    functions = tuple(nf.model_copy(update={"kind": NfKind("vpp")}) for nf in PAIR.functions)
    plan = PAIR.model_copy(update={"functions": functions})
    place = {"nf-1-1": "csn1x1i1", "vswitch": "csv1p1"}[owner]
    facts = {role: {DATA_THREADS: POLL}}
    said = text(loss(owner, 9), threads=(thread(owner, place, 1.0),), plan=plan, facts=facts)
    assert (f"{owner}'s data threads poll" in said) is polls
    assert ("was busy for 100 %" in said) is not polls


def test_cpus_of_another_machine_are_other_cpus() -> None:
    """CPU 3 of DUT2 does not share CPU 3 of DUT1, and of DUT2 no time of CPUs is known."""
    plan = make_plan(lab(2), Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), {})
    here = loss("nf-1-1", 1000)
    there = here.model_copy(update={"owner": "nf-1-2", "next": "csn1x2i1", "last": "csv1p3"})
    own = thread("nf-1-1", "csn1x1i1", 0.2, 0.75)
    foreign = thread("vswitch-2", "csv1p3", 0.7).model_copy(update={"machine": "DUT2"})
    busy = CpuLoad(cpu=plan.cores.cpus("nf-1-2")[0], user=0.99, system=0.0, softirq=0.0, stolen=0.0)
    plan = plan.model_copy(
        update={"functions": tuple(nf.model_copy(update={"kind": NfKind("linux_router")}) for nf in plan.functions)}
    )
    said = text(here, threads=(own, foreign), plan=plan)
    assert "the CPU had nf-1-1 20 %:" in said
    assert "vswitch-2 70 %" not in said
    assert "was busy for" not in text(there, cpus=(busy,), plan=plan)
    assert "was busy for 99 %" in text(there, cpus=(busy.model_copy(update={"machine": "DUT2"}),), plan=plan)


def test_the_vswitch_of_a_second_dut_is_a_vswitch() -> None:
    assert kinds(loss("vswitch", 10).model_copy(update={"owner": "vswitch-2"})) == [VSWITCH]
