"""Two selections side by side: what may be compared, change, interval, outcome, gate, and the published figures."""

import json
from collections import Counter
from dataclasses import replace
from math import exp, inf, log, sqrt
from pathlib import Path
from random import Random
from statistics import stdev
from typing import Any

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, median_abs_deviation, t
from typer.testing import CliRunner

from csit_utils.analysis.cells import CellFigure, figures
from csit_utils.analysis.comparisons.comparability import Difference, environment_differences, likeness, without_bounds
from csit_utils.analysis.comparisons.comparison import (
    FEWEST_CELLS,
    CellSide,
    Change,
    Decision,
    JudgedChange,
    Method,
    Outcome,
    SpreadRatio,
    compare,
    decide,
    judge,
    judge_sides,
    side,
)
from csit_utils.analysis.grouping import Series, all_series, series_of
from csit_utils.cli import make_app
from csit_utils.commands.results.gate import junit_xml
from csit_utils.dataset.goal_words import ONE_WAY, GoalWords, goal_text, mrr_words, profile_text, read_goal
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.reference import FDIO_2019, names, reference_items
from csit_utils.dataset.rows import MRR, NDR, OWN, PDR, TestRow
from csit_utils.studies.density.analysis.density import matrices
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.search.profiles import LADDER, QUICK
from tests.unit.csit_utils.builders import CSC, ENVIRONMENT, goal_result, result
from tests.unit.csit_utils.builders import PDR as PDR_GOAL
from tests.unit.csit_utils.histories import nights, row
from tests.unit.csit_utils.robot_output import write_output_xml

RATE = 5e6


def runs(rates: list[float], cell: tuple[str, int, int] = ("CSC", 1, 1), **changes: Any) -> list[TestRow]:
    """Tests of one cell without a search's width, so that figures are those given."""
    return [row(rate, night, cell=cell, ndr_lower_pps=None, ndr_upper_pps=None, pdr_upper_pps=rate, **changes)
            for night, rate in enumerate(rates)]  # fmt: skip


def pdr(a: list[TestRow], b: list[TestRow], **options: bool) -> Change:
    (found,) = (each for each in compare(a, b, **options).changes if each.metric == PDR)
    return found


def test_several_runs_are_judged_by_welch() -> None:
    """Means 20 and 22, variances 4 and 4/3, 5 and 4 runs: t is 1.88 with 6.54 degrees of freedom."""
    found = pdr(runs([18.0, 18.0, 20.0, 22.0, 22.0]), runs([21.0, 21.0, 23.0, 23.0]))
    error = sqrt(4 / 5 + 4 / 3 / 4)
    freedom = error**4 / ((4 / 5) ** 2 / 4 + (1 / 3) ** 2 / 3)
    assert found.method is Method.RUNS
    assert found.change == pytest.approx(0.1)
    assert found.probability == pytest.approx(2 * t.sf(2 / error, freedom), abs=0.002)
    assert (found.low + found.high) / 2 == pytest.approx(found.change)
    assert found.outcome is Outcome.NO_CHANGE


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, held = Random(1), 0
    for _ in range(300):
        a, b = ([rng.gauss(rate, 0.01 * RATE) for _ in range(4)] for rate in (RATE, 0.97 * RATE))
        found = pdr(runs(a), runs(b))
        held += found.low <= -0.03 <= found.high
    assert 0.92 <= held / 300 <= 0.98


@pytest.mark.parametrize(
    ("factor", "outcome"), [(0.98, Outcome.REGRESSION), (1.02, Outcome.PROGRESSION), (0.997, Outcome.CANNOT_TELL)]
)
def test_one_run_on_either_side_is_judged_by_bounds_only(factor: float, outcome: Outcome) -> None:
    found = pdr([row(RATE)], [row(factor * RATE)])
    assert (found.method, found.outcome, found.probability) == (Method.BOUNDS, outcome, None)
    assert (found.low < 0 < found.high) is (outcome is Outcome.CANNOT_TELL)


PLACES = [("CSC", chains, nodes) for chains in (1, 2, 4) for nodes in (1, 2, 4, 6)]


def one_run(rng: Random, rates: dict[tuple[str, int, int], float] | None = None) -> list[TestRow]:
    """A run of twelve cells whose rates vary by 1 % from run to run."""
    factors = rates or {}
    return [row(rng.gauss(1.0, 0.01) * RATE * factors.get(cell, 1.0), cell=cell) for cell in PLACES]


