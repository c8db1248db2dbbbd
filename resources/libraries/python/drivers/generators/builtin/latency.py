"""From time stamps to a latency report. Pure; it stands in the worker, which starts the sooner the less it imports."""

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport

_LONGEST_NS = 60_000_000_000
_DIGITS = 3


def latencies_ns(sent_ns: NDArray[np.int64], received_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Latency of the probes that have both stamps, sorted.

    A negative one (the clock was set in between) is left out.

    Args:
        sent_ns: by probe number, 0 where the kernel gave no stamp, shape (probes,).
        received_ns: likewise.
    """
    difference = received_ns - sent_ns
    return np.sort(difference[(sent_ns > 0) & (received_ns > 0) & (difference >= 0)])


def report(values_ns: NDArray[np.int64]) -> LatencyReport | None:
    """Percentiles and histogram of sorted latencies; None when there are none.

    Percentiles are samples, not bucket bounds: the smallest sample that the share of samples does not exceed.
    """
    if not len(values_ns):
        return None
    histogram = HdrHistogram(1, _LONGEST_NS, _DIGITS)
    values, counts = np.unique(np.clip(values_ns, 1, _LONGEST_NS), return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)

    def percentile(per_mille: int) -> int:
        return int(values_ns[-(-per_mille * len(values_ns) // 1000) - 1])

    return LatencyReport(
        min_ns=int(values_ns[0]),
        mean_ns=float(values_ns.mean()),
        p50_ns=percentile(500),
        p90_ns=percentile(900),
        p99_ns=percentile(990),
        p999_ns=percentile(999),
        max_ns=int(values_ns[-1]),
        histogram=histogram.encode().decode(),
    )
