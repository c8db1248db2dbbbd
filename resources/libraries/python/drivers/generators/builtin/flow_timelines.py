"""What a worker reports of a flow over time, as a result. Apart from `timeline`, as workers do not load models."""

from resources.libraries.python.drivers.generators.builtin.wire import TimelineReport
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.trial import FlowTimeline, Gap


def flow_timeline(flow: Flow, found: TimelineReport, bin_s: float) -> FlowTimeline:
    """A worker's timeline of a flow as a result."""
    return FlowTimeline(
        instance=flow.instance,
        direction=flow.direction,
        begin_ns=found.begin_ns,
        bin_s=bin_s,
        sent=tuple(found.sent),
        received=tuple(found.received),
        delay_ns=tuple(found.delay_ns),
        worst_ns=tuple(found.worst_ns),
        gaps=tuple(
            Gap(first=first, packets=packets, begin_ns=begin, end_ns=end) for first, packets, begin, end in found.gaps
        ),
        more_gaps=found.more_gaps,
        duplicates=found.duplicates,
        arrivals_ns=None if found.arrivals_ns is None else (found.arrivals_ns[0], found.arrivals_ns[1]),
    )
