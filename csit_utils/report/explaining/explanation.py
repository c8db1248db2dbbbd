"""What every explanation says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """Everything that keeps a reader from misreading a number."""

    name: str
    title: str
    what: str
    unit: str
    how: str
    misread: str
