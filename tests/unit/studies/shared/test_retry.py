"""What is tried once more, on a cell that breaks as told, and what is quarantined in journal and record."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from robot.errors import ExecutionFailed
from robot.run import run_cli

from resources.libraries.python import errors
from resources.libraries.python.recording.run_journal import Command, RunJournal, TestKey
from resources.libraries.python.studies.shared.run_state import measure_with_care
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Disconnection
from tests.builders import raising
from tests.unit.csit_utils import builders
from tests.unit.recording.journals import CHOICES

KEY = TestKey("CSC 1R1C MRR", "d", "CSC 1R1C")


def cell(problems: tuple[str, ...] = (), moved: tuple[str, ...] = ()) -> Any:
    draft, state = SimpleNamespace(broken=(), quarantined=None), {"is_deployed": True, "removed": 0}
    made = SimpleNamespace(draft=draft, problems=lambda: problems, moved=lambda: moved, **state)
    made.remove = lambda: setattr(made, "removed", made.removed + 1)
    return made


def fails_by(error: Exception, **how: bool) -> Callable[[], None]:
    """Fails as Robot's keywords do: the error is in the chain."""

    def phases() -> None:
        try:
            raise error
        except Exception:  # a step boundary, as in Robot
            raise ExecutionFailed(str(error), **how)  # noqa: B904 - so does Robot

    return phases


def fine() -> None:
    """All phases pass."""


@pytest.fixture
def run(tmp_path: Path) -> RunJournal:
    return RunJournal.begin(tmp_path, CHOICES, builders.ENVIRONMENT, Command(), "boot-1")


def measure(run: RunJournal, attempts: list[tuple[Any, Callable[[], None]]], check: Callable[[], None] = fine) -> None:
    cells, now = (iter(each) for each in zip(*attempts, strict=True))

    def phases() -> None:
        next(now)()

    try:
        measure_with_care(run, KEY, next(cells), cells.__next__, phases, check=check, on_broken=lambda *_: None)
    finally:
        run.close()


def events(run: RunJournal) -> list[str]:
    text = run.past.path.read_text(encoding="utf-8")
    return [line.split('"event":"')[1].split('"')[0] for line in text.splitlines()]


BREAKAGES = [errors.CommandFailed(["worker"], -9, ""), errors.NotReady("the report", 10.0, "nothing"), OSError("EPIPE")]


@pytest.mark.parametrize(
    "error", [*BREAKAGES, errors.CsitError("the kernel refused"), errors.SystemBroken("it is gone")]
)
def test_what_breaks_the_system_is_tried_once_more(run: RunJournal, error: Exception) -> None:
    first, second = cell(), cell()
    measure(run, [(first, fails_by(error)), (second, fine)])
    assert first.removed == 1
    assert len(second.draft.broken) == 1
    assert second.draft.quarantined is None
    assert events(run) == ["run", "started", "broken", "started", "ended"]


@pytest.mark.parametrize(
    "error", [errors.NoTraffic("no traffic"), errors.PlanError("needs 33 cores"), ValueError("a defect")]
)
def test_a_result_or_a_defect_is_not_tried_again(run: RunJournal, error: Exception) -> None:
    only = cell()
    with pytest.raises(ExecutionFailed):
        measure(run, [(only, fails_by(error))])
    assert only.removed == 0
    assert events(run) == ["run", "started", "ended"]


@pytest.mark.parametrize("phases", [fails_by(errors.NoTraffic("no traffic")), fine])
def test_a_system_that_died_has_no_result_whatever_its_numbers_are(run: RunJournal, phases: Callable[[], None]) -> None:
    second = cell()
    measure(run, [(cell(("nf-1-1 is gone",)), phases), (second, fine)])
    assert run.past.broken == {KEY.test: ("nf-1-1 is gone",)}
    assert second.draft.broken == ("nf-1-1 is gone",)


def test_a_moved_thread_is_tried_once_more_and_then_left_to_the_verdict(run: RunJournal) -> None:
    cells = [cell(moved=("it moved",)), cell(moved=("it moved",))]
    measure(run, [(cells[0], fine), (cells[1], fine)])
    assert cells[1].draft.quarantined is None


@pytest.mark.parametrize("how", [{"exit": True}, {"skip": True}, {"test_timeout": True}])
def test_the_end_of_the_run_a_skip_and_a_timeout_go_through(run: RunJournal, how: dict[str, bool]) -> None:
    with pytest.raises(ExecutionFailed):
        measure(run, [(cell(("everything is broken",)), fails_by(errors.NotReady("a", 1, "b"), **how))])
    assert "broken" not in events(run)


def test_nothing_begins_without_space(run: RunJournal) -> None:
    with pytest.raises(errors.RunStopped):
        measure(run, [(cell(), fine)], raising(errors.RunStopped("no space")))
    assert events(run) == ["run", "ended"]


def test_a_failure_that_is_among_its_own_causes_is_a_result(run: RunJournal) -> None:
    """A walk over its causes would have no end."""
    failure, other = ExecutionFailed("one"), ExecutionFailed("two")
    failure.__cause__, other.__cause__ = other, failure
    with pytest.raises(ExecutionFailed, match="one"):
        measure(run, [(cell(), raising(failure))])


ROOT = Path(__file__).parents[4]
REASON = "nf-1-1 has died"
SIM = ("-v", f"TOPOLOGY:{ROOT / 'topologies' / 'sim.yaml'}", "--log", "NONE", "--report", "NONE", "--console", "none")
DENSITY = ("-v", "CELLS:1x1", "-v", "NF_SIZES:1c", str(ROOT / "tests/density/csc-mrr.robot"))
SWEEP = ("-v", "SWEEP_RATES:10000-30000/10000", "-t", "Firewall", str(ROOT / "tests/characterization/sweep.robot"))


def robot(folder: Path, *words: str) -> int:
    """Run one test on the simulated testbed; return the number of tests that failed."""
    return int(run_cli(["-d", str(folder), *SIM, *words], exit=False))


def journaled(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()[1:]]


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Deployments that were tried; each of them breaks the service."""
    tried: list[object] = []

    def deploy(_: CellUnderTest, plan: object) -> None:
        tried.append(plan)
        raise errors.SystemBroken(REASON)

    monkeypatch.setattr(CellUnderTest, "deploy", deploy)
    return tried


def test_a_cell_that_breaks_twice_is_quarantined_and_not_tried_again(deployments: list[object], tmp_path: Path) -> None:
    assert robot(tmp_path, *DENSITY) == 1
    *_, quarantined, _ = happened = journaled(tmp_path)
    assert " ".join(each["event"] for each in happened) == "started broken started broken quarantined ended"
    assert (quarantined["status"], quarantined["reason"]) == ("FAIL", REASON)
    path = tmp_path / "results" / quarantined["record"]
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["quarantined"], record["broken"]) == (REASON, [REASON, REASON])
    assert record["verdict"]["findings"][0]["kind"] == "quarantined"
    written = path.read_bytes()
    assert robot(tmp_path, "-v", f"RESUME:{tmp_path}", *DENSITY) == 1
    assert len(deployments) == 2
    assert path.read_bytes() == written


def test_a_sweep_that_failed_otherwise_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CellUnderTest, "connectivity", lambda *_: Disconnection(("nothing arrived",), False))
        assert robot(tmp_path, *SWEEP) == 1
    assert [event["event"] for event in journaled(tmp_path)] == ["started", "finished", "ended"]
    assert robot(tmp_path, "-v", f"RESUME:{tmp_path}", *SWEEP) == 0
