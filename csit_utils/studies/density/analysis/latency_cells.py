"""Latency over the density matrix: a percentile of the worst instance and direction, or why it is not known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from csit_utils.dataset.rows import LatencyRow

BOTH = "worst of both"


class Quantile(StrEnum):
    """A percentile that records keep."""

    P50 = "p50"
    P99 = "p99"
    P999 = "p99.9"

    @property
    def share(self) -> float:
        """In [0, 1]."""
        return {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}[self.value]

    @property
    def samples_needed(self) -> int:
        """With fewer samples the largest one would be shown for the percentile."""
        return round(1 / (1 - self.share))

    def of(self, row: LatencyRow) -> int | None:
        """The figure of one instance and direction, in nanoseconds."""
        return {"p50": row.p50_ns, "p99": row.p99_ns, "p99.9": row.p999_ns}[self.value]


class UnknownReason(StrEnum):
    """Reason why a percentile is unknown."""

    LOST = "probes lost"
    FEW = "few samples"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class LatencyFigure:
    """A percentile of several instances and directions at one load."""

    value_ns: int | None
    """Latency of the worst one."""
    best_ns: int | None
    """Latency of the best one."""
    instance: int
    direction: str
    """Direction of the worst one, or of the one that makes it unknown."""
    load_pps: float
    samples: int | None
    """Fewest samples of any of them; None if unknown."""
    unknown: UnknownReason | None = None
    reason: str = ""


def loads_of(rows: Iterable[LatencyRow]) -> list[str]:
    """Names of all loads, light ones first."""
    return sorted({row.load for row in rows}, key=_weight)


def _weight(load: str) -> tuple[int, str]:
    """PDR0, PDR10, PDR50, PDR90: by the number."""
    digits = "".join(filter(str.isdigit, load))
    return (int(digits) if digits else 0, load)


def figure(rows: Sequence[LatencyRow], quantile: Quantile, load: str, direction: str = BOTH) -> LatencyFigure | None:
    """The worst of a test's instances at one load; None where that was not measured.

    A percentile of all packets that were sent is unknown when as many probes are lost as lie above it: the lost ones
    may have been the slowest. One such instance makes the worst of all unknown.

    `direction`: `forward`, `reverse`, or the worse of both.
    """
    chosen = [row for row in rows if row.load == load and direction in (BOTH, row.direction)]
    if not chosen:
        return None
    counts = [row.received for row in chosen]
    samples = None if None in counts else min(count for count in counts if count is not None)
    for row in chosen:
        doubt = _doubt(row, quantile)
        if doubt is not None:
            return LatencyFigure(None, None, row.instance, row.direction, row.load_pps, samples, *doubt)
    known = [(value, row) for row in chosen if (value := quantile.of(row)) is not None]
    value, worst = max(known, key=lambda pair: pair[0])
    best = min(found for found, _ in known)
    return LatencyFigure(value, best, worst.instance, worst.direction, worst.load_pps, samples)


def _doubt(row: LatencyRow, quantile: Quantile) -> tuple[UnknownReason, str] | None:
    """Reason why a flow's percentile is unknown; None where it is."""
    sent, received = row.sent, row.received
    if sent is not None and received is not None and received < quantile.share * sent:
        return (
            UnknownReason.LOST,
            f"{sent - received:,} of {sent:,} probes were lost, and {quantile} of all may be one of them",
        )
    if received is not None and received < quantile.samples_needed:
        return UnknownReason.FEW, f"{quantile} needs {quantile.samples_needed:,} samples, {received:,} available"
    if quantile.of(row) is None:
        return UnknownReason.NOT_MEASURED, f"no {quantile} was recorded"
    return None
