"""Progress of a study: lines that stay, and the time left."""

import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO

import pytest

from resources.libraries.python.planning.cost import RunPlan, TimedTest, TimeLeft
from resources.libraries.python.studies.shared.progress import StepEnded, StudyProgress
from tests.unit.unwritable import UNWRITABLE, unwritable


class Terminal(io.StringIO):
    """Lines can be rewritten there."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock() -> SimpleNamespace:
    """Stands still until it is set."""
    return SimpleNamespace(now_s=100.0)


def begun(clock: SimpleNamespace, stream: TextIO | None = None, *, simulated: bool = False) -> StudyProgress:
    progress = StudyProgress(lambda: clock.now_s, stream or io.StringIO(), TimeLeft())
    progress.begin("study", ["a preview"], simulated=simulated, each_s=5.0, left=32)
    return progress


def test_the_time_left_follows_the_measured_work_and_forgets_what_became_unnecessary(clock: SimpleNamespace) -> None:
    progress = begun(clock)
    assert progress.left_s() == 5.0 * 32
    clock.now_s += 300.0
    progress.prepared(each_s=6.0, left=32)
    assert progress.left_s() == 6.0 * 32, "the search for the load is no step"
    clock.now_s += 4.0
    progress.advance(31)
    assert progress.left_s() == 4.0 * 31
    clock.now_s += 2.0
    assert progress.left_s() == 4.0 * 31 - 2.0, "the present step goes on"
    progress.advance(30)
    assert progress.left_s() == 3.0 * 30
    progress.advance(24, work=0)
    assert progress.left_s() == 3.0 * 24
    progress.advance(0)
    assert progress.left_s() == 0


def test_the_tests_that_follow_are_part_of_the_time_left(clock: SimpleNamespace) -> None:
    run, stream = TimeLeft(), Terminal()
    run.plan(RunPlan([TimedTest("a", 60.0), TimedTest("b", 240.0)]))
    progress = StudyProgress(lambda: clock.now_s, stream, run)
    progress.begin_test("a")
    progress.begin("study", simulated=False, each_s=5.0, left=12)
    progress.status("deploying")
    assert stream.getvalue().endswith("\rstudy: deploying; about 5 min left")
    clock.now_s += 60.0
    progress.end_test()
    progress.begin_test("b")
    progress.begin("other", simulated=False)
    progress.status("deploying")
    assert stream.getvalue().rstrip().endswith("\rother: deploying; about 4 min left")


def test_a_failed_step_stays_on_the_console_and_others_do_not(clock: SimpleNamespace) -> None:
    stream = Terminal()
    progress = begun(clock, stream)
    clock.now_s += 2.0
    progress.step(StepEnded(1, 3, "chain a", "3 Mbit/s", 2))
    assert stream.getvalue().endswith("\rstudy: chain a (1 of 3): 3 Mbit/s; about 4 s left")
    progress.step(StepEnded(2, 3, "chain b", "no traffic", 1, failed=True))
    assert stream.getvalue().splitlines()[-1].endswith("study: chain b (2 of 3): no traffic; about 1 s left")
    virtual = begun(clock, stream, simulated=True)
    virtual.step(StepEnded(1, 2, "chain a", "3 Mbit/s", 1))
    assert virtual.left_s() is None and stream.getvalue().endswith("\rstudy: chain a (1 of 2): 3 Mbit/s")


def test_where_lines_cannot_be_rewritten_few_are_written(clock: SimpleNamespace) -> None:
    stream = io.StringIO()
    progress = begun(clock, stream)
    for number in range(1, 20):
        clock.now_s += 10.0
        progress.step(StepEnded(number, 20, "load", "lost nothing", 20 - number))
    progress.end(passed=False, message="no traffic", lines=["and nothing else"])
    assert stream.getvalue().splitlines() == [
        "study: a preview",
        "study: load (6 of 20): lost nothing; about 2 min left",
        "study: load (12 of 20): lost nothing; about 80 s left",
        "study: load (18 of 20): lost nothing; about 20 s left",
        "study: no traffic",
        "and nothing else",
    ]


def test_a_narrow_terminal_shows_the_ends_of_a_status(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found, stream = f"test 3 of 4, {'word ' * 20}PDR 6.07 .. 6.1 Mpps", Terminal()
    progress = begun(clock, stream)
    progress.status(found)
    shown = stream.getvalue().rpartition("\r")[2]
    assert shown.startswith("study: test 3 of 4,") and shown.endswith("PDR 6.07 .. 6.1 Mpps; about 3 min left")
    assert len(shown) < 80
    progress.line(found)
    lines = stream.getvalue().rpartition("\r")[2].splitlines()
    assert " ".join(map(str.strip, lines)) == f"study: {found}" and max(map(len, lines)) < 80
    piped = io.StringIO()
    begun(clock, piped).line(found)
    assert piped.getvalue().splitlines()[-1] == f"study: {found}"


@pytest.mark.parametrize("lack", UNWRITABLE)
def test_a_study_goes_on_without_its_console(clock: SimpleNamespace, lack: str) -> None:
    with unwritable(lack) as stream:
        progress = begun(clock, stream)
        progress.step(StepEnded(1, 32, "chain", "x" * 10_000, failed=True))
        progress.end(passed=False, message="broken", lines=["a table"])
        assert os.path.samestat(os.fstat(stream.fileno()), Path(os.devnull).stat())


def test_a_closed_standard_output_is_no_console(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = io.StringIO()
    monkeypatch.setattr("sys.__stdout__", None)
    monkeypatch.setattr("sys.stdout", captured)
    progress = StudyProgress(lambda: clock.now_s)
    captured.close()
    progress.line("begins")
