"""Causes of failed tests: messages that differ only in numbers and names have one cause."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from csit_utils.dataset.rows import TestRow

QUARANTINED = "quarantined"
"""Beginning of the messages of tests that failed or were skipped for that reason."""


@dataclass(frozen=True)
class Outcomes:
    """Tests by change of outcome; tests of both runs unless noted otherwise."""

    failing: tuple[TestRow, ...] = ()
    """Passed before; without quarantined ones."""
    passing: tuple[TestRow, ...] = ()
    """Did not pass before."""
    quarantined: tuple[TestRow, ...] = ()
    """Not quarantined before; includes tests of the newer run only."""


def outcomes(before: Iterable[TestRow], after: Iterable[TestRow]) -> Outcomes:
    """Compare the outcomes of two runs. The last attempt of a test in a run counts."""
    old, new = _by_id(before), _by_id(after)
    both = [(old[key], new[key]) for key in new if key in old]
    return Outcomes(
        failing=tuple(now for was, now in both if _passed(was) and now.status == "FAIL" and not quarantined(now)),
        passing=tuple(now for was, now in both if not _passed(was) and _passed(now)),
        quarantined=tuple(
            now for key, now in new.items() if quarantined(now) and not (key in old and quarantined(old[key]))
        ),
    )


def quarantined(row: TestRow) -> bool:
    """Whether a test was given up because its cell broke the system under test, in this or another test."""
    return bool(row.quarantined) or row.message.startswith(QUARANTINED)


def _passed(row: TestRow) -> bool:
    return row.status == "PASS"


def _by_id(rows: Iterable[TestRow]) -> Mapping[str, TestRow]:
    return {row.test_id: row for row in rows}


_LEFT_OUT = "…"
_FEW_ALIKE = 3
"""Sentences of one kind that are listed one by one."""
_PARTICULARS = re.compile(
    r"""
    '[^']*' | "[^"]*" | `[^`]*`                    # quoted
    | (?<![\w.])(?:~|\.{1,2})?/[\w.+/-]+           # paths
    | (?:[0-9a-f]{2,4}:)+[0-9a-f:.]+               # addresses of ports, PCI and IPv6
    | \b(?:VSC|CSC|CSP|forward|reverse)\b
    | \bcs[gvn]\w*\d\w*                            # interfaces
    | \bnf-\d[\w-]* | \bvswitch-\d+ | \bNF-\d[\w.+]* | \bvSwitch-\d\w*
    | \b0x[0-9a-f]+ | [+-]?\d[\d,._]*(?:[eE][+-]?\d+)?(?:[xRC]\d+[RC]?|\ [kMG]?pps\b)*
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

    @property
    def testbeds(self) -> tuple[str, ...]:
        """Names of testbeds; empty if unknown."""
        return tuple(sorted({row.testbed for row in self.tests if row.testbed}))


def abstracted(message: str) -> str:
    """Return the first sentence of a message, with ellipses for numbers, names, paths and addresses."""
    line = next(iter(message.strip().splitlines()), "")
    text = _PARTICULARS.sub(_LEFT_OUT, _QUARANTINE.sub("", line).split("; ", 1)[0])
    return re.sub(rf"{_LEFT_OUT}(?:[\s,]*{_LEFT_OUT})+", _LEFT_OUT, text).strip()


def condensed(sentences: Iterable[str]) -> list[str]:
    """Return sentences that begin with a file and `: `; of several that differ in it, names and numbers the first."""
    groups: dict[str, list[str]] = {}
    for sentence in sentences:
        groups.setdefault(abstracted(sentence.partition(": ")[2] or sentence), []).append(sentence)
    found: list[str] = []
    for own in groups.values():
        found += own if len(own) <= _FEW_ALIKE else [f"{own[0]}; {len(own) - 1:,} more like this one"]
    return found


def kind_of(row: TestRow) -> CauseKind:
    """Return the kind of a test that did not pass."""
    if quarantined(row):
        return CauseKind.QUARANTINED
    if row.unfit:
        return CauseKind.DOES_NOT_FIT
    return CauseKind.SKIPPED if row.status == "SKIP" else CauseKind.FAILED


def causes(rows: Iterable[TestRow]) -> list[Cause]:
    """Return the causes of all tests that did not pass: worst kind first, within a kind most frequent first."""
    groups: dict[tuple[CauseKind, str], list[TestRow]] = {}
    for row in rows:
        if row.status != "PASS":
            groups.setdefault((kind_of(row), abstracted(row.message)), []).append(row)
    found = []
    for (kind, sentence), own in groups.items():
        # The last one first, also of tests that began in the same millisecond, as those do that are skipped at once.
        timed = sorted(
            (row for row in reversed(own) if row.started_at), key=lambda row: str(row.started_at), reverse=True
        )
        found.append(Cause(kind, sentence, (*timed, *(row for row in own if not row.started_at))))
    order = list(CauseKind)
    return sorted(found, key=lambda cause: (order.index(cause.kind), -len(cause.tests), cause.sentence))
