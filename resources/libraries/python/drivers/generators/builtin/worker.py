"""The worker: a process in the generator's namespace, on the generator's CPU, that runs trials on request.

`python -m resources.libraries.python.drivers.generators.builtin.worker`. In comes its specification as a line of JSON,
out goes how it will send; then per trial in comes `prepare`, out goes `ready` (frames made, counters read), in comes
`go`, and out goes the report; `stop` in between ends the trial early. Instead of any answer there may be an error; one
about the specification, and the end of the input, end the worker.
"""

import gc
import os
import time
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.dialogue import JsonPipe
from resources.libraries.python.drivers.generators.builtin import frames, kernel, wire
from resources.libraries.python.drivers.generators.builtin.arrivals import (
    ArrivalRing,
    gap_report,
    latencies_ns,
    latency_report,
    timeline,
)
from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad
from resources.libraries.python.drivers.generators.builtin.counters import Counters, QuietTime, settle
from resources.libraries.python.drivers.generators.builtin.parallel_calls import BackgroundCloser, together
from resources.libraries.python.drivers.generators.builtin.sender import (
    LossWatch,
    Schedule,
    Sender,
    SentTraffic,
    schedules,
)
from resources.libraries.python.drivers.generators.builtin.wire import (
    FlowReport,
    FlowSpec,
    Sending,
    TrialReport,
    TrialSpec,
    WorkerSpec,
)
from resources.libraries.python.drivers.generators.losses import count_losses
from resources.libraries.python.drivers.generators.ring.sender import RingSender, XdpSocketSender
from resources.libraries.python.drivers.generators.xdp.bpf import listen
from resources.libraries.python.drivers.generators.xdp.receiver import FlowReceiver, most_late
from resources.libraries.python.drivers.generators.xdp.sender import XdpSender
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.host.sockets.packet_ring import PacketRing
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.request.capture import read_capture
from resources.libraries.python.parent_death import die_with_parent

_HIGHEST = -20
_LINK_S = 3.0
_LINK_POLL_S = 0.01
_SLOT_BYTES = 256
_SPARE_SLOTS = 16
_MAX_SLOTS = 1 << 20
"""256 MB. Probes beyond are counted, but not timed."""
_PROBE = np.dtype([("number", ">u4"), ("stamp", ">u8")])
_SENDERS: dict[Sending, tuple[tuple[type[XdpSender] | type[XdpSocketSender], bool], ...]] = {
    "auto": ((XdpSender, False),),
    "xdp": ((XdpSender, True),),
    "af_xdp": ((XdpSocketSender, True), (XdpSender, False)),
    "ring": (),
}
"""What sends before the TX ring, which sends all else, and whether it must. AF_XDP sockets do not number frames."""
_LISTED, _FEWEST_LISTED = 1000, 20
"""Loss periods that a report lists of all flows together, and at least of each."""


class _Exchange(JsonPipe):
    """The worker's end of the conversation with its driver."""

    def stop_asked(self) -> bool:
        """Return whether the driver has sent something while a trial runs: only `stop` can that be."""
        if not self.has_input():
            return False
        self.hear()
        return True

    def ready(self) -> None:
        """Report ready and wait for `go`; without it the driver has exited, and so does this process."""
        self.say({"ready": True})
        if self.hear() != {"do": "go"}:
            raise SystemExit("no word to go: the driver is gone")


def _filter(*, ipv6: bool) -> bytes:
    """The program that lets probes pass; a packet socket of one protocol sees no other packets."""
    # ldb [23 or 20]; jne UDP, drop; ldh [36 or 56]; jne port, drop; ret snap; drop: ret 0
    more = frames.IPV6_MORE * ipv6
    return kernel.classic_bpf(
        (0x30, 0, 0, 20 if ipv6 else 23),
        (0x15, 0, 3, frames.PROBE_PROTOCOL),
        (0x28, 0, 0, 36 + more),
        (0x15, 0, 1, frames.PROBE_PORT),
        (0x06, 0, 0, frames.PROBE_BYTES + more),
        (0x06, 0, 0, 0),
    )


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """The probes of a flow that came back."""

    received: int
    """Frames, duplicates included."""
    sent_ns: NDArray[np.int64]
    """When each left according to its own time stamp, by number: nanoseconds since the epoch, 0 where it has none."""
    arrived_ns: NDArray[np.int64]
    """When each came, 0 where it did not."""