def test_single_runs_of_many_cells_are_judged_by_how_differently_cells_changed() -> None:
    rng = Random(5)
    fallen = {PLACES[3]: 0.85}
    found = [each for each in compare(one_run(rng), one_run(rng, fallen)).changes if each.metric == PDR]
    assert {each.method for each in found} == {Method.SPREAD}
    assert [each.outcome is Outcome.REGRESSION for each in found] == [
        (each.a.series.service_type, *each.dimensions) == PLACES[3] for each in found
    ]
    everything = compare(one_run(rng), one_run(rng, dict.fromkeys(PLACES, 0.9)))
    assert {each.outcome for each in everything.changes} == {Outcome.REGRESSION}


@pytest.mark.slow
def test_single_runs_that_differ_by_noise_only_are_seldom_called_changed() -> None:
    """Bounds are 0.5 % apart and runs 1 %: bounds alone would call most of them."""
    rng, called = Random(7), 0
    for _ in range(100):
        called += bool(compare(one_run(rng), one_run(rng)).of(Outcome.REGRESSION, Outcome.PROGRESSION))
    assert called <= 12


def test_unlike_figures_are_compared_only_on_request_and_never_judged() -> None:
    measured, simulated = nights(3, lambda _: RATE), nights(3, lambda _: 0.5 * RATE, world="sim", simulated=True)
    found = pdr(measured, simulated)
    assert found.outcome is Outcome.UNLIKE and any("simulated" in remark for remark in found.remarks)
    assert pdr(measured, simulated, insist=True).outcome is Outcome.REGRESSION
    decision = gate(measured, simulated)
    assert (decision.judged, len(decision.unjudged)) == (0, 2)
    assert all("simulated" in reason and "overlap" not in reason for reason in reasons(decision).values())


def test_the_same_testbed_is_compared_with_itself_and_a_lone_one_with_the_other() -> None:
    both = [*nights(3, lambda _: RATE), *nights(3, lambda _: 2 * RATE, testbed="lab-b")]
    changes = [each for each in compare(both, both).changes if each.metric == PDR]
    assert [each.change for each in changes] == [0.0, 0.0]
    other = pdr(nights(3, lambda _: RATE), nights(3, lambda _: 2 * RATE, testbed="lab-b"))
    assert other.change > 0.9
    assert other.outcome is Outcome.HIGHER, "another testbed is no progression"


def test_probabilities_are_adjusted_for_how_many_cells_there_are() -> None:
    """Of a hundred cells some differ by chance when looked at alone; one of a hundred and one fell."""
    a, b = (
        [each for chains in range(1, 101) for each in nights(4, lambda _: RATE, bed, ("CSC", chains, 1))]
        + nights(4, lambda _, rate=rate: rate, bed, ("CSC", 101, 1))
        for bed, rate in (("lab-a", RATE), ("lab-b", 0.7 * RATE))
    )
    changes = compare(a, b).changes
    expected = false_discovery_control([each.probability for each in changes])
    assert [each.adjusted for each in changes] == pytest.approx(list(expected))
    fell = {each.dimensions.instances for each in changes if each.outcome is not Outcome.NO_CHANGE}
    assert fell == {101}
    by_chance = [each for each in changes if each.probability <= 0.05 and each.dimensions.instances != 101]
    remarked = [each for each in changes if any("among this many" in remark for remark in each.remarks)]
    assert by_chance and remarked == by_chance


def test_a_gate_counts_what_fell_what_kept_and_what_it_could_not_judge() -> None:
    lost = ("CSC", 4, 1)
    baseline = [each for cell in (ONE, TWO, lost) for each in nights(6, lambda _: RATE, cell=cell)]
    candidate = [*nights(6, lambda _: 0.9 * RATE), *nights(6, lambda _: 1.1 * RATE, cell=TWO), row(None, cell=lost)]
    found = gate(baseline, candidate)
    assert {each.dimensions.instances for each in found.fallen} == {1}
    assert {each.dimensions.instances for each in found.kept} == {2}
    assert found.judged == 4
    assert [each.reason for each in found.unjudged] == ["the candidate's test ended with FAIL: no traffic at hop 2"] * 2
    tolerant = gate(baseline, candidate, tolerance=0.15)
    assert (tolerant.fallen, tolerant.judged) == ((), 4)


