"""Acknowledged steps: by the command on histories with planted steps, and where they are the baseline."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.analysis.night import known_tests
from csit_utils.analysis.trends.steps import MIN_RUNS, Step
from csit_utils.analysis.trends.trend import MAX_SHIFT, TrendState, matched, step_near, trends
from csit_utils.dataset.ledger import AcknowledgedStep, ledger_path, read_ledger, write_ledger
from csit_utils.dataset.rows import PDR
from csit_utils.report.pages import trend as trend_page
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import MAX_ACKNOWLEDGED
from tests.simulated.in_process import Ended, csit, passed
from tests.unit.csit_utils.builders import CSC, NDR, goal_result, result
from tests.unit.csit_utils.builders import PDR as PDR_GOAL
from tests.unit.csit_utils.histories import FIRST, Rows, nights
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.examples import share

NIGHTS, DOWN, BACK, AGAIN = 48, 12, 24, 36
CAUSE, LINK = 'VPP 26.10 <checks> "more"', "https://example.org/1?a=1&b='2"


def write_history(folder: Path, factor: Callable[[int], float], count: int = NIGHTS) -> Path:
    """Write an output of each night; the factor multiplies the rates of CSC 1x1, those of CSC 2x1 never change."""
    rng = Random(1)
    for night in range(count):
        begun = FIRST + timedelta(days=night)
        (place := folder / f"{begun:%Y-%m-%d}").mkdir(parents=True)
        made = []
        for chains in (1, 2):
            rate = 5e6 * (factor(night) if chains == 1 else 1.0) * rng.gauss(1, 0.003)
            goals = {"ndr": goal_result(NDR, 0.9 * rate), "pdr": goal_result(PDR_GOAL, rate)}
            started_at = (begun + timedelta(minutes=chains)).isoformat()
            made.append(result(CSC, chains, 1, histograms=False, trials=(), started_at=started_at, **goals))
        write_output_xml(place / "output.xml", made)
    return folder


def day(night: int) -> str:
    return f"{FIRST + timedelta(days=night):%Y-%m-%d}"


def acknowledged(history: Path, night: int, metric: str = "PDR", cause: str = CAUSE) -> Ended:
    return passed("acknowledge", history, "CSC 1x1", metric, "--since", day(night), "--cause", cause, "--link", LINK)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of nights with one fall."""
    return write_history(tmp_path_factory.mktemp("fall") / "history", lambda night: 0.9 if night >= DOWN else 1.0, BACK)


@pytest.fixture
def history(written: Path) -> Path:
    """The same without acknowledged steps."""
    ledger_path(written).unlink(missing_ok=True)
    return written


def states(history: Path) -> dict[tuple[int, str], dict[str, object]]:
    found = passed("trend", history, "--all", "--format", "json").objects
    return {(each["nf_chains"], each["metric"]): each for each in found}


@pytest.mark.slow
def test_an_acknowledged_step_is_no_regression_and_others_stay(history: Path, tmp_path: Path) -> None:
    before = states(history)
    assert [before[1, metric]["state"] for metric in ("NDR", "PDR")] == ["regression"] * 2
    (made,) = csit(
        "acknowledge", history, "csc 1x1", "pdr", "--since", day(DOWN), "--cause", CAUSE, "--format", "json"
    ).objects
    assert (made["metric"], made["since"][:10], made["link"]) == ("PDR", day(DOWN), None)
    after = states(history)
    assert after[1, "PDR"]["state"] == "acknowledged"
    assert after[1, "PDR"]["steps"][0]["acknowledged"]["cause"] == CAUSE  # type: ignore[index]
    assert after[1, "NDR"] == before[1, "NDR"]
    passed("trend", history, "--steps", tmp_path / "steps.json")
    assert [each["metric"] for each in json.loads((tmp_path / "steps.json").read_bytes())] == ["NDR"]
    assert acknowledged(history, DOWN, cause="another").status == 0, "the same step again"
    assert [step.cause for step in read_ledger(history).steps] == ["another"]
    passed("acknowledge", history, "CSC 1R1C", "PDR", "--withdraw")
    assert states(history) == before


