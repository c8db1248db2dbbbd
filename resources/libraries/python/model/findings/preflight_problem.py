"""A requirement of a testbed that is missing, found before anything is deployed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreflightProblem:
    """A missing requirement and its fix."""

    what: str
    fix: str = ""
    """How to fix it; empty where only the text says more."""

    def __str__(self) -> str:
        return f"{self.what}; {self.fix}" if self.fix else self.what
