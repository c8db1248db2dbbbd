"""Conversion of the client's report to the result of a trial. Pure.

A server's HDR histogram holds whole microseconds, rounded down, with three significant digits. Each count is taken for
the middle of its microsecond: so a value is right within 0.5 us or 0.1 %, whichever is more, on top of the accuracy of
the server's time stamps. Where there is none, there are its buckets of one digit (10, 20, … 90, 100, …; 0 is all below
10 us): a percentile is then given as the upper end of its bucket where that is at most twice the lower end, else not at
all, and neither minimum, mean nor maximum is known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from resources.libraries.python.drivers.generators.builtin.flow_results import flow_latency
from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport
from resources.libraries.python.drivers.generators.trex.profile import load_group, probe_groups
from resources.libraries.python.drivers.generators.trex.wire import GroupCount, ProbeErrors, ProbeLatency, Report
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import FlowCount, FlowLatency, Trial, TrialResult
from resources.libraries.python.model.plan import Flow

_SHORT = 0.001
_LONG = 0.01
_LONG_S = 0.01
"""Sending is taken for as long as it was meant to be up to 1 % or 10 ms more, whichever is more: starting and looking
take some milliseconds themselves."""
_OWN_SHARE = 0.1
"""A trial in which the generator itself lost more than this share of all that was lost says nothing about the system:
with less, what the system lost decides all the same."""
_BUSY_PERCENT = 99.0
_MEANT_S = 2.0
"""The server's use of CPU is smoothed over seconds: of shorter trials it says more about those before."""


_LONGEST_NS = 60_000_000_000
_DIGITS = 3
_NS_PER_US = 1000
_FIRST_BOUND_US = 10
_PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_UNREADABLE = (HdrCookieException, HdrHistogramSettingsException, HdrLengthException, ValueError)
BUCKETS = "latency by buckets of one digit"


def merge(groups: Sequence[ProbeLatency]) -> LatencyReport | None:
    """Latency of all probes of a flow, of any size; None when none came back.

    Raises:
        CsitError: A histogram cannot be read.
    """
    if all(group.histogram is not None for group in groups):
        return _of_histograms([group.histogram or "" for group in groups])
    return _of_buckets(groups)