@pytest.mark.slow
def test_a_baseline_before_the_step_is_none(history: Path) -> None:
    for metric in ("NDR", "PDR"):
        acknowledged(history, DOWN, metric)
    old = ("gate", f"night={day(0)}..{day(DOWN - 1)}", f"night={day(DOWN + 1)}..{day(BACK)}", "--data", history)
    done = csit(*old, "--require", "4")
    assert (done.status, "2 cells judged, 4 required: 0 with" in done.stdout) == (1, True), "fewer cells than required"
    assert f"since the acknowledged step of {day(DOWN)} ({CAUSE})" in done.stdout
    ledger_path(history).unlink()
    assert "4 cells judged: 2 with" in csit(*old).stdout


@pytest.mark.slow
def test_a_regression_that_both_levels_hide_is_called_since_the_step(tmp_path: Path) -> None:
    def factor(night: int) -> float:
        return 1.0 if night < DOWN else 0.9 if night < BACK - 1 else 0.86

    history = write_history(tmp_path / "history", factor, BACK)
    words = ("gate", "before=16", history / day(BACK - 1) / "output.xml", "--data", history)
    assert csit(*words).status == 0
    acknowledged(history, DOWN)
    done = csit(*words)
    assert done.status == 1
    assert [line.split("\t")[0] for line in done.stdout.splitlines()[:-1]] == ["fell"]


@pytest.mark.slow
def test_a_step_back_and_the_same_step_again_are_told(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", lambda night: 0.9 if DOWN <= night < BACK or night >= AGAIN else 1.0)
    acknowledged(history, DOWN)
    found = states(history)[1, "PDR"]
    relations = [step["relation"] for step in found["steps"]]  # type: ignore[attr-defined]
    step = f"the step of {day(DOWN)} ({CAUSE})"
    assert relations == ["", f"back to the level before {step}", f"{step} came back"]
    assert found["state"] == "regression", "it came back without an explanation"
    for night in (BACK, AGAIN):
        acknowledged(history, night)
    assert states(history)[1, "PDR"]["state"] == "acknowledged"
    assert len(passed("acknowledge", history, "--format", "json").objects) == 3
    gone = csit("acknowledge", history, "CSC", "PDR", "--since", day(AGAIN), "--withdraw", "--format", "json").objects
    assert [each["since"][:10] for each in gone] == [day(AGAIN)]
    assert states(history)[1, "PDR"]["state"] == "regression"


SINCE = ("CSC 1x1", "PDR", "--since")
CAUSED = ("--cause", "x")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("CSC 1x1", "PDX", "--since", day(DOWN), *CAUSED), "no metric 'PDX'; choose from .*NDR.*PDR"),
        ((*SINCE, day(2), *CAUSED), rf"no step .* of {day(2)}: .* has {day(DOWN)} \("),
        (("CSC 2x1", "PDR", "--since", day(DOWN), *CAUSED), r"CSC 2x1 .* has no step \(steady\)"),
        ((*SINCE, "soon", *CAUSED), "'soon': expected a date"),
        ((*SINCE, day(DOWN), "--cause", "a\nb"), "cause: expected one line"),
        ((*SINCE, day(DOWN), *CAUSED, "--link", "javascript:x"), "begins with https"),
        (("CSC 1x1", "PDR", "--withdraw"), "no step of 'CSC 1x1' PDR"),
    ],
    ids=lambda each: " ".join(each)[:40] if isinstance(each, tuple) else "",
)
@pytest.mark.slow
def test_what_cannot_be_acknowledged_is_one_sentence(history: Path, words: tuple[str, ...], reason: str) -> None:
    ended = csit("acknowledge", history, *words)
    assert (ended.status, len(ended.stderr.strip().splitlines())) == (2, 1)
    assert re.search(reason, ended.stderr), ended.stderr
    assert not ledger_path(history).exists()


STEP = AcknowledgedStep(
    cell="lab-a (lab) CSC 1x1 NF-1c vSwitch-1c 64B", metric="PDR", since=FIRST + timedelta(days=DOWN), before=5e6,
    after=4.5e6, cause=CAUSE, link=LINK,
)  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"link": "javascript:alert(1)"}, {"link": "https://a b"}, {"cause": "a\nb"}, {"since": "2026-11-03"},
        {"after": float("inf")},
    ],
)  # fmt: skip
def test_a_ledger_is_read_strictly(tmp_path: Path, changes: dict[str, object]) -> None:
    write_ledger(tmp_path / "history", [STEP])
    path = ledger_path(tmp_path / "history")
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert read_ledger(tmp_path / "history").steps == (STEP,)
    path.write_text(path.read_text(encoding="utf-8").replace("CSC 1x1", "CSC 1R1C"), encoding="utf-8")
    assert read_ledger(tmp_path / "history").steps == (STEP,), "CSIT's tag is the same cell"
    whole["steps"][0] |= changes
    path.write_text(yaml.safe_dump(whole), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{path}:\\d+: steps.0.{next(iter(changes))}: "):
        read_ledger(tmp_path / "history")


@pytest.mark.parametrize("target", ["nowhere", "history.acknowledged.yaml"], ids=["dangling", "loop"])
def test_a_ledger_that_is_a_link_to_nothing_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "history.acknowledged.yaml").symlink_to(target)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_ledger(tmp_path / "history")


