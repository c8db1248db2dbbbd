"""Sending by XDP live frames."""

import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.builtin import frames, kernel
from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad
from resources.libraries.python.drivers.generators.builtin.sender import (
    EVERY_S,
    GRACE_S,
    LossWatch,
    Schedule,
    SentTraffic,
    schedules,
)
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec, TrialSpec
from resources.libraries.python.drivers.generators.xdp import memory
from resources.libraries.python.drivers.generators.xdp.bpf import Running, XdpProgram
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError, Unsupported

_SHORTEST, _SHORTEST_IPV6 = 60, 78
_UNPACED_BATCH = 64

_BATCH_NS = 16_000
"""Frames leave at the end of a batch, and only then others have their turn on this CPU: about this long at most. With
4 us the generator's own receiving threads were woken so often that of 800 kpps through a cable 370 were sent; with
16 us 1.2 Mpps were, all received (the TX ring: 1.0)."""
_MIN_GAP = 0.85
"""A sender that fell behind sends at most this much closer than planned: a burst would be lost in a queue of 256."""
_NEVER = 1 << 62
_POLL_S = 0.0002
_LATE_S = 1.0
_CARRIER_S = 3.0
_PRIORITY = 2
"""Above the data threads', which take their turns for a whole queue."""
_GENERIC, _CONTROL = 16, 16
_GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 3, 1, 2
_GET_DEVICE, _DEVICE_INDEX, _DEVICE_FEATURES = 1, 1, 3
_TAKES_REDIRECTED = 1 << 2
"""NETDEV_XDP_ACT_NDO_XMIT."""


