"""Why tests did not pass: equal sentences make one cause, whatever numbers and names are in them."""

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
"""Before the reason, of the test in which the cell broke the system and of those that were left out for that."""


class CauseKind(StrEnum):
    """How tests ended that did not pass, the worst first."""

    QUARANTINED = "quarantined"
    FAILED = "failed"
    DOES_NOT_FIT = "does not fit"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Cause:
    """Tests that ended alike."""

    kind: CauseKind
    sentence: str
    """What their messages have in common, the rest as an ellipsis."""
    tests: tuple[TestRow, ...]
    """The newest first."""
    first_seen: str | None
    last_seen: str | None
    """ISO 8601; None where no test of it has a time."""

    @property
    def testbeds(self) -> tuple[str, ...]:
        """Where it was seen; empty where no test tells."""
        return tuple(sorted({row.testbed for row in self.tests if row.testbed}))


def abstracted(message: str) -> str:
    """The first sentence of a message without what tells one test from another."""
    line = next(iter(message.strip().splitlines()), "")
    text = _PARTICULARS.sub(_LEFT_OUT, _QUARANTINE.sub("", line).split("; ", 1)[0])
    return re.sub(rf"{_LEFT_OUT}(?:[\s,]*{_LEFT_OUT})+", _LEFT_OUT, text).strip()


def kind_of(row: TestRow) -> CauseKind:
    """How a test ended that did not pass."""
    if quarantined(row):
        return CauseKind.QUARANTINED
    if row.planned is False:
        return CauseKind.DOES_NOT_FIT
    return CauseKind.SKIPPED if row.status == "SKIP" else CauseKind.FAILED


def causes(rows: Iterable[TestRow]) -> list[Cause]:
    """Causes of all tests that did not pass: the worst kind first, and of a kind what is most frequent.

    Args:
        rows: Any tests; those that passed are left out.
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
