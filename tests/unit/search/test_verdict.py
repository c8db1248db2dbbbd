"""A verdict names what limits the number, and never comes without evidence."""

import pytest

from resources.libraries.python.model.findings.evidence import HopLoss, LocatedLosses
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.result import Affinity, ReceiveRate, Verdict, VerdictKind
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.findings.verdict import judge, verdict_text
from resources.libraries.python.search.profiles import LADDER
from resources.libraries.python.search.throughput import SearchOutcome, search_throughput
from tests.unit.planning.labs import lab
from tests.unit.search.search_fakes import FRAME, LINE_PPS, Bench, capped, trial_result
from tests.unit.search.wired_plans import planned

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