CHANGES = [-0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03, 0.5]
"""Logarithms of the ratios of eight cells; the last one has changed."""


def ratios(error: float = 0.0, changes: list[float] = CHANGES) -> list[SpreadRatio]:
    return [SpreadRatio(2e6, 2e6 * exp(change), error) for change in changes]


@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_a_change_is_held_against_the_spread_of_all_by_students_t(confidence: float) -> None:
    noise = float(median_abs_deviation(CHANGES, scale="normal"))
    assert noise == pytest.approx(0.02 * 1.4826, rel=1e-4)
    reach = t.ppf((1 + confidence) / 2, 7) * noise
    found = judge(ratios(), confidence)
    for change, one in zip(CHANGES, found, strict=True):
        assert (log(1 + one.low), log(1 + one.high)) == pytest.approx((change - reach, change + reach), abs=1e-6)
        assert one.probability == pytest.approx(2 * t.sf(abs(change) / noise, 7), rel=1e-3)
    assert found[-1].probability < 1e-5


def test_a_cells_own_error_counts_where_it_is_larger_than_the_spread() -> None:
    first, *others = ratios()
    found = judge([first._replace(error=0.1), *others], 0.95)
    assert found[0].probability == pytest.approx(2 * t.sf(0.03 / 0.1, 7))
    assert found[1:] == judge(ratios(), 0.95)[1:]
    assert judge([first._replace(error=0.001), *others], 0.95) == judge(ratios(), 0.95)


def test_too_few_cells_or_a_rate_of_zero_give_no_spread_and_cells_without_any_have_changed_or_have_not() -> None:
    assert len(CHANGES) == FEWEST_CELLS
    assert judge(ratios()[:-1], 0.95) is None
    for empty in ({"a_pps": 0.0}, {"b_pps": 0.0}):
        assert judge([*ratios(), ratios()[0]._replace(**empty)], 0.95) is None
    assert judge([*ratios(), SpreadRatio(0.5, 0.5, 0.0)], 0.95) is not None
    found = judge(ratios(changes=[0.0] * 7 + [0.1]), 0.95)
    assert found[0] == JudgedChange(0.0, 0.0, 1.0)
    assert found[-1].probability == 0.0
    assert found[-1].low == found[-1].high == pytest.approx(exp(0.1) - 1)


def mrr(mean: float, deviation: float | None, trials: int | None, **changes: Any) -> TestRow:
    return row(RATE, mrr_pps=mean, mrr_stdev_pps=deviation, mrr_trials=trials, test_type="MRR", **changes)


def sides(*rows: TestRow, metric: Measure = MRR) -> CellSide:
    ((cell, found),) = ((cell, found) for cell, found in figures(rows).items() if cell.metric == metric)
    return side(cell, found)


def series() -> Series:
    return next(iter(figures([row(RATE)]))).series


@pytest.mark.parametrize(("trials", "quantile"), [(None, 12.706), (1, 12.706), (2, 12.706), (10, 2.262)])
def test_a_mean_of_trials_lies_in_students_interval_of_95_percent(trials: int | None, quantile: float) -> None:
    """The quantiles are those of printed tables, for one degree of freedom less than trials; the least is one."""
    found = sides(mrr(8e6, 1e4, trials))
    reach = quantile * 1e4 / (trials or 1) ** 0.5
    assert found.low_pps == pytest.approx(8e6 - reach, abs=3e-4 * reach)
    assert found.high_pps == pytest.approx(8e6 + reach, abs=3e-4 * reach)


def test_a_search_lies_between_its_bounds_two_runs_in_the_range_of_both_and_a_lower_limit_has_no_end() -> None:
    found = sides(row(RATE), metric=PDR)
    assert (found.low_pps, found.high_pps, found.stdev_pps) == (RATE, 1.005 * RATE, None)
    assert sides(row(RATE, pdr_upper_pps=None), metric=PDR).high_pps == inf, "nothing above was offered"
    found = sides(row(RATE), row(1.1 * RATE, night=1), metric=PDR)
    assert (found.low_pps, found.high_pps, found.mean_pps) == (RATE, 1.1 * RATE, pytest.approx(1.05 * RATE))
    assert found.stdev_pps == pytest.approx(stdev([RATE, 1.1 * RATE]))
    change = pdr([row(RATE)], [row(0.99 * RATE, pdr_upper_pps=None)])
    assert (change.high, change.outcome) == (inf, Outcome.CANNOT_TELL)
    assert any("lower bound" in remark for remark in change.remarks)


