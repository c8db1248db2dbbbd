"""Causes of failed tests: messages that differ only in numbers and names have one cause."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from csit_utils.analysis.outcomes import quarantined
from csit_utils.dataset.rows import TestRow

_LEFT_OUT = "…"
_PARTICULARS = re.compile(
    r"""
    '[^']*' | "[^"]*" | `[^`]*`                    # quoted
    | (?<![\w.])(?:~|\.{1,2})?/[\w.+/-]+           # paths
    | (?:[0-9a-f]{2,4}:)+[0-9a-f:.]+               # addresses of ports, PCI and IPv6
    | \b(?:VSC|CSC|CSP|forward|reverse)\b
    | \bcs[gvn]\w*\d\w*                            # interfaces
    | \bnf-\d[\w-]* | \bvswitch-\d+ | \bNF-\d[\w.+]* | \bvSwitch-\d\w*
    | \b0x[0-9a-f]+ | [+-]?\d[\d,._]*(?:[eE][+-]?\d+)?(?:[xRC]\d+[RC]?)*
    """,
    re.VERBOSE,
)


_QUARANTINE = re.compile(r"quarantined(?: after \d+ attempts|: (?:VSC|CSC|CSP) [^:]*)?: ")
"""Prefix of the reason, in the test that broke the system and in those skipped because of it."""


class CauseKind(StrEnum):
    """Kinds of tests that did not pass, worst first."""

    QUARANTINED = "quarantined"
    FAILED = "failed"
    DOES_NOT_FIT = "does not fit"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Cause:
    """Tests with the same cause."""

    kind: CauseKind
    sentence: str
    """The common part of their messages, with ellipses for the rest."""
    tests: tuple[TestRow, ...]
    """Newest first."""
    first_seen: str | None
    last_seen: str | None
    """ISO 8601; None if no test has a time."""

    @property
    def testbeds(self) -> tuple[str, ...]:
        """Names of testbeds; empty if unknown."""
        return tuple(sorted({row.testbed for row in self.tests if row.testbed}))


def abstracted(message: str) -> str:
    """Return the first sentence of a message, with ellipses for numbers, names, paths and addresses."""
    line = next(iter(message.strip().splitlines()), "")
    text = _PARTICULARS.sub(_LEFT_OUT, _QUARANTINE.sub("", line).split("; ", 1)[0])
    return re.sub(rf"{_LEFT_OUT}(?:[\s,]*{_LEFT_OUT})+", _LEFT_OUT, text).strip()


def kind_of(row: TestRow) -> CauseKind:
    """Return the kind of a test that did not pass."""
    if quarantined(row):
        return CauseKind.QUARANTINED
    if row.planned is False:
        return CauseKind.DOES_NOT_FIT
    return CauseKind.SKIPPED if row.status == "SKIP" else CauseKind.FAILED


def causes(rows: Iterable[TestRow]) -> list[Cause]:
    """Return the causes of all tests that did not pass: worst kind first, within a kind most frequent first.

    Args:
        rows: Any tests; passed ones are ignored.
    """
    groups: dict[tuple[CauseKind, str], list[TestRow]] = {}
    for row in rows:
        if row.status != "PASS":
            groups.setdefault((kind_of(row), abstracted(row.message)), []).append(row)
    found = []
    for (kind, sentence), own in groups.items():
        times = sorted(row.started_at for row in own if row.started_at)
        own.sort(key=lambda row: row.started_at or "", reverse=True)
        found.append(Cause(kind, sentence, tuple(own), times[0] if times else None, times[-1] if times else None))
    order = list(CauseKind)
    return sorted(found, key=lambda cause: (order.index(cause.kind), -len(cause.tests), cause.sentence))