class _ProbeReceiver(PacketRing):
    """Keeps the first bytes and the arrival time of every probe frame that comes back.

    The kernel stamps a frame when it writes it here. Asking for the earlier stamp of SO_TIMESTAMPNS would make the
    kernel read the clock for every packet of the machine, the load in the system under test included.
    """

    def __init__(self, flow: FlowSpec, probes: int) -> None:
        """Open the ring.

        Raises:
            CsitError: the kernel refused.
        """
        self._probes = probes
        self._number_offset = frames.NUMBER_OFFSET + frames.IPV6_MORE * flow.ipv6
        program = _filter(ipv6=flow.ipv6)
        protocol = kernel.ETH_P_IPV6 if flow.ipv6 else kernel.ETH_P_IP
        slots = min(probes + _SPARE_SLOTS, _MAX_SLOTS)
        super().__init__(flow.rx_interface, slots, protocol, _SLOT_BYTES, program)

    def collect(self) -> _Arrivals:
        """Counts of packets that arrived so far."""
        received, _ = self.counts()
        came = self.read(self._number_offset, _PROBE.itemsize)
        sent, arrived = np.zeros(self._probes, dtype=np.int64), np.zeros(self._probes, dtype=np.int64)
        probes = came.parts.copy().view(_PROBE)[:, 0]
        known = probes["number"] < self._probes
        # backwards, so that of duplicates the first remains
        numbers = probes["number"][known][::-1].astype(np.int64)
        arrived[numbers] = came.stamps_ns[known][::-1]
        tai = probes["stamp"][known][::-1].astype(np.int64)
        sent[numbers] = np.where(tai > 0, tai - kernel.tai_offset_ns(), 0)
        return _Arrivals(received, sent, arrived)


