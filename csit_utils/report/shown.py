"""What the pages of one report are made from, worked out once for all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from csit_utils.analysis.answers import Evidence, evidence
from csit_utils.dataset.contents import Contents
from csit_utils.dataset.rows import TestRow
from csit_utils.report.blocks import SystemView, system_views


class Shown:
    """Contents, and what several pages make of them."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents

    @property
    def rows(self) -> Sequence[TestRow]:
        """One row per test."""
        return self.contents.tests

    @cached_property
    def evidence(self) -> Evidence:
        """Counts by instance and latency, for answers."""
        return evidence(self.rows, self.contents.instances(), self.contents.latency(), self.contents.refused)

    @cached_property
    def systems(self) -> Sequence[SystemView]:
        """A view per system, measured ones first."""
        return system_views(self.rows, self.contents.refused, self.evidence)

    @cached_property
    def simulated(self) -> bool:
        """Whether any result came from a model."""
        return any(row.simulated for row in self.rows)

    @cached_property
    def measured(self) -> bool:
        """Whether any result came from real packets."""
        return any(row.simulated is False for row in self.rows)

    @cached_property
    def not_passed(self) -> Sequence[TestRow]:
        """Tests that failed or were skipped."""
        return [row for row in self.rows if row.status != "PASS"]


@dataclass(frozen=True)
class Page:
    """One page of the report: a file of its own in a site, a part of the one page otherwise."""

    name: str
    """Of its file, without `.html`."""
    title: str
    """In the navigation."""
    build: Callable[[Shown], Mapping[str, object] | None]
    """Values for the template `pages/{name}.html.j2`; None where there is nothing to show.

    `figures` among them is a list of `Figure`; `count` a number for the navigation that wants attention.
    """