def test_runs_without_any_variation_differ_beyond_chance_or_not_at_all_and_by_rounding_not() -> None:
    same, other, nothing = (made(3, mean, 0.0, mean, mean) for mean in (RATE, 1.001 * RATE, 0))
    for one in (same, nothing):
        found = judge_sides(one, one)
        assert (found.change, found.low, found.high, found.probability) == (0, 0, 0, 1.0)
    assert judge_sides(same, other).probability == 0.0
    assert judge_sides(same, other)[1:4] == pytest.approx((0.001,) * 3)
    single = made(1, 0, None, 0, 0)
    assert judge_sides(single, single)[1:5] == (0, 0, 0, None)
    a, b = ([row(rate, night) for night in range(2)] for rate in (RATE, 0.998 * RATE))
    assert pdr(a, b).outcome is Outcome.NO_CHANGE


def made(runs: int, mean: float, deviation: float | None, low: float, high: float) -> CellSide:
    return CellSide(
        series(), (CellFigure(row(RATE), mean, high, 0.0),) * runs, mean, deviation, low, high, resolution_pps=0.0
    )


@pytest.mark.parametrize("runs", [2, 3, 8])
@pytest.mark.parametrize("single_first", [True, False])
def test_one_run_is_held_against_the_prediction_interval_of_several(*, runs: int, single_first: bool) -> None:
    one, several = made(1, 104, None, 104, 104), made(runs, 100, 2.0, 97, 103)
    found = judge_sides(one, several) if single_first else judge_sides(several, one)
    assert found.method is Method.ONE_RUN
    beyond = t.cdf(-4 / (2.0 * (1 + 1 / runs) ** 0.5), runs - 1)
    assert found.probability == pytest.approx(2 * beyond)
    assert judge_sides(several, several).method is Method.RUNS


ONE, TWO = ("CSC", 1, 1), ("CSC", 2, 1)


def gate(baseline: list[TestRow], candidate: list[TestRow], tolerance: float = 0.0) -> Decision:
    return decide(compare(baseline, candidate), candidate, tolerance)


def reasons(found: Decision) -> dict[str, str]:
    return {each.name: each.reason for each in found.unjudged}


def test_a_failure_is_the_reason_of_its_own_cell_only_and_an_error_of_junit() -> None:
    baseline = [*nights(3, lambda _: RATE), *nights(3, lambda _: RATE, cell=TWO)]
    candidate = [row(None), row(RATE, cell=("CSP", 1, 1))]
    found = reasons(gate(baseline, candidate))
    for place, why in {
        "CSC 1x1": "the candidate's test ended with FAIL: no traffic at hop 2",
        "CSC 2x1": "the candidate has no figure",
        "CSP 1x1": "the baseline has no figure",
    }.items():
        assert {reason for name, reason in found.items() if place in name} == {why}, place
    suite = fromstring(junit_xml(gate(baseline, [row(None), row(None, cell=TWO, status="SKIP")])))
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["4", "0", "2", "2"]
    assert all("1x1" in str(each.get("name")) for each in suite if each.find("error") is not None)


FAILED = "the candidate's test ended with FAIL"
NO_FIGURE = dict.fromkeys(("pdr_lower_pps", "pdr_upper_pps", "ndr_lower_pps", "ndr_upper_pps"))


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (row(None), f"{FAILED}: no traffic at hop 2"),
        (row(None, message="VPP died:\n core dumped\n"), f"{FAILED}: VPP died: core dumped"),
        (row(None, goals=""), f"{FAILED}: no traffic at hop 2"),  # a tool that measured nothing names no goals
        (row(None, goals="", profile="other"), "the candidate has no figure"),
        (row(RATE, **NO_FIGURE), "the candidate has no figure"),
    ],
)
def test_a_cell_that_is_not_judged_has_the_reason_in_one_line(candidate: TestRow, reason: str) -> None:
    assert set(reasons(gate(nights(3, lambda _: RATE), [candidate])).values()) == {reason}


