"""A second try for tests of real time and real packets, on everything made anew.

Such a test measures packets, rates or times on a machine that stands still now and then, as virtual machines do, and
which test meets that is chance. So each of them may fail once, but a run as a whole has only `MAX_RETRIES` second
tries: where more are needed, the change or the machine is at fault and not the day. Each failed first try is printed,
and recorded in the JUnit file (property `failed at first`, with the reason). The test is to be rewritten.
"""

import fcntl
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter

MAX_RETRIES = 2
"""Second tries of all processes of a run together."""
RUN = "CSIT_TEST_RETRIES"
"""Variable of the environment with the file that counts them: all processes that have the same are one run."""
PAUSE_S = 2.0
_MAX_REASON = 200
_AGAIN = "again"


def pytest_configure(config: pytest.Config) -> None:
    if RUN not in os.environ:  # workers inherit it
        handle, os.environ[RUN] = tempfile.mkstemp(prefix="csit-retries-")
        os.close(handle)
        config.add_cleanup(partial(os.unlink, os.environ[RUN]))


def granted() -> bool:
    """Take one of the run's second tries; whether there was one."""
    with Path(os.environ[RUN]).open("ab") as counted:
        fcntl.flock(counted, fcntl.LOCK_EX)
        if os.fstat(counted.fileno()).st_size >= MAX_RETRIES:
            return False
        counted.write(b".")
        return True


class Retries:
    """The plugin."""

    def __init__(self) -> None:
        self._failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._failed = False
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = [report for report in reports if report.failed]
        if failed and granted():
            for report in failed:
                report.outcome = _AGAIN  # type: ignore[assignment]
                item.ihook.pytest_runtest_logreport(report=report)
            item.user_properties[:] = [("failed at first", _reason(failed[0]))]
            time.sleep(PAUSE_S)
            self._failed = False
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
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
