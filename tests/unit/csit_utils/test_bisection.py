"""Bisection under noise, on histories that are not the model; and from a step that a gate called."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from csit_utils.analysis.bisection import Beliefs, BisectionAnswer, BisectionQuestion, look
from csit_utils.analysis.comparisons.comparison import compare
from csit_utils.analysis.comparisons.gate import decide
from csit_utils.analysis.trends.trend import trends
from csit_utils.bisection.spec import (
    CALLED_STEPS,
    BisectionSpec,
    CalledStep,
    GitRange,
    OrderedList,
    narrowed,
    write_steps,
)
from csit_utils.cli import make_app
from csit_utils.commands.results.gate import _called, _is_new
from csit_utils.commands.results.trend import _line as line_of_trend
from tests.unit.csit_utils.histories import nights


def run(
    levels: Sequence[float], question: BisectionQuestion, skipped: frozenset[int] = frozenset()
) -> tuple[Beliefs, list[int]]:
    """Measure a history without chance; what is found, and the revisions in the order of measurement."""
    values: dict[int, list[float]] = {}
    order: list[int] = []
    while (found := look(values, skipped, question)).next is not None:
        seen = values.setdefault(found.next, [])
        seen.append(levels[found.next] + (-0.001 if len(seen) % 2 else 0.001))
        order.append(found.next)
    return found, order


def places(found: Beliefs) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in found.culprits]


def test_a_change_is_found_with_a_few_observations_of_a_few_revisions() -> None:
    found, order = run([0.0] * 37 + [-0.05] * 27, BisectionQuestion(64))
    assert (found.answer, places(found)) == (BisectionAnswer.CULPRIT, [(37, 37)])
    assert found.probability >= 0.99 and found.culprits[0].probability >= 0.99
    assert len(order) < 24 and order[:2] == [0, 63]
    for number, level in found.levels.items():
        assert level.mean == pytest.approx(0.0 if number < 37 else -0.05, abs=0.01)
        assert 0 <= level.stdev < 0.01


@pytest.mark.parametrize(
    ("levels", "change", "culprits"),
    [
        ([0.0] * 10 + [-0.05] * 8 + [-0.1] * 14, 0.0, [10, 18]),
        ([0.0] * 10 + [-0.15] * 8 + [-0.1] * 14, 0.0, [10, 18]),
        ([0.0] * 10 + [0.06] * 8 + [-0.1] * 14, 0.0, [10, 18]),
        ([0.0, -0.1], 0.0, [1]),
        ([0.0] * 16, 0.0, []),
        ([0.0] * 8 + [-0.004] * 8, 0.03, []),  # a change below the least change
    ],
)
def test_none_one_or_two_changes_are_as_many_culprits(levels: list[float], change: float, culprits: list[int]) -> None:
    question = BisectionQuestion(len(levels), change=change) if change else BisectionQuestion(len(levels))
    found, order = run(levels, question)
    answers = (BisectionAnswer.NOT_HERE, BisectionAnswer.CULPRIT, BisectionAnswer.TWO_CULPRITS)
    assert (found.answer, places(found)) == (answers[len(culprits)], [(place, place) for place in culprits])
    assert culprits or set(order) == {0, len(levels) - 1}


def test_revisions_that_cannot_be_measured_are_named_with_the_culprit() -> None:
    found, order = run([0.0] * 6 + [-0.1] * 10, BisectionQuestion(16), skipped=frozenset({5, 6, 7}))
    assert (found.answer, places(found)) == (BisectionAnswer.CULPRIT, [(5, 8)])
    assert not {5, 6, 7} & set(order)


def test_it_ends_undecided_with_the_most_probable_place() -> None:
    found, order = run([0.0] * 20 + [-0.05] * 12, BisectionQuestion(32, most=5))
    assert (found.answer, len(order)) == (BisectionAnswer.UNDECIDED, 5)
    assert found.culprits[0].first <= 20 <= found.culprits[0].last


STEP = CalledStep(
    cell="CSC 2x1 1c vswitch-1c", frame="IMIX", metric="PDR", change=-0.08,
    good="VPP 26.06-rc0~12-g0123abcd", bad="VPP 26.10-rc0~57-gc3313a2d0",
)  # fmt: skip
SPEC = {
    "source": {"git": "/srv/vpp", "good": "v26.06", "bad": "master"},
    "install": ["./install", "{revision}"],
    "topology": "topologies/sim.yaml",
    "cell": "CSC 1x1 1c",
}


def test_a_git_range_gets_the_commits_of_the_versions() -> None:
    found = narrowed(BisectionSpec.model_validate(SPEC), [STEP])
    assert isinstance(found.source, GitRange)
    assert (found.source.good, found.source.bad) == ("0123abcd", "c3313a2d0")
    assert (found.cell, found.frame, found.metric) == (STEP.cell, "IMIX", "PDR")


def test_a_list_of_versions_is_cut_to_those_between() -> None:
    spec = BisectionSpec.model_validate(SPEC | {"source": {"versions": ["1.0", "1.1", "1.2", "1.3"]}})
    step = STEP.model_copy(update={"good": "OVS 1.1", "bad": "OVS 1.3"})
    found = narrowed(spec, [step])
    assert isinstance(found.source, OrderedList)
    assert found.source.versions == ("1.1", "1.2", "1.3")
    with pytest.raises(ValueError, match=r"version 2\.0 is not in the list"):
        narrowed(spec, [step.model_copy(update={"bad": "OVS 2.0"})])


def test_equal_versions_and_a_metric_of_another_study_are_refused() -> None:
    spec = BisectionSpec.model_validate(SPEC)
    with pytest.raises(ValueError, match="the change is elsewhere"):
        narrowed(spec, [STEP.model_copy(update={"bad": STEP.good})])
    with pytest.raises(ValueError, match="has no step"):
        narrowed(spec, [STEP.model_copy(update={"metric": "kept-in-event"})])


def test_what_a_gate_writes_can_be_read(tmp_path: Path) -> None:
    before = nights(10, lambda _: 5e6, version="VPP 26.06")
    after = nights(11, lambda _: 4e6, version="VPP 26.10")[-1:]
    found = decide(compare(before, after), after)
    write_steps(tmp_path / "steps.json", map(_called, found.fallen))
    steps = CALLED_STEPS.validate_json((tmp_path / "steps.json").read_bytes())
    assert {step.metric for step in steps} == {"NDR", "PDR"}
    assert steps[0].cell == "CSC 1x1 1c vswitch-1c"
    assert (steps[0].good, steps[0].bad, steps[0].frame) == ("VPP 26.06", "VPP 26.10", "64B")


@pytest.mark.parametrize(("fallen_nights", "is_new"), [(1, True), (2, False), (3, False)])
def test_a_fall_is_new_in_its_first_night_only(fallen_nights: int, *, is_new: bool) -> None:
    rows = nights(15, lambda night: 4.6e6 if night >= 15 - fallen_nights else 5e6)
    found = decide(compare(rows[:-1], rows[-1:]), rows[-1:])
    assert [_is_new(each) for each in found.fallen] == [is_new] * 2


def test_the_command_lists_the_revisions_between_the_versions(tmp_path: Path) -> None:
    spec = SPEC | {"source": {"versions": ["1.0", "1.1", "1.2", "1.3"]}}
    tmp_path.joinpath("spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    step = STEP.model_copy(update={"good": "OVS 1.1", "bad": "OVS 1.2"})
    tmp_path.joinpath("steps.json").write_text(f"[{step.model_dump_json()}]", encoding="utf-8")
    argv = ["bisect", str(tmp_path / "spec.yaml"), "--step", str(tmp_path / "steps.json"), "--list"]
    done = CliRunner().invoke(make_app(argv), argv)
    assert done.output.splitlines() == ["0\t1.1", "1\t1.2"]


def test_trend_names_what_changed_with_a_step() -> None:
    rows = nights(8, lambda _: 5e6, version="VPP 26.06") + nights(14, lambda _: 4e6, version="VPP 26.10")[8:]
    lines = [line_of_trend(found, {}) for found in trends(rows) if found.steps]
    assert lines and all("VPP 26.06 → VPP 26.10" in line.texts for line in lines)