def test_cells_of_several_testbeds_are_told_apart() -> None:
    a, b = (
        [each for testbed in ("lab-a", "lab-b") for each in nights(6, lambda _, rate=rate: rate, testbed=testbed)]
        for rate in (RATE, 0.5 * RATE)
    )
    found = gate(a, b)
    names = [each.name for each in found.fallen]
    assert sorted(name.split(" CSC ")[0] for name in names) == ["lab-a (lab)"] * 2 + ["lab-b (lab)"] * 2
    cases = [(each.get("name"), each.get("classname")) for each in fromstring(junit_xml(found)).findall("testcase")]
    assert [name for name, _ in cases] == names and len({*names}) == 4
    assert {group for _, group in cases} == {"lab-a.CSC", "lab-b.CSC"}
    assert all(each.name.startswith("CSC 1x1 ") for each in gate(a[:6], b[6:]).fallen), "of one it is not named"


def test_what_matters_most_comes_first_and_of_command_lines_and_nodes_what_differs() -> None:
    settings = {"governors": "performance", "mitigation of spectre_v2": "Mitigation: IBRS"}
    a = ENVIRONMENT.model_copy(update={"settings": settings})
    changes = {"hostname": "other", "kernel": "6.19.0", "git_dirty": False, "settings": dict.fromkeys(settings, "off")}
    b = a.model_copy(update={**changes, "versions": {**a.versions, "VPP": "26.10"}})
    found = environment_differences(a, b)
    paths = ("settings.governors", "settings.mitigation of spectre_v2", "kernel", "versions.VPP")
    assert [each.path for each in found] == [*paths, "git_dirty", "hostname"]
    assert [bool(each.effect) for each in found] == [True] * 4 + [False] * 2
    assert found[3] == Difference("versions.VPP", None, "26.10")
    b = ENVIRONMENT.model_copy(update={"command_line": f"{ENVIRONMENT.command_line} mitigations=off"})
    assert environment_differences(ENVIRONMENT, b) == (Difference("command_line", None, "mitigations=off"),)
    assert environment_differences(b, b) == ()
    a, other = (ENVIRONMENT.model_copy(update={"nodes": {"TG": each}}) for each in (ENVIRONMENT, b))
    assert environment_differences(a, other) == (Difference("nodes.TG.command_line", None, "mitigations=off"),)


def test_compare_lists_what_differs_between_the_machines_beside_a_figure_that_does(tmp_path: Path) -> None:
    tuned, other = (
        ENVIRONMENT.model_copy(update={"settings": {"governors": word}, "hostname": word})
        for word in ("performance", "powersave")
    )
    before = result(CSC, 2, 1, environment=tuned)
    after = result(CSC, 2, 1, environment=other, pdr=goal_result(PDR_GOAL, before.pdr.lower_pps / 2))
    a, b = (str(write_output_xml(tmp_path / f"{each.environment.hostname}.xml", [each])) for each in (before, after))
    done = CliRunner().invoke(make_app(["compare"]), ["compare", a, b, "--format", "json"], catch_exceptions=False)
    remarks = {row["metric"]: row["remarks"] for row in map(json.loads, done.stdout.splitlines())}
    assert "settings.governors: performance, B powersave" in remarks["PDR"]
    assert not any("governors" in text for text in remarks["NDR"]), "it is the same on both sides"
    assert not any("hostname" in text for text in remarks["PDR"]), "a name changes no rate"


OWN_ROW = row(1e6, testbed="t1", frame="IMIX (7x64, 4x570, 1x1518)", goals=profile_text(LADDER))
PEER = replace(
    OWN_ROW,
    origin="nfvbench",
    frame="IMIX (7x64, 4x594, 1x1518)",
    goals="; ".join(GoalWords(name, loss, 0.0, trial_s=60.0).text for name, loss in (("NDR", 1e-5), ("PDR", 0.001))),
)
ROWS = [item.row for item in reference_items(FDIO_2019)]


