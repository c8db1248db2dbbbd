"""Robot runs of a night: the order of the plan, no test begun that would not fit, and time left after interruptions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from robot import api
from typer.testing import CliRunner

from csit_utils import cli
from csit_utils import night as session
from csit_utils.night import (
    NOT_BEGUN,
    NightChoices,
    NightClock,
    NightJournal,
    PlannedOrder,
    TestOfNight,
    WithinBudget,
    arguments_of,
    render_night,
    run_night,
)
from csit_utils.studies.registry import cost_of
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.paths import PROJECT


class Clock:
    """A clock that advances by itself at each look."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now, self.step = 0.0, step_s

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def journal_of(tmp_path: Path) -> Callable[[], NightJournal]:
    return lambda: NightJournal(tmp_path / NightJournal.FILE, "digest")


def suites(*names: str) -> api.TestSuite:
    """Suites `a` and `b`, whose tests log a line; a name is `suite.test`."""
    top = api.TestSuite("Night")
    for suite in dict.fromkeys(name.split(".")[0] for name in names):
        child = top.suites.create(name=suite)
        for name in names:
            if name.split(".")[0] == suite:
                child.tests.create(name=name.split(".")[1]).body.create_keyword(name="Log", args=["measured"])
    return top


def test_suites_and_tests_are_in_the_order_of_the_plan() -> None:
    top = suites("a.1", "a.2", "b.1", "b.2")
    top.visit(PlannedOrder(["Night.b.2", "Night.a.2", "Night.a.1", "Night.b.1"]))
    assert [test.full_name for test in top.all_tests] == ["Night.b.2", "Night.b.1", "Night.a.2", "Night.a.1"]


def planned(test: str, run: str = "01-unseen", took_s: float = 1.0, **changes: Any) -> TestOfNight:
    return TestOfNight(run=run, test=test, title=test, why="unseen", seconds=took_s, **changes)


CHOICES = NightChoices(
    topology="topologies/sim.yaml", simulated=True, hours=8.0, types="CSC", tests="MRR", variables={"SEARCH": "quick"},
    data=(), within=0.02, unseen_days=7.0, began="2026-11-26T22:00:00+00:00",
)  # fmt: skip


def test_a_test_that_would_not_fit_is_not_begun_and_a_shorter_one_is(journal_of: Callable[[], NightJournal]) -> None:
    with journal_of() as journal:
        clock = NightClock(100.0, journal, Clock(10.0))  # the listener looks twice at each test
        tests = [planned(f"Night.a.{at}", took_s=took_s) for at, took_s in enumerate((60.0, 90.0, 20.0), 1)]
        result = suites("a.1", "a.2", "a.3").run(output=None, console="none", listener=WithinBudget(tests, clock))
        status = {test.name: (test.status, test.message) for test in result.suite.suites[0].tests}
        assert status["1"][0] == status["3"][0] == "PASS"
        assert status["2"] == ("SKIP", "not begun: takes about 90 s, 70 s of the night are left")
        assert [row.status for row in clock.rows.values()] == ["PASS", NOT_BEGUN, "PASS"]
        assert (clock.statuses("Night.a.1"), clock.statuses("Night.a.2")) == ({"PASS"}, set())


def test_tests_after_the_end_of_a_run_are_measured_later(journal_of: Callable[[], NightJournal]) -> None:
    top = suites("a.1", "a.2", "a.3")
    top.suites[0].tests[1].body.create_keyword(name="Fatal Error", args=["Execution terminated by signal"])
    with journal_of() as journal:
        clock = NightClock(100.0, journal, Clock())
        tests = [planned(f"Night.a.{number}") for number in (1, 2, 3)]
        top.run(output=None, console="none", listener=WithinBudget(tests, clock))
        assert [row.test for row in clock.rows.values() if row.has_ended] == ["Night.a.1"]


def test_time_in_which_nothing_ran_is_not_spent(journal_of: Callable[[], NightJournal]) -> None:
    now = Clock()
    with journal_of() as journal:
        clock = NightClock(100.0, journal, now)
        now.now = 30.0
        clock.ended(planned("a"), "PASS")
        now.now = 50.0  # killed here, in a test
    now.now = 5000.0  # or less than before, after a reboot
    with journal_of() as journal:
        clock = NightClock(100.0, journal, now)
        assert clock.left_s == 70.0
        now.now = 5010.0
        clock.ended(planned("b"), "PASS")
    now.now = 3.0
    with journal_of() as journal:
        assert NightClock(100.0, journal, now).left_s == 60.0


