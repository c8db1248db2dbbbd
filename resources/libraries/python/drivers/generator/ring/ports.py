"""The ports of a worker and what a trial does with them."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Thread

from resources.libraries.python.drivers.generator.ring import kernel, latency
from resources.libraries.python.drivers.generator.ring.counters import Counters, settle
from resources.libraries.python.drivers.generator.ring.probe import ProbeReceiver, ProbeSender
from resources.libraries.python.drivers.generator.ring.schedule import Schedule
from resources.libraries.python.drivers.generator.ring.sending import send_paced, send_unpaced
from resources.libraries.python.drivers.generator.ring.together import together
from resources.libraries.python.drivers.generator.ring.tx_ring import TxRing
from resources.libraries.python.drivers.generator.ring.wire import (
    FlowReport,
    FlowSpec,
    LatencyReport,
    TrialReport,
    TrialSpec,
)
from resources.libraries.python.errors import NotReady

_LINK_S = 3.0
_LINK_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class _Probed:
    """What became of the probes of one flow."""

    sent: int = 0
    received: int = 0
    latency: LatencyReport | None = None
    unstamped: int = 0


class Ports:
    """The worker's flows with their rings, which stay from trial to trial as long as the frame sizes do."""

    def __init__(self, flows: Sequence[FlowSpec]) -> None:
        """Wait until every port has a carrier.

        Raises:
            CsitError: there is no such port.
            NotReady: it has no carrier.
        """
        self._flows = tuple(flows)
        _wait_for_carrier({name for flow in flows for name in (flow.tx_interface, flow.rx_interface)})
        self._counters = Counters([flow.rx_interface for flow in flows])
        self._pattern: tuple[int, ...] = ()
        self._rings: list[TxRing] = []
        self._senders: list[ProbeSender] = []
        self._closing: list[Thread] = []

    def trial(self, spec: TrialSpec, ready: Callable[[], None]) -> TrialReport:
        """Run one trial.

        Args:
            spec: what to send.
            ready: called when everything is prepared; sending starts when it returns.

        Raises:
            CsitError: a port is gone, down or refuses the frames.
        """
        flows = len(self._flows)
        self._fill(spec.frame_bytes)
        schedule = Schedule.of(spec.load_pps or 0.0, flows, spec.duration_s)
        probe_schedule = Schedule.of(spec.probe_pps * flows, flows, spec.duration_s)
        senders, receivers = self._probes_ready(spec, probe_schedule.per_flow)
        try:
            refused = [ring.refused for ring in self._rings]
            before = self._counters.read()
            ready()
            if spec.load_pps is None:
                sent = send_unpaced(self._rings, spec.duration_s)
            else:
                sent = send_paced(self._rings, schedule, senders, probe_schedule)
            probes_sent = [sender.sent for sender in senders] or [0] * flows
            complete = tuple(map(sum, zip(before, sent.packets, probes_sent, strict=True)))
            after, settled = settle(self._counters.read, complete)
            probed = [_probed(*pair) for pair in zip(senders, receivers, strict=True)] or [_Probed()] * flows
        finally:
            self._close_aside(receivers)
        return TrialReport(
            planned=schedule.total,
            offered_s=sent.offered_s,
            expected_s=sent.offered_s if spec.load_pps is None else schedule.length_s or spec.duration_s,
            worst_lag_s=sent.worst_lag_s,
            settled=settled,
            flows=tuple(
                FlowReport(
                    sent=sent.packets[flow],
                    received=after[flow] - before[flow] - probed[flow].received,
                    refused=self._rings[flow].refused - refused[flow],
                    probes_sent=probed[flow].sent,
                    probes_received=probed[flow].received,
                    latency=probed[flow].latency,
                    unstamped=probed[flow].unstamped,
                )
                for flow in range(flows)
            ),
        )

    def _fill(self, pattern: tuple[int, ...]) -> None:
        if pattern != self._pattern:
            self._empty()
            self._rings = together([partial(TxRing, flow, pattern) for flow in self._flows])
            self._pattern = pattern

    def _empty(self) -> None:
        self._pattern = ()
        self._close_aside(self._rings)
        self._rings = []

    def close(self) -> None:
        """Give everything back."""
        self._empty()
        self._close_aside(self._senders)
        self._senders = []
        for thread in self._closing:
            thread.join()
        self._counters.close()

    def _close_aside(self, sockets: Iterable[TxRing | ProbeSender | ProbeReceiver]) -> None:
        """Closing takes 20 ms for which nobody needs to wait."""
        self._closing = [thread for thread in self._closing if thread.is_alive()]
        for one in sockets:
            self._closing.append(Thread(target=one.close))
            self._closing[-1].start()

    def _probes_ready(self, spec: TrialSpec, probes: int) -> tuple[list[ProbeSender], list[ProbeReceiver]]:
        if not probes:
            return [], []
        if not self._senders:
            self._senders = [ProbeSender(flow) for flow in self._flows]
        for sender in self._senders:
            sender.prepare(spec.frame_bytes, probes)
        receivers = together([partial(ProbeReceiver, flow.rx_interface, probes) for flow in self._flows])
        return self._senders, receivers


def _wait_for_carrier(interfaces: set[str]) -> None:
    started = time.monotonic()
    while down := sorted(interface for interface in interfaces if not kernel.link_is_up(interface)):
        waited_s = time.monotonic() - started
        if waited_s > _LINK_S:
            raise NotReady("carrier of the generator's ports", waited_s, f"{', '.join(down)} down")
        time.sleep(_LINK_POLL_S)


def _probed(sender: ProbeSender, receiver: ProbeReceiver) -> _Probed:
    received, arrived_ns = receiver.collect()
    values_ns = latency.latencies_ns(sender.stamps_ns(), arrived_ns)
    return _Probed(sender.sent, received, latency.report(values_ns), max(0, received - len(values_ns)))
