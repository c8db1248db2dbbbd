"""From workers' reports to the result of a trial. Pure."""

from collections.abc import Sequence

from resources.libraries.python.drivers.generators.builtin.flow_latency import flow_latency
from resources.libraries.python.drivers.generators.builtin.wire import FlowReport, TrialReport
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.trial import FlowCount, Trial, TrialResult

_SHORT = 0.001
_LONG_S = 0.0012
"""1 ms, and a little for reading the clock."""
_LAG_S = 0.001
"""Less is what a sender of many flows has anyway."""


def trial_result(
    trial: Trial,
    reports: Sequence[TrialReport],
    flows: Sequence[tuple[Flow, FlowReport]],
    started_at: str,
    total_duration_s: float,
) -> TrialResult:
    """Put together what the workers say.

    Args:
        trial: what was asked.
        reports: one per worker.
        flows: every flow with what became of it.
        started_at: UTC, ISO 8601.
        total_duration_s: wall time of the whole trial.
    """
    limits = _limits(trial, reports)
    notes = [*limits, *_remarks(trial, reports, flows)]
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=max(report.offered_s for report in reports),
        total_duration_s=total_duration_s,
        flows=tuple(
            FlowCount(instance=flow.instance, direction=flow.direction, sent=report.sent, received=report.received)
            for flow, report in flows
        ),
        latency=tuple(
            flow_latency(
                flow.instance,
                flow.direction,
                sent=report.probes_sent,
                received=report.probes_received,
                values=report.latency,
            )
            for flow, report in flows
            if trial.probe_pps > 0
        ),
        aborted=any(report.aborted for report in reports),
        generator_limited=bool(limits),
        note="; ".join(notes) or None,
    )


def _limits(trial: Trial, reports: Sequence[TrialReport]) -> list[str]:
    """Why the intended load was not offered; nothing when it was."""
    if not trial.load_pps or any(report.aborted for report in reports):
        return []
    limits = []
    planned = sum(report.planned for report in reports)
    sent = sum(flow.sent for report in reports for flow in report.flows)
    if not planned:
        limits.append(f"no packet of {trial.load_pps:g} pps falls into {trial.duration_s:g} s")
    elif sent < planned * (1 - _SHORT):
        limits.append(f"generator offered {sent} of {planned} packets, {1 - sent / planned:.2%} short")
    error_s = max((abs(report.offered_s - report.expected_s) for report in reports if report.planned), default=0.0)
    if error_s > _LONG_S:
        limits.append(f"generator's sending time is {error_s * 1000:.1f} ms off")
    return limits


def _remarks(trial: Trial, reports: Sequence[TrialReport], flows: Sequence[tuple[Flow, FlowReport]]) -> list[str]:
    remarks = []
    lag_s = max(report.worst_lag_s for report in reports)
    if lag_s > _LAG_S:
        remarks.append(f"generator fell behind by up to {lag_s * 1000:.1f} ms and caught up")
    refused = sum(report.refused for _, report in flows)
    if refused:
        remarks.append(f"{refused} packets met a full queue at the generator's ports")
    for fallback in dict.fromkeys(report.fallback for report in reports if report.fallback):
        remarks.append(f"sent by the TX ring: {fallback}")
    if not all(report.settled for report in reports):
        remarks.append("packets were still arriving when the counters were read")
    surplus = sum(max(0, report.received - report.sent) for _, report in flows)
    if surplus:
        remarks.append(f"{surplus} packets more came back than were sent: they were late from an earlier trial")
    unstamped = sum(report.unstamped for _, report in flows)
    if trial.probe_pps > 0 and unstamped:
        remarks.append(f"{unstamped} received probes have no usable time stamps")
    return remarks