def test_a_resumed_night_knows_what_was_planned_and_what_has_ended(journal_of: Callable[[], NightJournal]) -> None:
    with journal_of() as journal:
        clock = NightClock(100.0, journal, Clock())
        clock.ended(planned("a"), "PLANNED")
        clock.ended(planned("b"), "PLANNED")
        clock.ended(planned("a"), "PASS")
    with journal_of() as journal:
        ((run, tests),) = NightClock(100.0, journal, Clock()).runs().items()
        assert (run, [(row.test, row.has_ended) for row in tests]) == ("01-unseen", [("a", True), ("b", False)])


def test_a_run_of_studies_gets_no_choice_of_cells(tmp_path: Path) -> None:
    variables = {"CELLS": "1x1", "FRAMES": "IMIX", "SEARCH": "quick", "STACKS": "10", "FLOWS": "4"}
    choices = CHOICES.model_copy(update={"variables": variables})
    given = {
        study: " ".join(arguments_of([planned("Characterization.Outage.1", study=study)], choices, tmp_path))
        for study in (False, True)
    }
    assert "--variable CELLS:1x1 --variable FRAMES:IMIX --variable SEARCH:quick --variable STACKS:10" in given[False]
    assert "--variable TOPOLOGY:topologies/sim.yaml --variable STACKS:10" in given[True]


def test_the_time_left_of_a_run_is_by_the_durations_of_the_plan(
    journal_of: Callable[[], NightJournal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}
    monkeypatch.setattr(session, "run_suites", lambda _, **options: given.update(options))
    with journal_of() as journal:
        clock = NightClock(100.0, journal)
        clock.ended(planned("Density.Csc-Mrr.1", took_s=4.5), "PLANNED")
        assert run_night(CHOICES, 2.0, tmp_path, clock) is not None, "nothing ran"
    assert given["expected_s"] == {"Density.Csc-Mrr.1": 4.5}


def test_a_run_that_is_refused_before_its_first_test_leaves_the_night_incomplete(
    journal_of: Callable[[], NightJournal], tmp_path: Path
) -> None:
    topology = tmp_path / "lab.yaml"  # was there when the night was planned
    with journal_of() as journal:
        clock = NightClock(100.0, journal)
        clock.ended(planned("Density.Csc-Mrr.1"), "PLANNED")
        reason = run_night(CHOICES.model_copy(update={"topology": str(topology)}), 2.0, tmp_path, clock)
    assert reason is not None
    assert reason.startswith(f"{tmp_path / '01-unseen'}: ")
    assert str(topology) in reason


def test_the_page_lists_outcomes_reasons_and_what_is_open() -> None:
    rows = (
        planned("CSC 1R1C", status="FAIL", message="no traffic at hop 2"),
        planned("<b>CSC 2R1C", status=NOT_BEGUN, message="takes about 60 s"),
    )
    page = render_night(
        CHOICES, rows, "1 failed", [("CSC 2R1C", "uncertain")], [("a", "needs 99 cores")], has_report=True
    )
    for text in (
        "no traffic at hop 2",
        "takes about 60 s",
        "needs 99 cores",
        "SIMULATED",
        "uncertain",
        "&lt;b&gt;CSC 2",
    ):
        assert text in page
    assert "<b>CSC" not in page and "density.html" in page


@pytest.mark.parametrize(
    "words",
    [
        "outage outage/routers.yaml",
        "stateful stateful/nat.yaml",
        "chains chains/four-vnfs.yaml",
        "interference interference/pairs.yaml",
        "sizing snort/deployment.json sim workload=snort/workload.json",
    ],
)
def test_the_time_of_a_study_is_known_before_it_runs(words: str) -> None:
    study, *arguments = words.split()
    cost = cost_of(study, arguments, World.SIM)
    assert cost is not None and cost.seconds > 60


def test_a_night_that_measures_nothing_has_a_page_that_says_so(tmp_path: Path) -> None:
    words = ["night", str(PROJECT / "topologies" / "sim.yaml"), "--hours", "0.00001", "--cells", "1x1"]
    done = CliRunner().invoke(cli.make_app(words), [*words, "--data", str(tmp_path), "-o", str(tmp_path / "night")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "night" / "night.html").read_text(encoding="utf-8")
    assert "0 planned measurements: nothing to measure" in page and "unseen: never measured" in page
    assert "density.html" not in page