class _FlowPorts:
    """Ports of the worker's flows, and the senders on them."""

    def __init__(self, spec: WorkerSpec, exchange: _Exchange) -> None:
        """Wait until every port has a carrier, and find out how to send.

        `spec`: Flows, and the way of sending that is wanted.
        `exchange`: Says whether the driver wants a running trial to end, and lets sending begin.

        Raises:
            CsitError: there is no such port, or XDP is a must and does not work.
            NotReady: a port has no carrier.
        """
        self._flows = spec.flows
        self._exchange = exchange
        wait_until("carrier of the generator's ports", self._down, _LINK_S, pause_s=_LINK_POLL_S)
        self._aside = BackgroundCloser()
        self._counters = Counters(
            [flow.rx_interface for flow in spec.flows], [flow.tx_interface for flow in spec.flows]
        )
        self._quiet = QuietTime()
        self._captured = CapturedLoad(read_capture(b64decode(spec.capture), "capture")) if spec.capture else None
        self._senders: list[Sender] = []
        """In the order in which trials try them."""
        self.fallback: str | None = None
        """Why not by XDP, where that was wanted."""
        for make, is_must in _SENDERS[spec.sending]:
            try:
                self._senders.append(make(spec.flows, self._captured))
            except Unsupported as error:
                if is_must:
                    raise CsitError(f"the generator cannot send by {make.name}: {error}") from error
                self.fallback = None if self._senders else str(error)
        self._senders.append(RingSender(spec.flows, self._captured))

    def _down(self) -> str:
        names = {name for flow in self._flows for name in (flow.tx_interface, flow.rx_interface)}
        down = sorted(name for name in names if not kernel.link_is_up(name))
        return f"{', '.join(down)} down" if down else ""

    @property
    def sending(self) -> str:
        """How frames are sent as a rule, in words."""
        return self._senders[0].name

    def trial(self, spec: TrialSpec) -> TrialReport:
        """Run one trial; sending starts when everything is prepared and the driver says `go`.

        Raises:
            CsitError: a port is gone, down or refuses the frames.
        """
        load, probes = schedules(spec, len(self._flows))
        sender, fallback = self._prepared(spec)
        numbers = load.per_flow if spec.numbered else probes.per_flow
        by_probes, interfaces = numbers and not spec.losses, [flow.rx_interface for flow in self._flows]
        receivers = together([partial(_ProbeReceiver, flow, numbers) for flow in self._flows if by_probes])
        counting = self._counting(spec, numbers) if spec.losses else []
        rings = together([partial(ArrivalRing, name, load.per_flow) for name in interfaces if spec.gaps])
        try:
            refused, before = self._counters.refused(), self._received()
            watch = LossWatch(self._counters.received, before, spec.most_lost, self._exchange.stop_asked)
            self._exchange.ready()
            begun_ns = time.time_ns()
            sent = sender.send(watch)
            complete = tuple(map(sum, zip(before, sent.packets, sent.probes, strict=True)))
            settled = settle(self._counters.received, complete, before, self._quiet.quiet_s)
            received = _difference(settled.counts, before)
            if spec.losses:
                flows = _counted(sent, counting, load, begun_ns)
            elif spec.timeline_ns:
                flows = _numbered(sent, receivers, load, begun_ns, spec.timeline_ns)
            else:
                flows = _unnumbered(sent, receivers, received, _difference(self._counters.refused(), refused), rings)
        finally:
            self._aside.close([*receivers, *counting, *rings])
        self._quiet.end(received, _difference(complete, before), settled)
        return TrialReport(
            planned=load.total,
            offered_s=sent.offered_s,
            expected_s=sent.offered_s if spec.load_pps is None or sent.aborted else load.length_s or spec.duration_s,
            worst_lag_s=sent.worst_lag_s,
            settled=settled.stopped,
            flows=tuple(flows),
            sending=sender.name,
            fallback=fallback,
            aborted=sent.aborted,
        )

    def _received(self) -> tuple[int, ...]:
        """Counters before a trial, when those of the one before have stopped."""
        before = self._counters.received()
        if not self._quiet.begin(before):
            return before
        return settle(self._counters.received, None, quiet_s=self._quiet.quiet_s).counts

    def _prepared(self, spec: TrialSpec) -> tuple[Sender, str | None]:
        """Return the prepared sender of this trial, and why it is not the usual one."""
        fallback = None
        *others, last = sorted(self._senders, key=lambda sender: spec.numbered and not sender.numbers)
        for sender in others:
            try:
                sender.prepare(_for(sender, spec, len(self._flows)))
            except Unsupported as error:
                fallback = fallback or str(error)
            else:
                return sender, fallback
        last.prepare(_for(last, spec, len(self._flows)))
        return last, fallback

    def _counting(self, spec: TrialSpec, numbers: int) -> list[FlowReceiver]:
        """Programs that count the frames of each flow.

        Raises:
            Unsupported: There are too many frames, or the programs cannot be attached.
        """
        opened = next((each.opened for each in self._senders if isinstance(each, XdpSender)), {})
        try:
            late = most_late(numbers, len(self._flows))
            return together(
                [
                    partial(
                        FlowReceiver,
                        flow.rx_interface,
                        numbers,
                        spec.mark_of(index),
                        opened.get(flow.rx_interface),
                        most_late=late,
                    )
                    for index, flow in enumerate(self._flows)
                ]
            )
        except Unsupported as error:
            raise Unsupported(f"the generator cannot count losses: {error}") from error

    def close(self) -> None:
        for sender in self._senders:
            sender.close()
        self._aside.wait()
        self._counters.close()


def _for(sender: Sender, spec: TrialSpec, flows: int) -> TrialSpec:
    """Return the trial as a sender takes it."""
    if not spec.numbered or sender.numbers:
        return spec
    return replace(spec, load_pps=0.0, probe_pps=(spec.load_pps or 0.0) / flows)