_ACKNOWLEDGE, _CREATE_NEW = 4, 0x600
_REQUEST, _ERROR = 1, 2
_HEADER_BYTES = 16


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data.ljust(-(-len(data) // 4) * 4, b"\0")


def _attributes(data: bytes) -> dict[int, bytes]:
    """Return what attributes in a row have, by their kind."""
    found, place = {}, 0
    while place + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, place)
        found[kind & 0x3FFF] = data[place + 4 : place + size]
        place += max(4, -(-size // 4) * 4)
    return found


def _answer(sock: socket.socket, kind: int, body: bytes, flags: int = 0) -> bytes:
    """Send a request and return its answer without header; an acknowledgement has none."""
    sock.send(struct.pack("=IHHII", _HEADER_BYTES + len(body), kind, _REQUEST | flags, 1, 0) + body)
    message = sock.recv(1 << 16)
    if struct.unpack_from("=H", message, 4)[0] != _ERROR:
        return message[_HEADER_BYTES:]
    if code := -struct.unpack_from("=i", message, _HEADER_BYTES)[0]:
        raise OSError(code, os.strerror(code))
    return b""


class XdpSender:
    """Fulfils `builtin.sender.Sender`. A trial is one call of the kernel."""

    name = "XDP live frames"
    numbers = True

    def __init__(self, flows: Sequence[FlowSpec], captured: CapturedLoad | None = None) -> None:
        """Load the program and try it without sending anything.

        `captured`: Frames of the capture that trials may ask for.

        Raises:
            Unsupported: the kernel or an interface cannot do it.
        """
        if len(flows) > memory.MAX_FLOWS:
            raise Unsupported(f"{len(flows)} flows, and {self.name} have room for {memory.MAX_FLOWS}")
        self._flows = tuple(flows)
        self._load = self._probe = Schedule(0.0, len(flows), 0)
        self._end_s = 0.0
        self._batch, self._largest, self._tried = 1, _SHORTEST, 0
        self._running: Running | None = None
        self.opened: dict[str, RedirectTarget] = {}
        """Interfaces that frames are sent to."""
        with ExitStack() as stack:
            for interface in dict.fromkeys(flow.tx_interface for flow in flows):
                self.opened[interface] = RedirectTarget(interface)
                stack.callback(self.opened[interface].close)
            self._captured = captured
            fitting = captured is not None and int(captured.lengths.max()) <= memory.MAX_CAPTURED_BYTES
            entries = {"captured_frames": len(captured.lengths)} if captured and fitting else {}
            self._program = XdpProgram("csit_generator", entries=entries)
            stack.callback(self._program.close)
            if captured and fitting:
                shared = self._program.arrays["captured_frames"]
                memory.fill_captured(np.frombuffer(shared, memory.CAPTURED, count=len(captured.lengths)), captured)
            self._shared: NDArray[np.void] | None = np.frombuffer(self._program.memory, memory.SHARED, count=1)
            stack.callback(setattr, self, "_shared", None)
            memory.fill_flows(self._shared["flows"][0], flows)
            self._try(_SHORTEST)
            stack.callback(Registration(self._program).close)
            self._stack = stack.pop_all()

    def _try(self, frame_bytes: int) -> None:
        """See that the kernel takes frames of this length, without FCS."""
        if frame_bytes > self._tried:
            self._set(done=1)
            self._program.run_live(bytes(frame_bytes), 1, times=1)
            self._tried = frame_bytes

    def prepare(self, spec: TrialSpec) -> None:
        """Write the program's orders.

        Raises:
            Unsupported: frames are too large, of too many sizes, or TCP segments.
            CsitError: a port is gone or down, or takes no such frames.
        """
        if spec.tcp:
            raise Unsupported(f"TCP segments are not sent by {self.name}")
        self._wait()
        self._largest = self._largest_of(spec)
        self._check_ports(self._largest + frames.FCS_BYTES)
        if len(spec.frame_bytes) > memory.MAX_SIZES:
            raise Unsupported(f"a cycle of {len(spec.frame_bytes)} frame sizes is too long for {self.name}")
        self._try(self._largest)
        self._load, self._probe = schedules(spec, len(self._flows))
        offset_s = 0.5 * self._load.time_of(1) if self._load.total else 0.0
        self._end_s = max(self._load.length_s, self._probe.length_s + offset_s) + GRACE_S
        self._batch = 1
        if spec.load_pps is None:
            self._end_s, self._batch = spec.duration_s, _UNPACED_BATCH
        elif spec.load_pps:
            self._batch = max(1, min(_UNPACED_BATCH, int(_BATCH_NS * spec.load_pps / 1e9)))
        memory.fill_sizes(self._memory["sizes"][0], spec.frame_bytes, ipv6=self._flows[0].ipv6)
        memory.choose_load(self._memory["flows"][0], self._flows, spec)
        self._memory["state"] = np.zeros(1, memory.STATE)
        self._set(
            end_ns=round(self._end_s * 1e9),
            left=_NEVER if spec.load_pps is None else self._load.total,
            gap=memory.gap(spec.load_pps),
            slack_ns=round(self._load.time_of(self._load.slack) * 1e9) if self._load.total else 0,
            least_gap_ns=int(_MIN_GAP * 1e9 / spec.load_pps) if spec.load_pps else 0,
            probes_left=self._probe.total,
            probe_due=round(offset_s * 1e9) << memory.FRACTION_BITS,
            probe_gap=memory.gap(self._probe.rate_pps),
            flows=len(self._flows),
            sizes=len(spec.frame_bytes),
            largest=self._largest,
            captured=len(self._captured.lengths) if spec.captured and self._captured else 0,
            tai_ns=time.clock_gettime_ns(time.CLOCK_TAI) - time.monotonic_ns(),
        )

    def _largest_of(self, spec: TrialSpec) -> int:
        """Bytes of the largest frame of a trial without FCS.

        Raises:
            Unsupported: It is one of a capture, and too large.
        """
        largest = max(spec.frame_bytes) - frames.FCS_BYTES
        if spec.captured and self._captured:
            largest = max(largest, int(self._captured.lengths.max()))
            if largest > memory.MAX_CAPTURED_BYTES:
                raise Unsupported(
                    f"frames of {largest + frames.FCS_BYTES} bytes of a capture are too large for {self.name}"
                )
        return largest

    def rehearse(self, packets: int) -> None:
        """Send packets of all flows in turns at once.

        Raises:
            Unsupported: the kernel cannot do it.
        """
        shortest = _SHORTEST_IPV6 if self._flows[0].ipv6 else _SHORTEST
        self.prepare(TrialSpec(None, 1.0, (shortest + frames.FCS_BYTES,), 0.0))
        self._set(left=packets)
        self._program.run_live(bytes(self._largest), 1, times=packets)

    def send(self, watch: LossWatch) -> SentTraffic:
        begun = time.monotonic()
        self._running = Running(self._program, bytes(self._largest), self._batch)
        with _first_in_line():
            aborted = self._watch(watch, begun)
        if self._running:
            self._running.end()
        counts, probes = self._counts("load"), self._counts("probe")
        self._check_ports(0)
        if failed := self._get("failed"):
            raise CsitError(f"{failed} frames could not be made by the XDP program")
        if not sum(counts) and self._load.total and not self._get("start_ns"):
            raise CsitError("the XDP program did not run")
        if self._load.total or not self._probe.total:
            between_s = (self._get("last_ns") - self._get("first_ns")) / 1e9
            offered_s = between_s + (self._load.time_of(1) if self._load.total else 0.0) if sum(counts) else 0.0
        else:
            offered_s = time.monotonic() - begun
        lag_s = self._get("worst_lag_ns") / 1e9 if self._load.total else 0.0
        return SentTraffic(counts, probes, offered_s, lag_s, aborted)

    def _watch(self, watch: LossWatch, begun: float) -> bool:
        """Wait until all is sent; whether it ended early for loss."""
        end, look = begun + self._end_s, begun + EVERY_S if watch.needed else float("inf")
        while True:
            now = time.monotonic()
            time.sleep(max(min(end, look) - now, _POLL_S))
            if self._get("done"):
                return False
            if self._running and self._running.ended:  # it had its number of runs; or this raises
                self._running.wait()
                self._running = Running(self._program, bytes(self._largest), self._batch)
            now = time.monotonic()
            if now >= look:
                sent = [load + probe for load, probe in zip(self._counts("load"), self._counts("probe"), strict=True)]
                if watch.ends_it(sent):
                    self._set(done=1)
                    return True
                look = now + EVERY_S
            if now > end + _LATE_S:  # the thread that sends had no turn
                self._set(done=1)
                return False

    def _check_ports(self, largest: int) -> None:
        for interface in dict.fromkeys(flow.tx_interface for flow in self._flows):
            if not kernel.link_is_up(interface):
                raise CsitError(f"generator port {interface} does not send: Network is down")
            if largest:
                frames.check_room(interface, kernel.mtu_bytes(interface), largest)

    @property
    def _memory(self) -> NDArray[np.void]:
        if self._shared is None:
            raise CsitError("the XDP sender has been closed")
        return self._shared

    def _get(self, name: str) -> int:
        return int(self._memory["state"][name][0])

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self._memory["state"][name] = value

    def _counts(self, kind: str) -> tuple[int, ...]:
        return tuple(self._memory["flows"][kind]["sent"][0, : len(self._flows)].tolist())

    def _wait(self) -> None:
        if self._running:
            ended, self._running = self._running, None
            ended.wait()

    def close(self) -> None:
        try:
            self._wait()
        finally:
            self._stack.close()


@contextmanager
def _first_in_line() -> Iterator[None]:
    """Let this thread run as soon as it wakes up, though the one that sends does not sleep on the same CPU."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class RedirectTarget:
    """An interface that takes redirected frames, for as long as this is not closed."""

    def __init__(self, interface: str) -> None:
        """Make sure.

        A veth does when its peer receives by NAPI and did so when the veth came up. Drivers of physical NICs do where
        they have XDP transmit, most of them once some XDP program is attached; so one that lets all packets pass is
        attached there.

        Raises:
            Unsupported: it does not.
            NotReady: its carrier does not come back.
        """
        if Path(f"/proc/self/net/vlan/{interface}").exists():
            raise Unsupported(f"{interface} takes no XDP frames: it is a VLAN device")
        self._stack = ExitStack()
        self.link: int | None = None
        """Attachment of the program, where one is attached."""
        if takes_redirected(interface):
            return
        if not Path(f"/sys/class/net/{interface}/device").exists():
            # The kernel looks at the peer when a veth comes up only, and on another node the peer may have been late.
            kernel.reopen(interface)
            wait_until(f"carrier of {interface}", lambda: "" if kernel.link_is_up(interface) else "down", _CARRIER_S)
            if takes_redirected(interface):
                return
            raise Unsupported(f"{interface} takes no XDP frames: its peer does not receive by NAPI (GRO is off)")
        with ExitStack() as stack:
            self._program = XdpProgram("csit_pass")
            stack.callback(self._program.close)
            try:
                self.link = self._program.attach(socket.if_nametoindex(interface))
                stack.callback(os.close, self.link)
            except OSError as error:
                raise Unsupported(f"the driver of {interface} takes no XDP program: {error.strerror}") from error
            if not takes_redirected(interface):
                raise Unsupported(f"the driver of {interface} has no XDP transmit")
            self._stack = stack.pop_all()

    def restore(self) -> None:
        """Let all packets pass again, after another program took this one's place."""
        if self.link is not None:
            self._program.replace_at(self.link)

    def close(self) -> None:
        self._stack.close()


def takes_redirected(interface: str) -> bool:
    """Whether frames can be redirected to an interface of this network namespace.

    Raises:
        Unsupported: The kernel does not report it (before Linux 6.3), or there is no such interface.
    """
    try:
        index = socket.if_nametoindex(interface)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _GENERIC) as sock:
            family = _ask(sock, _CONTROL, _GET_FAMILY, _attribute(_FAMILY_NAME, b"netdev\0"))[_FAMILY_ID]
            number = struct.unpack("=H", family[:2])[0]
            answer = _ask(sock, number, _GET_DEVICE, _attribute(_DEVICE_INDEX, struct.pack("=I", index)))
    except OSError as error:
        raise Unsupported(f"the kernel does not report XDP features of {interface}: {error.strerror}") from error
    return bool(struct.unpack("=Q", answer[_DEVICE_FEATURES])[0] & _TAKES_REDIRECTED)


def _ask(sock: socket.socket, family: int, command: int, attributes: bytes) -> dict[int, bytes]:
    return _attributes(_answer(sock, family, struct.pack("=BBH", command, 1, 0) + attributes)[4:])


_ROUTE, _NEW_LINK = 0, 16
_NAME, _LINK_INFO, _INFO_KIND = 3, 18, 1
_INTERFACE = "csit-dispatch"


class Registration:
    """Keeps a program in the kernel's XDP dispatcher until it is closed, so that its runs begin and end at once.

    The kernel enters a program that runs into its dispatcher for XDP, a list of direct calls, and removes it when the
    run ends. Each change of the list waits for an RCU grace period: 10 to 15 ms. A program that is attached to an
    interface is in the list already. So it is attached to one that receives no packets, in a network namespace that
    only this process has.
    """

    def __init__(self, program: XdpProgram) -> None:
        """Attach the program to a port of a veth pair that is down. Where that cannot be done, runs take longer."""
        self._stack = ExitStack()
        try:
            aside(lambda: self._attach(program))
        except OSError:
            self.close()

    def _attach(self, program: XdpProgram) -> None:
        unshare(CLONE_NEWNET)
        self._stack.callback(os.close, os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _ROUTE) as sock:
            body = struct.pack("=BBHiII", socket.AF_UNSPEC, 0, 0, 0, 0, 0)
            body += _attribute(_NAME, f"{_INTERFACE}\0".encode())
            body += _attribute(_LINK_INFO, _attribute(_INFO_KIND, b"veth"))
            _answer(sock, _NEW_LINK, body, _ACKNOWLEDGE | _CREATE_NEW)
        self._stack.callback(os.close, program.attach(socket.if_nametoindex(_INTERFACE)))

    def close(self) -> None:
        """Detach the program; the interface and its namespace are gone with it."""
        self._stack.close()
