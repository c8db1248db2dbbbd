"""The ports of a worker and what a trial does with them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from resources.libraries.python.drivers.generators.builtin import kernel, latency
from resources.libraries.python.drivers.generators.builtin.abort import LossWatch
from resources.libraries.python.drivers.generators.builtin.counters import Counters, Lateness, settle
from resources.libraries.python.drivers.generators.builtin.parallel_calls import Aside, together
from resources.libraries.python.drivers.generators.builtin.receiver import ProbeReceiver
from resources.libraries.python.drivers.generators.builtin.schedule import schedules
from resources.libraries.python.drivers.generators.builtin.sender import Sender, SentTraffic
from resources.libraries.python.drivers.generators.builtin.wire import (
    FlowReport,
    LatencyReport,
    TrialReport,
    TrialSpec,
    WorkerSpec,
)
from resources.libraries.python.drivers.generators.ring.sender import RingSender
from resources.libraries.python.drivers.generators.xdp.sender import XdpSender
from resources.libraries.python.errors import CsitError, NotReady, Unsupported

_LINK_S = 3.0
_LINK_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class _Probed:
    """What became of the probes of one flow."""

    received: int = 0
    latency: LatencyReport | None = None
    unstamped: int = 0


class FlowPorts:
    """Ports of the worker's flows, and the senders on them."""

    def __init__(self, spec: WorkerSpec, stop_asked: Callable[[], bool] = lambda: False) -> None:
        """Wait until every port has a carrier, and find out how to send.

        Args:
            spec: flows, and the way of sending that is wanted.
            stop_asked: whether the driver wants a running trial to end.

        Raises:
            CsitError: there is no such port, or XDP is a must and does not work.
            NotReady: a port has no carrier.
        """
        self._flows = spec.flows
        self._stop_asked = stop_asked
        _wait_for_carrier({name for flow in spec.flows for name in (flow.tx_interface, flow.rx_interface)})
        self._aside = Aside()
        self._counters = Counters(
            [flow.rx_interface for flow in spec.flows], [flow.tx_interface for flow in spec.flows]
        )
        self._lateness = Lateness()
        self._xdp: XdpSender | None = None
        self.fallback: str | None = None
        """Why not by XDP, where that was wanted."""
        if spec.sending != "ring":
            try:
                self._xdp = XdpSender(spec.flows)
            except Unsupported as error:
                if spec.sending == "xdp":
                    raise CsitError(f"the generator cannot send by {XdpSender.name}: {error}") from error
                self.fallback = str(error)
        self._ring = RingSender(spec.flows)

    @property
    def sending(self) -> str:
        """How frames are sent as a rule, in words."""
        return (self._xdp or self._ring).name

    def trial(self, spec: TrialSpec, ready: Callable[[], None]) -> TrialReport:
        """Run one trial.

        Args:
            spec: what to send.
            ready: called when everything is prepared; sending starts when it returns.

        Raises:
            CsitError: a port is gone, down or refuses the frames.
        """
        load, probes = schedules(spec, len(self._flows))
        sender, fallback = self._prepared(spec)
        receivers = self._receivers(probes.per_flow)
        try:
            refused, before = self._counters.refused(), self._received()
            watch = LossWatch(self._counters.received, before, spec.most_lost, self._stop_asked)
            ready()
            sent = sender.send(watch)
            complete = tuple(map(sum, zip(before, sent.packets, sent.probes, strict=True)))
            after, settled = settle(self._counters.received, complete, before, self._lateness.quiet_s)
            probed = _probed(sent, receivers) or [_Probed()] * len(self._flows)
            refused = _difference(self._counters.refused(), refused)
        finally:
            self._aside.close(receivers)
        received = _difference(after, before)
        self._lateness.end(received, _difference(complete, before), after)
        return TrialReport(
            planned=load.total,
            offered_s=sent.offered_s,
            expected_s=sent.offered_s if spec.load_pps is None or sent.aborted else load.length_s or spec.duration_s,
            worst_lag_s=sent.worst_lag_s,
            settled=settled,
            flows=tuple(
                FlowReport(
                    sent=sent.packets[flow],
                    received=received[flow] - probed[flow].received,
                    refused=refused[flow],
                    probes_sent=sent.probes[flow],
                    probes_received=probed[flow].received,
                    latency=probed[flow].latency,
                    unstamped=probed[flow].unstamped,
                )
                for flow in range(len(self._flows))
            ),
            sending=sender.name,
            fallback=fallback,
            aborted=sent.aborted,
        )

    def _received(self) -> tuple[int, ...]:
        """Counters before a trial, when those of the one before have stopped."""
        before = self._counters.received()
        if not self._lateness.begin(before):
            return before
        return settle(self._counters.received, None, quiet_s=self._lateness.quiet_s)[0]

    def _prepared(self, spec: TrialSpec) -> tuple[Sender, str | None]:
        """Return the prepared sender of this trial, and why it is not the usual one."""
        fallback = None
        if self._xdp:
            try:
                self._xdp.prepare(spec)
            except Unsupported as error:
                fallback = str(error)
            else:
                return self._xdp, None
        self._ring.prepare(spec)
        return self._ring, fallback

    def _receivers(self, probes: int) -> list[ProbeReceiver]:
        if not probes:
            return []
        return together([partial(ProbeReceiver, flow.rx_interface, probes) for flow in self._flows])

    def close(self) -> None:
        if self._xdp:
            self._xdp.close()
        self._ring.close()
        self._aside.wait()
        self._counters.close()


def _wait_for_carrier(interfaces: set[str]) -> None:
    started = time.monotonic()
    while down := sorted(interface for interface in interfaces if not kernel.link_is_up(interface)):
        waited_s = time.monotonic() - started
        if waited_s > _LINK_S:
            raise NotReady("carrier of the generator's ports", waited_s, f"{', '.join(down)} down")
        time.sleep(_LINK_POLL_S)


def _difference(after: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    return tuple(late - early for late, early in zip(after, before, strict=True))


def _probed(sent: SentTraffic, receivers: Sequence[ProbeReceiver]) -> list[_Probed]:
    probed = []
    for flow, receiver in enumerate(receivers):
        arrivals = receiver.collect()
        sent_ns = sent.stamps_ns[flow] if sent.stamps_ns is not None else arrivals.sent_ns
        values_ns = latency.latencies_ns(sent_ns, arrivals.arrived_ns)
        unstamped = max(0, arrivals.received - len(values_ns))
        probed.append(_Probed(arrivals.received, latency.report(values_ns), unstamped))
    return probed