def test_rows_and_series_of_equal_definitions_are_alike_without_a_word_and_others_are_not() -> None:
    """Two runs of one profile, on whatever testbed, are compared."""
    found = likeness(OWN_ROW, replace(OWN_ROW, testbed="t2"), PDR)
    assert (found.alike, found.remarks) == (True, ())
    assert not likeness(OWN_ROW, replace(OWN_ROW, goals=profile_text(QUICK)), NDR).alike
    assert likeness(series_of(OWN_ROW), series_of(PEER), NDR) == likeness(OWN_ROW, PEER, NDR)
    assert likeness(OWN_ROW, PEER, NDR).remarks == ("A is a result of csit-density and B of nfvbench",)
    assert series_of(OWN_ROW) != series_of(replace(OWN_ROW, origin="nfvbench"))


LESS = LADDER.goals[0].model_copy(update={"relative_width": 0.001, "duration_sum_s": 60.0})


@pytest.mark.parametrize(
    ("changes", "metric", "values"),
    [
        ({"simulated": True}, MRR, [("measured", "simulated")]),
        ({"goals": f"{OWN_ROW.goals}; {ONE_WAY}", "frame": "64B"}, NDR, [("IMIX", "64B"), ("both", "one direction")]),
        ({"goals": None}, NDR, [("B does not say", "NDR")]),
        (vars(PEER), PDR, [("570", "594"), ("0.5 %", "0.1 %"), ("50 %", "0 %"), ("1 s", "60 s")]),
    ],
)
def test_every_difference_of_definition_has_its_own_sentence_with_both_values(
    changes: dict[str, Any], metric: Measure, values: list[tuple[str, str]]
) -> None:
    found = likeness(OWN_ROW, replace(OWN_ROW, **changes), metric).differences
    assert all(one in text and other in text for text, (one, other) in zip(found, values, strict=True)), found


@pytest.mark.parametrize(
    ("goals", "metric", "remarks"),
    [
        (
            GoalWords("PDR", 0.005, given_as="forwarded rate").text, PDR,
            ("length of its trials", "exceed ratio", "forwarded rate, which may be lower than the load by 0.5 %"),
        ),
        # Without loss the forwarded rate is the load.
        (GoalWords("NDR", 0.0, exceed_ratio=0.5, trial_s=1.0, given_as="forwarded rate").text, NDR, ()),
        (goal_text(LESS), NDR, ("bounds lie within 0.5 % in A and 0.1 % in B",)),
    ],
)  # fmt: skip
def test_an_unknown_setting_or_less_evidence_is_a_remark(goals: str, metric: Measure, remarks: tuple[str, ...]) -> None:
    """Unknown is not unlike, but remarked on."""
    found = likeness(OWN_ROW, replace(OWN_ROW, goals=goals), metric)
    assert found.alike and all(said in remark for said, remark in zip(remarks, found.remarks, strict=True))


@pytest.mark.parametrize(
    ("words", "low", "high"),
    [
        (GoalWords("PDR", 0.005, step_pps=0.2), 0.9, 1.1),
        (GoalWords("PDR", 0.005, relative_width=0.01), 1.0, 1.01),
        (GoalWords("PDR", 0.2, relative_width=0.01, given_as="forwarded rate"), 1.0, 1.2625),
        (GoalWords("PDR", 0.005), 1.0, inf), (GoalWords("NDR", 0.0, relative_width=0.01), 1.0, inf),
    ],
)  # fmt: skip
def test_a_figure_without_bounds_lies_where_its_definition_has_it(words: GoalWords, low: float, high: float) -> None:
    found = without_bounds(replace(OWN_ROW, goals=words.text), PDR, 1.0)
    assert found == pytest.approx((low, high))


@given(
    st.builds(
        GoalWords,
        name=st.sampled_from(["NDR", "PDR", "SOAK"]),
        loss_ratio=st.floats(0, 0.9999, allow_subnormal=False),
        exceed_ratio=st.none() | st.sampled_from([0.0, 0.125, 0.5]),
        relative_width=st.none() | st.sampled_from([0.005, 0.0001]),
        trial_s=st.none() | st.sampled_from([0.25, 1.0, 60.0]),
        given_as=st.none() | st.just("forwarded rate"),
        step_pps=st.none() | st.just(1e5),
    ),
    st.integers(1, 99),
    st.none() | st.sampled_from([0.5, 1.0, 12.0]),
)
def test_words_are_read_back_whatever_is_left_out(words: GoalWords, trials: int, trial_s: float | None) -> None:
    text = "; ".join([words.text, mrr_words(trials, trial_s), ONE_WAY])
    found = read_goal(text, words.name)
    assert found.loss_ratio == pytest.approx(words.loss_ratio, rel=1e-15)
    assert replace(found, loss_ratio=words.loss_ratio) == words
    assert read_goal(text, "MRR") == GoalWords("MRR", trial_s=trial_s)


