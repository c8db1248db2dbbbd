"""Another try for a test of real packets, on everything made anew.

Such tests say what comes true on a machine that now and then stands still, as virtual machines do. The failure of each
try is told, and after `MOST` of them none has another: then it is the change and not the day. The plugins of PyPI leave
what a module made in place, so what was measured once for several tests would be judged three times.
"""

import time

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter

MOST = 12
"""Tries beyond the first in a run; in one of several processes, each."""
PAUSE_S = 2.0
_AGAIN = "again"


class Repeats:
    """The plugin.

    Args:
        tries: For each test, the first included.
    """

    def __init__(self, tries: int) -> None:
        self._tries = tries
        self._left = MOST
        self._failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for left in reversed(range(self._tries)):
            self._failed = False
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            failed = [report for report in reports if report.failed]
            last = not failed or left == 0 or self._left == 0
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


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return (_AGAIN, "A", "AGAIN") if report.outcome == _AGAIN else None


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    again = terminalreporter.getreports(_AGAIN)
    if again:
        terminalreporter.section("failed at first")
    for report in again:
        terminalreporter.line(f"{report.nodeid} ({report.when})", yellow=True)
        terminalreporter.line(report.longreprtext)