def _difference(after: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    return tuple(late - early for late, early in zip(after, before, strict=True))


def _counted(sent: SentTraffic, receivers: Sequence[FlowReceiver], load: Schedule, begun_ns: int) -> list[FlowReport]:
    """Reports of flows whose load frames are counted by number."""
    reports, listed = [], max(_FEWEST_LISTED, _LISTED // len(receivers))
    for flow, receiver in enumerate(receivers):
        packets = sent.packets[flow] + sent.probes[flow]
        due_ns = (begun_ns + round(load.time_of(flow) * 1e9), load.time_of(load.flows) * 1e9)
        arrivals = receiver.collect(packets)
        if sent.stamps_ns is not None:
            stamps_ns = sent.stamps_ns[flow][:packets]
            stamped = np.flatnonzero(stamps_ns > 0)
            arrivals = replace(arrivals, stamped=stamped, stamps_ns=stamps_ns[stamped])
        found = count_losses(arrivals, due_ns, listed)
        reports.append(FlowReport(packets, found.received, losses=found))
    return reports


def _numbered(
    sent: SentTraffic, receivers: Sequence[_ProbeReceiver], load: Schedule, begun_ns: int, bin_ns: int
) -> list[FlowReport]:
    """Reports of flows whose load frames are numbered: as load frames, or as probes by the ring."""
    reports = []
    for flow, receiver in enumerate(receivers):
        arrivals = receiver.collect()
        packets = sent.packets[flow] + sent.probes[flow]
        sent_ns = sent.stamps_ns[flow] if sent.stamps_ns is not None else arrivals.sent_ns
        due_ns = (begun_ns + round(load.time_of(flow) * 1e9), load.time_of(load.flows) * 1e9)
        line = timeline(arrivals.arrived_ns, sent_ns, due_ns, bin_ns, sent=packets, frames=arrivals.received)
        reports.append(FlowReport(packets, sum(line.received), timeline=line))
    return reports


def _unnumbered(
    sent: SentTraffic,
    receivers: Sequence[_ProbeReceiver],
    received: Sequence[int],
    refused: Sequence[int],
    rings: Sequence[ArrivalRing],
) -> list[FlowReport]:
    """Reports of flows whose load frames are counted by the ports, together with probes."""
    reports = []
    for flow, packets in enumerate(sent.packets):
        probes, latency, unstamped = 0, None, 0
        if receivers:
            arrivals = receivers[flow].collect()
            sent_ns = sent.stamps_ns[flow] if sent.stamps_ns is not None else arrivals.sent_ns
            values_ns = latencies_ns(sent_ns, arrivals.arrived_ns)
            probes, latency = arrivals.received, latency_report(values_ns)
            unstamped = max(0, probes - len(values_ns))
        gaps = gap_report(rings[flow].stamps_ns()) if rings else None
        counts = (packets, received[flow] - probes, refused[flow], sent.probes[flow], probes)
        reports.append(FlowReport(*counts, latency=latency, unstamped=unstamped, gaps=gaps))
    return reports


def _open(exchange: _Exchange, request: dict[str, Any]) -> _FlowPorts | None:
    try:
        spec = wire.worker_spec(request)
        if spec.cpus:
            os.sched_setaffinity(0, spec.cpus)
        if spec.alone:
            # what else runs on this core is incidental; a time slice of it would be a stall of 4 ms
            _go_first()
        if spec.namespace:
            kernel.enter_namespace(spec.namespace)
        ports = _FlowPorts(spec, exchange)
    except CsitError as error:
        exchange.fail(error)
        return None
    except OSError as error:
        exchange.fail(CsitError(f"the generator cannot run on CPUs {spec.cpus}: {error.strerror}"))
        return None
    exchange.say({"sending": ports.sending, "fallback": ports.fallback})
    return ports


def _go_first() -> None:
    """Before all ordinary threads, those of other sessions included: these the kernel weighs as groups (autogroup)."""
    os.setpriority(os.PRIO_PROCESS, 0, _HIGHEST)
    with suppress(OSError):  # there is no such file where the kernel does not group
        Path("/proc/self/autogroup").write_text(str(_HIGHEST), encoding="ascii")


def main() -> None:
    """Serve one driver."""
    die_with_parent()
    kernel.sharpen_timers()
    listen()
    exchange = _Exchange()
    ports: _FlowPorts | None = None
    while request := exchange.hear():
        match request:
            case {"prepare": trial} if ports is not None:
                try:
                    exchange.say(asdict(ports.trial(wire.trial_spec(trial))))
                except CsitError as error:
                    exchange.fail(error)
                gc.collect()
            case {"flows": _}:
                if (ports := _open(exchange, request)) is None:
                    return
                # what stays is moved out of the collector's sight, and the collector never runs in a trial
                gc.freeze()
                gc.disable()
            case _:  # the word to stop, when the trial had just ended
                continue
    if ports is not None:
        ports.close()


if __name__ == "__main__":
    main()
