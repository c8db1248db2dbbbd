"""Verdicts of the figures of a test, and of a cell over several runs."""

from collections.abc import Iterable

from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import TestRow

_SHORT = {
    "no-traffic": "no traffic",
    "generator-bound": "TG",
    "vswitch-bound": "vSwitch",
    "nf-bound": "NF",
    "below-range": "below range",
    "affinity-lost": "moved",
    "host-noise": "host",
    "unqualified": "TG?",
    "oversubscribed": "shared",
}
"""Short forms of verdicts."""


def verdict_of(row: TestRow, metric: Measure) -> tuple[str, ...]:
    """Return the verdict kinds of a figure, most important first; those of the whole test if the row has no others."""
    own: str | None = getattr(row, f"{metric.lower()}_verdict")
    return tuple((own or row.verdicts).split())


def verdict_of_runs(runs: Iterable[TestRow], metric: Measure) -> tuple[str, ...]:
    """Return the verdict kinds of a figure over several runs of a cell."""
    return tuple(dict.fromkeys(kind for row in runs for kind in verdict_of(row, metric)))


def short(kinds: Iterable[str]) -> str:
    """Return a verdict in a word or two; kinds with their own mark (oversubscribed) only if there are no others."""
    every = list(kinds)
    chosen = [kind for kind in every if kind != "oversubscribed"] or every
    return ", ".join(_SHORT.get(kind, kind) for kind in chosen[:2])