def test_a_ledger_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="withdraw"):
        write_ledger(tmp_path / "history", [STEP] * (MAX_ACKNOWLEDGED + 1))
    assert not ledger_path(tmp_path / "history").exists()


def test_the_page_lists_causes_and_has_no_red_step() -> None:
    rows = nights(BACK, lambda night: 5e6 if night < DOWN else 4.5e6)
    pdr = next(each for each in trends(rows) if each.cell.metric == PDR)
    step = STEP.model_copy(update={"cell": pdr.cell.cell_name})
    shown = ReportContents(Rows(rows), acknowledged={step.name: [step]})
    states = {str(each.cell.metric): each.state for each in shown.trends}
    assert states == {"NDR": TrendState.REGRESSION, "PDR": TrendState.ACKNOWLEDGED}
    assert len(shown.changes) == 1
    changes, _, causes = render(trend_page.PAGE, shown).html.partition('id="trend-acknowledged"')
    causes = causes.partition("</section>")[0]
    assert "VPP 26.10 &lt;checks&gt; &#34;more&#34;" in causes and "checks" not in changes
    assert 'href="https://example.org/1?a=1&amp;b=&#39;2"' in causes
    assert ("way fall" in changes, "way fall" in causes) == (True, False)


def test_a_night_compares_few_figures_with_those_since_the_step() -> None:
    rows = nights(6, lambda night: 5e6 if night < 3 else 4.5e6)
    known = {}
    for each in trends(rows):
        since = FIRST + timedelta(days=3)
        step = STEP.model_copy(update={"cell": each.cell.cell_name, "metric": str(each.cell.metric), "since": since})
        known[step.name] = [step]
    some = [*rows[:3], rows[5]]
    assert next(iter(known_tests(some).values())).suspected is not None
    assert next(iter(known_tests(some, known).values())).suspected is None


STEPS = st.lists(st.tuples(st.integers(MIN_RUNS, 12), st.booleans()), max_size=6)


@settings(max_examples=share(60), deadline=None)
@given(planted=STEPS, shifts=st.lists(st.integers(-9, 9), min_size=6, max_size=6), per_day=st.integers(1, 3))
def test_steps_are_matched_by_date(planted: list[tuple[int, bool]], shifts: list[int], per_day: int) -> None:
    """Each acknowledgement belongs to one step near it in its direction, and each that has not moved to its own."""
    steps, level, index = [], 100.0, 0
    for gap, up in planted:
        index += gap
        after = level * (1.1 if up else 0.9)
        steps.append(Step(index, level, after, 0.0))
        level = after
    times = [FIRST + timedelta(days=1) * number / per_day for number in range(index + 2 * MIN_RUNS)]
    moved = [max(0, min(len(times) - 1, step.index + shift)) for step, shift in zip(steps, shifts, strict=False)]
    known = []
    for number, (step, place) in enumerate(zip(steps, moved, strict=True)):
        levels = {"before": step.before, "after": step.after}
        known.append(STEP.model_copy(update={"since": times[place], "cause": str(number), **levels}))
    found = matched(steps, times, known)
    taken = [each.cause for each in found if each]
    assert len(found) == len(steps)
    assert len(set(taken)) == len(taken)
    for step, place, each in zip(steps, moved, found, strict=True):
        if each is not None:
            assert abs(times.index(each.since) - step.index) <= MAX_SHIFT
            assert (each.after > each.before) == (step.after > step.before)
        assert each is not None or place != step.index
        near = step_near(steps, times, times[step.index].date())
        assert near == step or (near is not None and (per_day > 1 or abs(near.index - step.index) <= 1))
    if moved == [step.index for step in steps]:
        assert taken == [str(number) for number in range(len(steps))]
