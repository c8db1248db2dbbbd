"""Details behind the figures of a test: shares of instances, losses by hop, busy time of threads."""

from collections.abc import Iterable
from dataclasses import dataclass

from csit_utils.studies.density.analysis.losses import busiest_cpu
from resources.libraries.python.model.findings.evidence import HopLoss, ItemizedFigure, LocatedLosses, ThreadLoad, Usage
from resources.libraries.python.search.findings.limits import cause_in_words
from resources.libraries.python.search.findings.locate import by_owner
from resources.libraries.python.studies.density.model.record import DensityRecord

_LISTED = 40
"""Rows of a table of hops; the CSV file has all."""


@dataclass(frozen=True)
class OwnerLoss:
    """Losses of one owner."""

    owner: str
    lost: int
    share: float
    """Share of all lost packets."""
    busy: float | None
    """Busy time of its busiest data thread, in [0, 1]; None if unknown."""
    waiting: float | None


@dataclass(frozen=True)
class LossView:
    """Losses above the limit by hop."""

    heading: str
    offered_pps: float
    sent: int
    lost: int
    owners: tuple[OwnerLoss, ...]
    hops: tuple[tuple[HopLoss, str], ...]
    """With their causes in words."""
    more: int
    """Number of hops that are not listed."""
    threads: tuple[ThreadLoad, ...]
    usage: Usage | None


@dataclass(frozen=True)
class Shares:
    """A throughput figure by instance and direction."""

    item: ItemizedFigure
    verdict: tuple[str, ...]

    @property
    def title(self) -> str:
        """Heading."""
        where = {"MRR": "MRR, in overload", "ORR": "ORR, in overload", "overload": "in overload"}.get(self.item.number)
        return where or f"{self.item.number}, at its lower bound"


def shares_of(result: DensityRecord) -> tuple[Shares, ...]:
    """Return all throughput figures of a test by instance and direction."""
    return tuple(Shares(item, tuple(result.verdict.of(item.number))) for item in result.itemized)


def loss_view(found: LocatedLosses | None) -> LossView | None:
    """Losses by hop of a test; None where they were not looked for."""
    if found is None:
        return None
    lost = found.sent - found.received
    threads = found.usage.threads if found.usage else ()
    owners = tuple(_owner(owner, count, lost, threads) for owner, count in by_owner(found.hops).items())
    hops = tuple((hop, cause_in_words(hop)) for hop in found.hops[:_LISTED])
    which = "in the trials of MRR" if found.purpose == "mrr" else "in a trial beyond the bounds"
    busiest = tuple(sorted(threads, key=lambda thread: -(thread.running + thread.waiting)))
    more = max(0, len(found.hops) - _LISTED)
    return LossView(which, found.offered_pps, found.sent, lost, owners, hops, more, busiest, found.usage)


def _owner(owner: str, count: int, lost: int, threads: Iterable[ThreadLoad]) -> OwnerLoss:
    own = [thread for thread in threads if thread.owner == owner]
    return OwnerLoss(owner, count, count / max(1, lost), *busiest_cpu(own))
