"""A night as output.xml, by Robot's own writer of results."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from robot.result import Result, TestSuite

from csit_utils.bench.nights.measuring import MeasuredTest, Night
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.recording.packed import pack

_TEMPLATES = {"Ndrpdr": "Ndr And Pdr Should Be Found", "Mrr": "Mrr Should Be Measured"}


def write_night(night: Night, path: Path) -> int:
    """Run a night's tests and write its output.xml; return how many tests there were."""
    top = TestSuite(name="Density")
    suites = {
        f"{kind.title()}": {
            f"Does not fit: {refused.cell}": refused.reason for refused in night.refused(kind)
        }
        for kind in night.selection.service_types
    }  # fmt: skip
    count = _add_tests(top, night.tests(), suites)
    path.parent.mkdir(parents=True, exist_ok=True)
    Result(suite=top, rpa=False, generator="csit nights").save(path)
    return count


def _add_tests(top: TestSuite, tests: Iterable[MeasuredTest], refused: dict[str, dict[str, str]]) -> int:
    """Put tests into a suite of suites; metadata as the suites have them for cells that do not fit."""
    suites: dict[str, TestSuite] = {}
    count = 0
    for done in tests:
        if done.suite not in suites:
            kind = done.suite.split("-")[0]
            suites[done.suite] = top.suites.create(name=done.suite, metadata=refused[kind])
        _add_test(suites[done.suite], done)
        count += 1
    return count


def _add_test(suite: TestSuite, done: MeasuredTest) -> None:
    elapsed_s = sum(trial.total_duration_s for trial in done.result.trials) if done.result else 0.0
    test = suite.tests.create(
        name=done.row.name,
        tags=done.row.tags,
        status=done.status,
        message=done.message,
        start_time=done.started_at,
        elapsed_time=timedelta(seconds=elapsed_s),
    )
    template = _TEMPLATES[done.suite.split("-")[1]]
    test.body.create_keyword(
        name=template, args=done.row.arguments, status=done.status, message=done.message, start_time=done.started_at
    )
    if done.result is not None:
        test.teardown.config(name="Close Test", owner="DensityLibrary", status="PASS", start_time=done.started_at)
        text = f"{RESULT_MARKER}{pack(done.result)}"
        test.teardown.body.create_message(message=text, level="INFO", timestamp=done.started_at)
