"""The plan of a night: never too long, nothing forgotten, most pressing first; against a planted truth it is right."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from csit_utils.analysis.night import (
    MAX_REPEATS,
    Measurement,
    NightKey,
    NightPlan,
    NightReason,
    NightTest,
    StoredEvidence,
    key_of,
    known_tests,
    plan_night,
)
from csit_utils.analysis.trends.trend import trends
from csit_utils.cli import make_app
from csit_utils.commands.runs.night import why
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.paths import PROJECT
from tests.unit.csit_utils.histories import FIRST, nights, row
from tests.unit.csit_utils.study_records import chain_studied

NOW = datetime(2026, 11, 26, 22, 0, tzinfo=UTC)
OPENING_S = 3.0
RATE = 5e6

seconds = st.none() | st.floats(0.1, 5000)
abouts = st.builds(
    StoredEvidence,
    last_seen=st.floats(0, 60).map(lambda days: NOW - timedelta(days=days)),
    metric=st.sampled_from(["NDR", "PDR"]),
    count=st.integers(1, 30),
    spread=st.none() | st.floats(0.0001, 0.5),
    freedom=st.none() | st.integers(7, 40),
    suspected=st.none() | st.floats(-0.5, -0.01),
    suspect=st.just("PDR"),
    missing=st.integers(1, 2),
)

Offered = tuple[list[NightTest], dict[NightKey, StoredEvidence]]


@st.composite
def offers(draw: st.DrawFn) -> Offered:
    """Tests of two suites and of a study, some of them known."""
    tests, known = [], {}
    for number in range(draw(st.integers(0, 25))):
        suite = draw(st.sampled_from(["csc-ndrpdr", "csp-mrr", "outage"]))
        key = NightKey(suite, f"test {number}", "" if suite == "outage" else "ladder")
        refusal = draw(st.sampled_from(["", "", "", "needs 33 cores on NUMA 0, 28 available"]))
        tests.append(NightTest(key, f"{suite} {number}", str(key), draw(seconds), refusal))
        if draw(st.booleans()):
            known[key] = draw(abouts)
    return tests, known


def plan(offered: Offered, budget_s: float, opening_s: float = OPENING_S) -> NightPlan:
    return plan_night(*offered, budget_s, NOW, opening_s=opening_s)


def lines(plan: NightPlan) -> list[Measurement]:
    return [line for own in plan.runs.values() for line in own]


@given(offers(), st.floats(0, 20000))
def test_a_plan_never_exceeds_the_budget(offered: Offered, budget: float) -> None:
    found = plan(offered, budget)
    assert sum(line.test.seconds or 0.0 for line in lines(found)) + OPENING_S * len(found.runs) == pytest.approx(
        found.seconds
    )
    assert found.seconds <= budget


@given(offers(), st.floats(0, 20000))
def test_each_test_is_decided_once_and_each_run_has_it_once(offered: Offered, budget: float) -> None:
    found = plan(offered, budget)
    assert sorted(each.test.key for each in found.decisions) == sorted(test.key for test in offered[0])
    for each in found.decisions:
        planned = [line for line in lines(found) if line.test == each.test]
        assert planned == list(each.wanted[: each.planned])
        assert not each.wanted or not each.test.refusal
        assert not each.planned or each.test.seconds is not None
        assert why(each)
    assert all(len({line.test for line in own}) == len(own) for own in found.runs.values())


@given(offers(), st.floats(0, 20000), st.floats(1, 3))
def test_more_hours_give_nothing_up_but_for_the_more_pressing(offered: Offered, budget: float, factor: float) -> None:
    less, more = (
        {(line.test.key, line.repeat): line.urgency[:2] for line in lines(plan(offered, each))}
        for each in (budget, factor * budget)
    )
    gained, lost = (
        [urgency for key, urgency in one.items() if key not in other] for one, other in ((more, less), (less, more))
    )
    assert not lost or min(gained) <= min(lost)


@given(offers())
def test_a_night_without_an_end_measures_all_that_something_is_learned_from(offered: Offered) -> None:
    found = plan(offered, inf)
    assert all(each.planned == len(each.wanted) for each in found.decisions if each.test.seconds is not None)
    assert found.runs == plan(offered, found.seconds + 1e-3).runs


NEW, NOISY_TEST = (NightTest(NightKey("csc-mrr", name, "ladder"), name, name, 60.0) for name in ("new", "noisy"))
ONE_REPEAT_IS_OPEN = [NEW, NOISY_TEST], {NOISY_TEST.key: StoredEvidence(NOW, None, "MRR", 3, 0.02)}
"""There is time for the second repeat of one test in a run that another one opens, and not to open its first."""


@given(offers(), st.floats(0, 20000))
@example(ONE_REPEAT_IS_OPEN, 187.0)
def test_suspected_before_unseen_before_uncertain_and_repeats_in_order(offered: Offered, budget: float) -> None:
    found = plan(offered, budget)
    ranks = [list(NightReason).index(line.reason) for line in lines(found)]
    assert ranks == sorted(ranks)
    for each in found.decisions:
        repeats = [line.repeat for line in lines(found) if line.test == each.test]
        assert repeats == list(range(1, len(repeats) + 1))
        assert len(repeats) <= MAX_REPEATS


def one(known: StoredEvidence) -> list[Measurement]:
    """What is planned of a single test."""
    key = NightKey("Csc-Ndrpdr", "one", "ladder")
    test = NightTest(key, "CSC 1R1C", "Density.Csc-Ndrpdr.one", 60.0)
    return lines(plan(([test], {key: known}), 3600.0, 0.0))


def test_a_suspected_step_lacks_figures_and_an_interval_is_narrowed_until_it_is_narrow_enough() -> None:
    found = one(StoredEvidence(NOW, None, "PDR", 20, 0.01, None, -0.04, "PDR", 2))
    assert [(line.reason, line.score) for line in found] == [(NightReason.SUSPECTED, 0.04)] * 2
    known = StoredEvidence(NOW, metric="NDR", count=3, spread=0.02)
    found = one(known)
    # Student's t: 4.303 / sqrt(3), 3.182 / sqrt(4), 2.776 / sqrt(5), 2.571 / sqrt(6), 2.447 / sqrt(7) times 2 %.
    widths = [0.0497, 0.0318, 0.0248, 0.0210, 0.0185]
    assert [known.half_width(count) for count in range(5)] == pytest.approx(widths, abs=1e-4)
    assert [line.reason for line in found] == [NightReason.UNCERTAIN] * 4
    scores = [line.score for line in found]
    assert scores[0] == pytest.approx((0.0497 - 0.0318) * 60, abs=0.01)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("metric", ["PDR", ""])
def test_what_has_not_passed_for_a_week_is_measured_once_and_what_is_settled_is_left_out(metric: str) -> None:
    """Also where no figure of it is followed, as of a latency test beside one of PDR."""
    found = {} if not metric else {"metric": metric, "count": 20, "spread": 0.01}
    (old,) = one(StoredEvidence(NOW - timedelta(days=8), **found))  # type: ignore[arg-type]
    assert (old.reason, old.score) == (NightReason.UNSEEN, 8)
    assert not one(StoredEvidence(NOW - timedelta(days=6), **found))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "fell", "factor", "suspected"),
    [(20, 19, 0.88, -0.12), (6, 5, 0.8, -0.2), (6, 6, 1.0, None), (30, 20, 0.8, None)],
)
def test_a_fall_of_the_last_night_is_suspected_also_with_too_few_figures_for_a_trend(
    count: int, fell: int, factor: float, suspected: float | None
) -> None:
    (about,) = known_tests(nights(count, lambda night: RATE if night < fell else factor * RATE)).values()
    assert about.suspected == (pytest.approx(suspected, abs=0.02) if suspected else None)
    assert about.last_seen == FIRST + timedelta(days=count - 1, minutes=11)
    if count == 20:
        assert about.missing == 2
    if count == 30:
        assert (about.count, about.spread) == (10, pytest.approx(0.005, abs=0.003)), "of the present level"


def test_one_figure_has_the_spread_of_the_other_cells_or_none_and_the_duration_of_the_latest_that_passed() -> None:
    others = [each for cell in range(1, 9) for each in nights(5, lambda _: RATE, cell=("CSC", cell, 2))]
    alone = row(RATE, cell=("CSC", 1, 1))
    about = known_tests([*others, alone])[key_of(alone)]
    assert (about.count, about.freedom) == (1, 7)
    assert about.half_width() == pytest.approx(2.365 * 0.005, rel=0.5)
    assert known_tests([alone])[key_of(alone)].half_width() is None
    rows = [*nights(4, lambda night: RATE if night else None)]
    assert [each.seconds for each in known_tests(rows).values()] == [300.0]


def test_studies_without_figures_are_as_old_as_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, began = "Four Network Functions With A Planted Fault", datetime.now(UTC) - timedelta(days=1)
    times = {"started_at": began.isoformat(), "finished_at": (began + timedelta(minutes=7)).isoformat()}
    made = chain_studied(test_id=f"Characterization.Chains.{name}", test_name=name, **times)
    (tmp_path / "chains.json").write_text(made.model_dump_json(), encoding="utf-8")
    local = str(PROJECT / "topologies" / "local.yaml")
    options = ["--cells", "1x1", "--studies", "CHAINS", "--data", str(tmp_path), "--format", "json"]
    make_app(["night"])(["night", local, *options], standalone_mode=False)
    (found,) = (line for line in map(json.loads, capsys.readouterr().out.splitlines()) if name in line["test"])
    assert (found["reason"], found["seconds"]) == ("settled", 420)


CELLS, NIGHTS, LEVEL, FALL, BUDGET_S, TOOK_S = range(1, 31), 12, 5e6, 0.88, 4 * 3600.0, 300.0
FALLEN, UNSEEN, NOISY = {1, 2, 3}, {4, 5, 6}, set(range(7, 15))
"""Cells that fell in the last night, that were not measured for a week, and whose rates vary by 6 %; all by 0.3 %."""


def noise_of(cell: int) -> float:
    return 0.06 if cell in NOISY else 0.003


def history(seed: int) -> list[TestRow]:
    """All nights before."""
    return [
        each
        for cell in CELLS
        for each in nights(
            NIGHTS - 7 if cell in UNSEEN else NIGHTS,
            lambda night, cell=cell: LEVEL * (FALL if cell in FALLEN and night == NIGHTS - 1 else 1),  # type: ignore[misc]
            f"lab-{seed}",
            ("CSC", cell, 1),
            noise_of(cell),
        )
    ]


def measured(seed: int, cells: Sequence[int]) -> list[TestRow]:
    """Results of a night: one for each cell as often as it is named."""
    rng = Random(seed)
    return [
        row(
            LEVEL * (FALL if cell in FALLEN else 1) * rng.gauss(1, noise_of(cell)),
            NIGHTS,
            f"lab-{seed}",
            ("CSC", cell, 1),
            started_at=(FIRST + timedelta(days=NIGHTS, minutes=5 * number)).isoformat(),
            run=f"{number}",
            source=f"{number}",
        )
        for number, cell in enumerate(cells)
    ]


def planned(rows: list[TestRow]) -> NightPlan:
    names = {key_of(each): each.nf_chains for each in rows}
    tests = [NightTest(key, str(cell), key.name, TOOK_S) for key, cell in names.items()]
    known = known_tests(rows)
    return plan_night(tests, known, BUDGET_S, FIRST + timedelta(days=NIGHTS))


def width(rows: list[TestRow]) -> float:
    """Mean half-width of the intervals of the noisy cells."""
    known = known_tests(rows)
    cells = {key_of(each): each.nf_chains for each in rows}
    return fmean(about.half_width() or 1.0 for key, about in known.items() if cells[key] in NOISY)


@pytest.mark.slow
def test_the_measurements_of_a_night_are_those_that_the_planted_truth_needs() -> None:
    suspected, strays, confirmed, narrower, seeds = 0, 0, 0, 0, 20
    for seed in range(seeds):
        before = history(seed)
        plan = planned(before)
        assert plan.seconds <= BUDGET_S
        chosen = [int(line.test.title) for line in lines(plan)]
        of = {reason: [int(line.test.title) for line in lines(plan) if line.reason is reason] for reason in NightReason}
        suspected += len(FALLEN & set(of[NightReason.SUSPECTED]))
        strays += len(set(of[NightReason.SUSPECTED]) - FALLEN)
        assert set(of[NightReason.UNSEEN]) == UNSEEN - set(of[NightReason.SUSPECTED]), "each is measured once"
        assert set(of[NightReason.UNCERTAIN]) <= NOISY | UNSEEN, "the levels of all others are settled"
        after = [*before, *measured(seed, chosen)]
        falls = {
            trend.cell.dimensions.instances for trend in trends(after) if trend.steps and trend.steps[-1].change < 0
        }
        confirmed += len(FALLEN & falls)
        by_turns = [CELLS[number % len(CELLS)] for number in range(len(chosen))]
        narrower += width(after) < width([*before, *measured(seed, by_turns)])
    assert suspected == confirmed == len(FALLEN) * seeds
    assert strays <= 0.02 * len(CELLS) * seeds
    assert narrower >= 0.9 * seeds
