"""What a night measures against a planted truth: falls are confirmed, and intervals narrow more than by turns."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from statistics import fmean

import pytest

from csit_utils.analysis.night import NightKey, NightPlan, NightReason, NightRules, NightTest, known_tests, plan_night
from csit_utils.analysis.trends.trend import trends
from csit_utils.dataset.rows import TestRow
from tests.unit.csit_utils.histories import FIRST, nights, row

CELLS, NIGHTS, LEVEL, FALL, BUDGET_S, TOOK_S = range(1, 31), 12, 5e6, 0.88, 4 * 3600.0, 300.0
FALLEN, UNSEEN, NOISY = {1, 2, 3}, {4, 5, 6}, set(range(7, 15))
"""Cells that fell in the last night, that were not measured for a week, and whose rates vary by 6 %; all by 0.3 %."""


def noise_of(cell: int) -> float:
    return 0.06 if cell in NOISY else 0.003


def key_of(each: TestRow) -> NightKey:
    return NightKey("csc-ndrpdr", each.test_name, "ladder")


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
    tests = [NightTest(key, f"CSC {cell}x1", key.name, TOOK_S) for key, cell in names.items()]
    known = known_tests((key_of(each), each) for each in rows)
    return plan_night(tests, known, BUDGET_S, FIRST + timedelta(days=NIGHTS), NightRules())


def width(rows: list[TestRow]) -> float:
    """Mean half-width of the intervals of the noisy cells."""
    known = known_tests((key_of(each), each) for each in rows)
    cells = {key_of(each): each.nf_chains for each in rows}
    return fmean(about.half_width(about.count) or 1.0 for key, about in known.items() if cells[key] in NOISY)


@pytest.mark.slow
def test_the_measurements_of_a_night_are_those_that_the_planted_truth_needs() -> None:
    suspected, strays, confirmed, narrower, seeds = 0, 0, 0, 0, 20
    for seed in range(seeds):
        before = history(seed)
        plan = planned(before)
        assert plan.seconds <= BUDGET_S
        cells = {line.test.key: int(line.test.title.split()[1].split("x")[0]) for line in plan.lines}
        of = {reason: [cells[line.test.key] for line in plan.lines if line.reason is reason] for reason in NightReason}
        suspected += len(FALLEN & set(of[NightReason.SUSPECTED]))
        strays += len(set(of[NightReason.SUSPECTED]) - FALLEN)
        assert set(of[NightReason.UNSEEN]) == UNSEEN - set(of[NightReason.SUSPECTED]), "each is measured once"
        assert set(of[NightReason.UNCERTAIN]) <= NOISY | UNSEEN, "the levels of all others are settled"
        chosen = [cells[line.test.key] for line in plan.lines]
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
