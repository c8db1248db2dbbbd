"""Tests that passed, failed and were skipped: the same numbers, reasons and advice on all pages and in messages."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from csit_utils.analysis.causes import Cause, CauseKind, kind_of
from csit_utils.dataset.items import Recorded
from csit_utils.dataset.rows import TestRow
from csit_utils.report.units import count

_MAX_REASONS = 4
"""Reasons that a line lists."""


@dataclass(frozen=True)
class _Known:
    """A cause that is recognized by words of the message."""

    words: str
    """Regular expression."""
    advice: str
    skipped: str = ""
    """Reason of skipped tests, after their number."""
    sentence: str = ""
    """In place of a message that does not say why."""


_KNOWN = (
    _Known(
        r"'robot:skip' tag",
        "The suite leaves these tests out unless asked, as they take longer: run it with -v MORE:yes.",
        "only with -v MORE:yes",
        "left out unless asked for by -v MORE:yes",
    ),
    _Known(
        r"needs real hosts\b",
        "The tests need real hosts. Choose a topology that is not simulated, such as "
        "-v TOPOLOGY:topologies/local.yaml.",
        "need a real testbed",
    ),
    _Known(
        r"needs a (simulated )?testbed\b",
        "The test is of another kind of testbed. Choose its topology, such as -v TOPOLOGY:topologies/local.yaml.",
        "need another kind of testbed",
    ),
    _Known(
        r"has been measured by",
        "Nothing: the run has the result, of the test that is named.",
        "measured by another test",
    ),
    _Known(
        r"terminated by signal|stopped due to a fatal error|run (was )?(stopped|interrupted)|in a row broke",
        "The run was interrupted. Fix the reason, then resume the run: ./csit robot --resume FOLDER.",
        "after the run was interrupted",
    ),
    _Known(
        r"space (left|for results)|cannot be written",
        "Free disk space, or choose another folder by -d, then resume: ./csit robot --resume FOLDER.",
    ),
    _Known(
        r"did not arrive|no traffic|no packet|never arrived",
        "The evidence names the last hop that saw packets and the first that did not: check the path between them. "
        "The page of the test has a table of losses by hop.",
    ),
    _Known(
        r"host key|ssh|connection|unreachable|cannot be reached|agent",
        "Check that the node is reachable: ./csit doctor TOPOLOGY. For requirements of nodes see "
        "docs/how-to/reach-nodes.md.",
    ),
    _Known(
        r"not ready|within \S+ s|did not answer|last (seen|said)|nothing from",
        "A component was slow or hung. Run the test by the command on its page; ./csit doctor TOPOLOGY reports "
        "missing requirements. If it is only slow, raise the deadline in the topology.",
    ),
)
_BY_KIND = {
    CauseKind.QUARANTINED: _Known(
        "",
        "The cell broke the system under test in every attempt, so its other tests were skipped. "
        "See the attempts, then run the cell by the command on the page of its test.",
        "quarantined",
    ),
    CauseKind.DOES_NOT_FIT: _Known(
        "",
        "This is a result, not a fault: the cell does not fit on the testbed. ./csit plan "
        "TOPOLOGY shows which cells fit; try smaller NFs or fewer instances.",
        "do not fit on the testbed",
    ),
    CauseKind.SKIPPED: _Known(
        "", "The testbed does not meet a requirement of the test. ./csit doctor TOPOLOGY shows it and how to fix it."
    ),
    CauseKind.FAILED: _Known(
        "", "See evidence, trials and core map on the page of the test, and run it by the command there."
    ),
}


def _known(kind: CauseKind, text: str) -> _Known:
    if kind is not CauseKind.DOES_NOT_FIT:
        for each in _KNOWN:
            if re.search(each.words, text, re.IGNORECASE):
                return each
    return _BY_KIND[kind]


def advice(cause: Cause) -> tuple[str, str]:
    """Return a cause in a sentence, and the advice on it."""
    known = _known(cause.kind, f"{cause.sentence} {cause.tests[0].message}")
    return known.sentence or cause.sentence or "no message", known.advice


@dataclass(frozen=True)
class Tally:
    """Number of tests by outcome."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: str = ""
    """Of skipped tests: `15 only with -v MORE:yes, 8 need a real testbed`."""

    @property
    def total(self) -> int:
        """All tests."""
        return self.passed + self.failed + self.skipped

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """For each outcome that occurred its CSS class and `215 passed`; skipped tests with their reasons."""
        skipped = f"skipped: {self.reasons}" if self.reasons else "skipped"
        numbers = (("pass", self.passed, "passed"), ("fail", self.failed, "failed"), ("skip", self.skipped, skipped))
        return tuple((kind, f"{count(number)} {text}") for kind, number, text in numbers if number)

    def __str__(self) -> str:
        """`238 tests: 215 passed, 23 skipped: 15 only with -v MORE:yes, 8 need a real testbed`."""
        return f"{count(self.total)} test{'s' * (self.total != 1)}: {', '.join(text for _, text in self.parts)}"


def tally(rows: Iterable[TestRow], records: Iterable[Recorded]) -> Tally:
    """Count tests, and records of studies."""
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    tests = [
        *((row.status, kind_of(row), row.message) for row in rows),
        *((str(item.status), CauseKind.SKIPPED, item.message) for item in records),
    ]
    for status, kind, message in tests:
        statuses[status] += 1
        if status == "SKIP" and (reason := _known(kind, message).skipped):
            reasons[reason] += 1
    first = reasons.most_common(_MAX_REASONS)
    listed = [reason if number == statuses["SKIP"] else f"{count(number)} {reason}" for reason, number in first]
    if listed and (others := statuses["SKIP"] - sum(number for _, number in first)):
        listed.append(f"{count(others)} for other reasons")
    failed = len(tests) - statuses["PASS"] - statuses["SKIP"]
    return Tally(statuses["PASS"], failed, statuses["SKIP"], ", ".join(listed))
