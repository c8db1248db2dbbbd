"""Findings of checks: one line of the doctor's report each."""

from enum import StrEnum

from resources.libraries.python.model.base import Frozen


class Severity(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """Runs work; figures may be worse, or some cells left out."""
    PROBLEM = "problem"
    """Runs fail, or their figures are wrong."""


class CheckFinding(Frozen):
    """The result of one check at one place of the topology, and how to fix it."""

    level: Severity
    place: str
    """Where in the topology, such as `nodes.DUT1`."""
    check: str
    """Name of the check, in a word or two."""
    what: str
    """With numbers."""
    fix: str = ""
    """A command or a setting; empty where nothing is wrong."""

    def __str__(self) -> str:
        return f"{self.place}: {self.check}: {self.what}{f'; {self.fix}' if self.fix else ''}"


def ok(place: str, check: str, what: str) -> CheckFinding:
    """Passed."""
    return CheckFinding(level=Severity.OK, place=place, check=check, what=what)


def warning(place: str, check: str, what: str, fix: str) -> CheckFinding:
    """Make a finding that does not stop runs."""
    return CheckFinding(level=Severity.WARNING, place=place, check=check, what=what, fix=fix)


def problem(place: str, check: str, what: str, fix: str) -> CheckFinding:
    """Make a finding that makes runs fail."""
    return CheckFinding(level=Severity.PROBLEM, place=place, check=check, what=what, fix=fix)