def test_published_rows_say_so_have_the_cores_and_every_cell_of_the_slides_once() -> None:
    """19 cells with NF-1c and 23 with NF-0.5c fit on 28 cores, for each of three service types."""
    counted = Counter((row.service_type, row.nf_size) for row in ROWS)
    sizes = (("1c", 19), ("0.5c", 23))
    assert counted == {(kind, size): cells for kind in ("VSC", "CSC", "CSP") for size, cells in sizes}
    assert len({row.anchor for row in ROWS}) == len(ROWS) == 126
    assert len({(row.service_type, row.nf_size, row.nf_chains, row.nf_nodes) for row in ROWS}) == 126
    assert {(row.origin, row.world) for row in ROWS} == {("fdio-csit 1904 (published)", "published")}
    assert all("not measured here" in row.evidence for row in ROWS)
    assert names() == (FDIO_2019,)
    with pytest.raises(ConfigError, match="no reference set 'fdio-2020'; choose from fdio-2019"):
        reference_items("fdio-2020")
    for one in (item.row for item in reference_items(FDIO_2019)):
        per_nf = 1.5 if one.nf_size == "1c" else 1.0
        assert one.slide_cores == 2 + per_nf * one.nf_chains * one.nf_nodes <= 28


@pytest.mark.parametrize(
    ("service", "size", "place", "mpps"),
    [
        ("VSC", "1c", (1, 1), 4.6), ("VSC", "1c", (2, 1), 5.1), ("VSC", "1c", (4, 1), 4.6), ("VSC", "1c", (10, 1), 4.0),
        ("VSC", "1c", (1, 10), 0.9), ("CSC", "1c", (2, 4), 2.1), ("CSP", "1c", (1, 10), 6.6),
        ("VSC", "0.5c", (10, 2), 2.3), ("CSC", "0.5c", (6, 4), 1.8), ("CSP", "0.5c", (2, 10), 5.5),
    ],
)  # fmt: skip
def test_figures_are_as_printed(service: str, size: str, place: tuple[int, int], mpps: float) -> None:
    (series,) = (one for one in all_series(ROWS) if (one.service_type, one.nf_size) == (service, size))
    (matrix,) = matrices(ROWS, series)
    cell = matrix.cells[place]
    assert (matrix.metric, cell.value_pps, cell.upper_pps) == (NDR, mpps * 1e6, mpps * 1e6), "no bound was printed"


def test_ones_own_ndr_may_be_laid_beside_them_and_a_simulated_one_may_not() -> None:
    """The question is the same (no loss); the result says what the slides leave out."""
    published = ROWS[0]
    own = replace(published, origin=OWN, goals=profile_text(LADDER))
    found = likeness(own, published, NDR)
    assert found.alike and len(found.remarks) == 4
    assert not likeness(replace(own, simulated=True), published, NDR).alike
    assert not likeness(own, published, PDR).alike, "the slides print no PDR"


@pytest.mark.parametrize(
    ("own_pps", "outcome"),
    [
        ((4.56e6, 4.58e6), Outcome.CANNOT_TELL), ((4.62e6, 4.64e6), Outcome.CANNOT_TELL),
        ((4.72e6, 4.74e6), Outcome.LOWER), ((4.35e6, 4.48e6), Outcome.HIGHER),
    ],
)  # fmt: skip
def test_a_difference_below_the_printed_digit_means_nothing(own_pps: tuple[float, float], outcome: Outcome) -> None:
    """4.6 Mpps stands for 4.55 to 4.65."""
    own = replace(ROWS[0], origin=OWN, testbed="t1", goals=profile_text(LADDER), ndr_complete=True)
    own = replace(own, ndr_lower_pps=own_pps[0], ndr_upper_pps=own_pps[1])
    (change,) = compare([own], [ROWS[0]]).changes
    assert change.outcome is outcome