def _of_histograms(encoded: Iterable[str]) -> LatencyReport | None:
    ours, sum_ns = HdrHistogram(1, _LONGEST_NS, _DIGITS), 0
    for text in encoded:
        try:
            theirs = HdrHistogram.decode(text)
        except _UNREADABLE as error:
            raise CsitError(f"TRex gave a latency histogram that cannot be read: {text[:60]}") from error
        if not theirs.get_total_count():
            continue
        for item in theirs.get_recorded_iterator():
            middle_ns = min(item.value_iterated_to * _NS_PER_US + _NS_PER_US // 2, _LONGEST_NS)
            ours.record_value(middle_ns, item.count_added_in_this_iter_step)
            sum_ns += middle_ns * item.count_added_in_this_iter_step
    if not ours.get_total_count():
        return None
    p50, p90, p99, p999 = (int(ours.get_value_at_percentile(each)) for each in _PERCENTILES)
    # `get_mean_value` looks at every bucket, for tenths of a second.
    low, mean, high = int(ours.get_min_value()), sum_ns / ours.get_total_count(), int(ours.get_max_value())
    return LatencyReport(low, mean, p50, p90, p99, p999, high, ours.encode().decode())


def _of_buckets(groups: Iterable[ProbeLatency]) -> LatencyReport | None:
    counts = Counter[int]()
    for group in groups:
        counts.update(group.buckets)
    total = counts.total()
    if not total:
        return None
    ours = HdrHistogram(1, _LONGEST_NS, 1)
    for bound, count in counts.items():
        if count:
            ours.record_value(_upper_us(bound) * _NS_PER_US, count)
    p50, p90, p99, p999 = (_percentile_ns(counts, total, each) for each in _PERCENTILES)
    return LatencyReport(None, None, p50, p90, p99, p999, None, ours.encode().decode())


def _percentile_ns(counts: Mapping[int, int], total: int, percentile: float) -> int | None:
    below = 0
    for bound, count in sorted(counts.items()):
        below += count
        if below * 100 >= percentile * total:
            return _upper_us(bound) * _NS_PER_US if _upper_us(bound) <= 2 * bound else None
    return None


def _upper_us(bound: int) -> int:
    """The upper end of the bucket with this lower end."""
    width = _FIRST_BOUND_US
    while bound >= 10 * width:
        width *= 10
    return bound + width


def trial_result(
    trial: Trial,
    report: Report,
    flows: Sequence[Flow],
    started_at: str,
    total_duration_s: float,
    *,
    turned_away: int = 0,
) -> TrialResult:
    """Outcome of a trial.

    `flows`: Of the plan, in its order.
    `turned_away`: Packets that a full queue of the generator's ports did not let in, where the kernel counts them.

    Raises:
        CsitError: A latency histogram cannot be read.
    """
    counts = {count.group: count for count in report.groups}
    flow_counts = tuple(_count(flow, counts.get(load_group(index))) for index, flow in enumerate(flows))
    sent, longer_s = sum(flow.sent for flow in flow_counts), report.sending_s - trial.duration_s
    if report.aborted or longer_s <= max(_LONG * trial.duration_s, _LONG_S):
        longer_s = 0.0
    offered_s = trial.duration_s
    if report.aborted or longer_s:
        # The generator is never ahead of its schedule, even if it was stopped.
        offered_s = max(report.sending_s, sent / trial.load_pps if trial.load_pps > 0 else 0.0)
    dropped = turned_away + sum(port.receive_errors for port in report.ports)
    lost = sum(max(0, flow.sent - flow.received) for flow in flow_counts)
    lossy = any(count.received < count.sent for count in report.groups)
    mostly_its_own = lossy and dropped > _OWN_SHARE * lost
    limits = _limits(trial, report, sent, longer_s)
    # Where the trial lost nothing they are not its own: NICs count damaged frames of any sender as receive errors.
    sentence = f"{dropped:,} receive errors of the generator's ports, but no packet was lost"
    if lossy:
        sentence = f"the generator itself dropped {dropped:,} packets that had come back to its ports"
    limits += [sentence] if mostly_its_own else []
    remarks = [sentence] if dropped and not mostly_its_own else []
    notes = [*limits, *remarks, *_remarks(trial, report, flow_counts)]
    return TrialResult(
        trial=trial,
        started_at=started_at,
        offered_duration_s=offered_s,
        total_duration_s=total_duration_s,
        flows=flow_counts,
        latency=tuple(
            _latency(flow, probe_groups(index, len(trial.frame.parts)), report)
            for index, flow in enumerate(flows)
            if trial.probe_pps > 0
        ),
        aborted=report.aborted,
        generator_limited=bool(limits),
        note="; ".join(notes) or None,
    )


def _count(flow: Flow, count: GroupCount | None) -> FlowCount:
    sent, received = (count.sent, count.received) if count else (0, 0)
    return FlowCount(instance=flow.instance, direction=flow.direction, sent=sent, received=received)


def _limits(trial: Trial, report: Report, sent: int, longer_s: float) -> list[str]:
    """Why a trial says nothing about the system under test; nothing where it does.

    `longer_s`: How much longer sending certainly lasted than it was meant to; 0 where that is no matter.
    """
    limits = []
    planned = int(trial.load_pps * trial.duration_s)
    if trial.load_pps > 0 and not planned:
        limits.append(f"no packet of {trial.load_pps:g} pps falls into {trial.duration_s:g} s")
    if longer_s:
        limits.append(
            f"the generator took {longer_s * 1000:.0f} ms longer than {trial.duration_s:g} s to send the load"
            + (f", at {report.cpu_percent:.0f} % of its core" if report.cpu_percent else "")
        )
    if not report.aborted and sent < planned * (1 - _SHORT) - 1:
        limits.append(f"the generator offered {sent:,} of {planned:,} packets, {1 - sent / planned:.2%} short")
    elif not report.aborted and not report.finished:
        limits.append("the generator left packets unsent")
    unsent = sum(port.send_errors for port in report.ports)
    if unsent:
        limits.append(f"the generator's ports refused {unsent:,} packets")
    if report.queue_full:
        limits.append(f"the generator's sending queues were full {report.queue_full} times")
    if report.cpu_percent >= _BUSY_PERCENT and trial.duration_s >= _MEANT_S:
        limits.append(f"the generator's sending threads used {report.cpu_percent:.0f} % of their cores")
    return limits


def _remarks(trial: Trial, report: Report, flows: Sequence[FlowCount]) -> list[str]:
    remarks = []
    if not report.settled:
        remarks.append("packets were still arriving when the counters were read")
    surplus = sum(max(0, flow.received - flow.sent) for flow in flows)
    if surplus:
        remarks.append(f"{surplus:,} packets more came back than were sent")
    errors = _errors(report)
    if errors:
        remarks.append(f"probes: {errors}")
    if trial.probe_pps > 0 and any(probe.histogram is None and probe.buckets for probe in report.latency):
        remarks.append(f"{BUCKETS}: this server has no finer ones")
    return remarks


def _errors(report: Report) -> str:
    """Probes that came out of turn, in words."""
    texts = ("out of order", "duplicated", "came with a number too high", "came with a number too low")
    totals = [sum(getattr(probe.errors, name) for probe in report.latency) for name in ProbeErrors.model_fields]
    return ", ".join(f"{total} {text}" for total, text in zip(totals, texts, strict=True) if total)


def _latency(flow: Flow, groups: range, report: Report) -> FlowLatency:
    counts = [count for count in report.groups if count.group in groups]
    sent, received = sum(count.sent for count in counts), sum(count.received for count in counts)
    values = merge([probe for probe in report.latency if probe.group in groups])
    return flow_latency(flow.instance, flow.direction, sent=sent, received=received, values=values)
