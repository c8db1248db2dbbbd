"""Another try for tests of real-time traffic, on everything made anew.

Such a test measures packets or rates on a machine that stands still now and then, as virtual machines do. It is
granted its tries with the reason, `@realtime(LOSS)`; all other tests have one, and a grant that ten runs did not need
is taken back. Each failed try is printed, counted in the JUnit file (property `tries`, and `failed at first` with the
first reason) and summed up at the end of the run. After a few of them (`MAX_FURTHER_TRIES`) no test has another, as
then the change or the machine is at fault and not the day.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter

LOSS = "loses packets where the machine stands still for some milliseconds"
RATE = "measures a rate, which a pause of the machine lowers"

TRIES = 3
MAX_FURTHER_TRIES = 4
"""Tries beyond the first that a run grants to all tests together; in one of several processes, each."""
PAUSE_S = 2.0
_MAX_REASON = 200
_AGAIN = "again"
_Test = TypeVar("_Test", bound=Callable[..., None])


def realtime(reason: str, tries: int = TRIES) -> Callable[[_Test], _Test]:
    """Grant a test of real-time traffic so many tries, the first included."""

    def mark(test: _Test) -> _Test:
        return pytest.mark.realtime(tries=tries, reason=reason)(test)  # type: ignore[no-any-return]

    return mark


def tries_of(item: pytest.Item) -> int:
    """How often a test may run until it passes."""
    marker = item.get_closest_marker("realtime")
    return 1 if marker is None else int(marker.kwargs["tries"])


class Tries:
    """The plugin."""

    def __init__(self) -> None:
        self._left = MAX_FURTHER_TRIES
        self._failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        tries, why = tries_of(item), ""
        for number in range(1, tries + 1):
            self._failed = False
            if number > 1:
                item.user_properties[:] = [("tries", number), ("failed at first", why)]
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            failed = [report for report in reports if report.failed]
            last = not failed or number == tries or self._left == 0
            why = why or (_reason(failed[0]) if failed else "")
            for report in reports if last else failed:
                if not last:
                    report.outcome = _AGAIN  # type: ignore[assignment]
                item.ihook.pytest_runtest_logreport(report=report)
            if last:
                break
            self._left -= 1
            time.sleep(PAUSE_S)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> pytest.TestReport:
        report: pytest.TestReport = yield
        self._failed = self._failed or report.failed
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        if self._failed:
            item.session._setupstate.teardown_exact(None)  # what modules and the session made, too


def _reason(report: pytest.TestReport) -> str:
    """The first line of what went wrong."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    return next(iter(text.splitlines()), "")[:_MAX_REASON]


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return (_AGAIN, "A", "AGAIN") if report.outcome == _AGAIN else None


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    again = terminalreporter.getreports(_AGAIN)
    if not again:
        return
    terminalreporter.section("failed at first")
    for report in again:
        terminalreporter.line(f"{report.nodeid} ({report.when})", yellow=True)
        terminalreporter.line(report.longreprtext)
    tests = len({report.nodeid for report in again})
    terminalreporter.line(f"{len(again)} further tries of {tests} tests of real-time traffic", yellow=True)
