"""One line of a doctor's report."""

from enum import StrEnum

from resources.libraries.python.model.base import Frozen


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WISH = "wish"
    """Runs go on without it; figures may be worse, or some cells left out."""
    PROBLEM = "problem"
    """Runs fail, or their figures are wrong."""


class Finding(Frozen):
    """What is so at a place of the topology, and how to mend it where that is wrong."""

    level: Level
    place: str
    """Where in the topology, such as `nodes.DUT1`."""
    check: str
    """What was looked at, in a word or two."""
    what: str
    """With numbers."""
    mend: str = ""
    """A command or a setting; empty where nothing is wrong."""

    def __str__(self) -> str:
        return f"{self.place}: {self.check}: {self.what}{f'; {self.mend}' if self.mend else ''}"


def ok(place: str, check: str, what: str) -> Finding:
    """Nothing is wrong."""
    return Finding(level=Level.OK, place=place, check=check, what=what)


def wish(place: str, check: str, what: str, mend: str) -> Finding:
    """It could be better."""
    return Finding(level=Level.WISH, place=place, check=check, what=what, mend=mend)


def problem(place: str, check: str, what: str, mend: str) -> Finding:
    """It cannot stay so."""
    return Finding(level=Level.PROBLEM, place=place, check=check, what=what, mend=mend)
