"""A latency report in the result of a trial. Pure."""

from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport
from resources.libraries.python.model.trial import Direction, FlowLatency


def flow_latency(
    instance: int, direction: Direction, *, sent: int, received: int, values: LatencyReport | None
) -> FlowLatency:
    """Latency of a flow for the result of a trial.

    Args:
        instance: Of the flow.
        direction: Of the flow.
        sent: Packets that were to be timed.
        received: Those that came.
        values: Nanoseconds; None where no packet was timed.
    """
    return FlowLatency(
        instance=instance,
        direction=direction,
        sent=sent,
        received=received,
        min_ns=values.min_ns if values else None,
        mean_ns=values.mean_ns if values else None,
        p50_ns=values.p50_ns if values else None,
        p90_ns=values.p90_ns if values else None,
        p99_ns=values.p99_ns if values else None,
        p999_ns=values.p999_ns if values else None,
        max_ns=values.max_ns if values else None,
        histogram=values.histogram if values else None,
    )
