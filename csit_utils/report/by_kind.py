"""What pages of one kind of characterization have in common."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from csit_utils.report.characterized import View
from csit_utils.report.figures import Figure
from csit_utils.report.published import Section


class Drawn(Protocol):
    """A characterization on its page."""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its plots."""


def keys_of_page(
    name: str,
    found: Sequence[View],
    made: Sequence[Drawn],
    papers: Sequence[Section] = (),
    compared: Sequence[Figure] = (),
) -> Mapping[str, object]:
    """Values for the template of a page: what is on it by `name`, whose results these are, all plots.

    Args:
        name: Of what is on the page.
        found: Its records.
        made: What is drawn of each.
        papers: Published figures beside them, as `papers`.
        compared: Plots of several records.
    """
    return {
        name: made,
        "simulated": any(view.record.simulated for view in found),
        "measured": any(not view.record.simulated for view in found),
        "papers": papers,
        "figures": [*compared, *(figure for each in (*made, *papers) for figure in each.figures)],
    }
