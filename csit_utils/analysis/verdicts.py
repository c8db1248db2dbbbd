"""The verdict of each number of a test, and of a cell that was measured several times."""

from collections.abc import Iterable

from csit_utils.analysis.grouping import Metric
from csit_utils.dataset.rows import TestRow

_SHORT = {
    "no-traffic": "no traffic",
    "generator-bound": "TG",
    "vswitch-bound": "vSwitch",
    "nf-bound": "NF",
    "below-range": "below range",
    "affinity-lost": "moved",
    "oversubscribed": "shared",
}
"""Where there is room for a word only: what limits, or what is wrong."""


def verdict_of(row: TestRow, metric: Metric) -> tuple[str, ...]:
    """Kinds of one number of a test, most important first; of the whole test where its row tells no more."""
    own = {
        Metric.NDR: row.ndr_verdict,
        Metric.PDR: row.pdr_verdict,
        Metric.SOAK: row.soak_verdict,
        Metric.MRR: row.mrr_verdict,
        Metric.ORR: row.orr_verdict,
    }[metric]
    return tuple((own or row.verdicts).split())


def verdict_of_runs(runs: Iterable[TestRow], metric: Metric) -> tuple[str, ...]:
    """Kinds of one number over several runs of a cell."""
    return tuple(dict.fromkeys(kind for row in runs for kind in verdict_of(row, metric)))


def short(kinds: Iterable[str]) -> str:
    """A verdict in a word or two; what has a mark of its own (oversubscribed) only where it is all there is."""
    every = list(kinds)
    chosen = [kind for kind in every if kind != "oversubscribed"] or every
    return ", ".join(_SHORT.get(kind, kind) for kind in chosen[:2])
