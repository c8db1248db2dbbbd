"""Programs of D-ITG and sysstat in the generator's namespace: scripts of runs, and what ITGDec makes of their logs."""

import re
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resources.libraries.python.drivers.generators.ditg import FIRST_PORT
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.host.sockets.socket_tables import tcp_ports
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.traffic import Departures, Protocol
from resources.libraries.python.planning.names import GENERATOR

SIGNALLING = "127.0.0.1"
"""Sender and receiver agree on a run over the loopback of the generator's namespace, not over the system under test."""
_MIN_PAYLOAD_BYTES = 20
_UNIFORM, _NORMAL = 0.5, 0.25
"""Of the mean: how far times of the uniform distribution reach on either side, and the normal one's deviation."""
_MIN_RATE_PPS = 0.01
_ETHERNET_BYTES = 18
"""Header and FCS."""
_HEADER_BYTES = {Protocol.UDP: 20 + 8, Protocol.ICMP: 20 + 8, Protocol.TCP: 20 + 32}
"""IPv4 and what follows; TCP with its time stamps."""
_PROTOCOL_WORDS = {Protocol.UDP: ("UDP",), Protocol.TCP: ("TCP",), Protocol.ICMP: ("ICMP", "8")}
"""ICMP as echo requests."""


@dataclass(frozen=True, slots=True)
class Script:
    """One run of ITGSend, for all service instances: its receiver does not stand two senders at a time."""

    lines: tuple[str, ...]
    instances: tuple[int, ...]
    """Instances of each line. Lines are flows, which D-ITG counts from 1."""


def payloads(frame: Frame, protocol: Protocol) -> tuple[int, ...]:
    """Bytes of payload of the frames of a mix, one of each as often as its weight.

    Raises:
        Unsupported: A frame is smaller than D-ITG can make it, or it does not send that protocol.
    """
    if protocol not in _HEADER_BYTES:
        raise Unsupported(f"D-ITG sends {', '.join(_HEADER_BYTES)}, not {protocol}")
    overhead = _ETHERNET_BYTES + _HEADER_BYTES[protocol]
    for part in frame.parts:
        if part.frame_bytes - overhead < _MIN_PAYLOAD_BYTES:
            raise Unsupported(
                f"D-ITG sends {protocol} in frames of {overhead + _MIN_PAYLOAD_BYTES} bytes or more, "
                f"and {frame.name} has {part.frame_bytes}"
            )
    return tuple(part.frame_bytes - overhead for part in frame.parts for _ in range(part.weight))


def script(plan: Plan, trial: Trial, sizes_file: str) -> Script:
    """Flows of a trial: the flows of each service instance share the instance's forward load evenly.

    The other half of a trial's load is what the receiver sends back.

    `plan`: Has the flows; `Flow.sources` says how many an instance has.
    `trial`: The load; one of probes only sends them at `probe_pps`.
    `sizes_file`: Where the payload sizes of a mix will be.

    Raises:
        Unsupported: A frame is smaller than D-ITG can make it, or it does not send that protocol.
    """
    forward = [flow for flow in plan.flows if flow.direction is Direction.FORWARD]
    each_pps = trial.load_pps / 2 / len(forward) if trial.load_pps else trial.probe_pps
    rows = [(flow, max(_MIN_RATE_PPS, each_pps / flow.sources)) for flow in forward for _ in range(flow.sources)]
    # A flow that does not sleep between packets keeps its rate, and keeps others on its CPU from theirs.
    options = _options(trial, sizes_file, sleeps=len(rows) > 1)
    return Script(
        lines=tuple(
            f"-a {flow.destination_ip} -rp {FIRST_PORT + row} {_departures(trial.departures, rate_pps)} {options}"
            for row, (flow, rate_pps) in enumerate(rows)
        ),
        instances=tuple(flow.instance for flow, _ in rows),
    )


def _departures(distribution: Departures, rate_pps: float) -> str:
    """Option for the times between packets.

    D-ITG takes packets per second for all distributions but the normal one, which has milliseconds (manual of 2.8.1,
    "Inter-departure time options"). Uniform are the times between the reciprocals of both rates.
    """
    match distribution:
        case Departures.UNIFORM:
            return f"-U {rate_pps / (1 + _UNIFORM):.3f} {rate_pps / (1 - _UNIFORM):.3f}"
        case Departures.EXPONENTIAL:
            return f"-E {rate_pps:.3f}"
        case Departures.NORMAL:
            return f"-N {1e3 / rate_pps:.6f} {1e3 * _NORMAL / rate_pps:.6f}"
        case _:
            return f"-C {rate_pps:.3f}"


def _options(trial: Trial, sizes_file: str, *, sleeps: bool) -> str:
    protocol = trial.protocol or Protocol.UDP
    sizes = payloads(trial.frame, protocol)
    bursts = [word for each_s in trial.on_off_s or () for word in ("C", f"{round(each_s * 1000)}")]
    words = [
        "-Sda", SIGNALLING,
        "-m", "owdm" if protocol is Protocol.ICMP else "rttm",
        "-t", f"{round(trial.duration_s * 1000)}",
        *(("-B", *bursts) if bursts else ()),
        *(("-c", f"{sizes[0]}") if len(set(sizes)) == 1 else ("-Fs", sizes_file)),
        *(() if sleeps else ("-poll",)),
        "-T", *_PROTOCOL_WORDS[protocol],
    ]  # fmt: skip
    return " ".join(words)


SENDER, RECEIVER, DECODER = "ITGSend", "ITGRecv", "ITGDec"


PROGRAM = "sar"
ENVIRONMENT = {"LC_ALL": "C", "S_COLORS": "never", "S_TIME_FORMAT": "ISO"}


def sent_by_second(log: str, interfaces: Collection[str]) -> tuple[float, ...]:
    """Packets per second that left these interfaces together, by second."""
    totals: dict[str, float] = {}
    column = None
    for line in log.splitlines():
        words = line.split()
        if "txpck/s" in words:
            column = words.index("txpck/s")
        elif column is not None and len(words) > column and words[1] in interfaces and words[0] != "Average:":
            totals[words[0]] = totals.get(words[0], 0.0) + float(words[column])
    return tuple(totals.values())


_PORT = 9000
"""Where the receiver listens for senders."""
_READY_S = 10.0
_END_S = 5.0
_LONGER_S = 20.0
CLOSING_S = 1.5
"""After the last packet the sender closes its flows one after the other, each in a second; on a busy machine later."""
MAX_LONGER_S = 80.0
"""The deadline of a trial, of which a run is a part, is 90 s after its last packet."""
_DECODE_S = 120.0
_POLL_S = 0.02
_QUIET_S = 0.2
_SCRIPT, _SENT, _ARRIVED = "script", "sent.log", "arrived.log"


_PACKET = re.compile(
    r"^Flow>\s*(\d+) .*? txTime>(\d+):(\d+):([\d.]+)\s+rxTime>(\d+):(\d+):([\d.]+)\s+Size>\s*\d+$", re.MULTILINE
)
_DAY_S = 86400.0
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets of a log. Times are in seconds of the day, local time, of one clock."""

    flow: NDArray[np.int64]
    """D-ITG's number of the flow, from 1."""
    sent_s: NDArray[np.float64]
    arrived_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.sent_s)

    @property
    def delay_s(self) -> NDArray[np.float64]:
        """From sending to arrival; over midnight too."""
        return (self.arrived_s - self.sent_s) % _DAY_S


def packets(text: str) -> Packets:
    """Read the text form of a log.

    Raises:
        ValueError: Not every line of it is a packet.
    """
    rows = np.array(_PACKET.findall(text), dtype=np.float64).reshape(-1, 7)
    if len(rows) != (lines := text.count("\n")):
        raise ValueError(f"{len(rows)} packets in {lines} lines")
    clock = np.array([3600.0, 60.0, 1.0])
    return Packets(rows[:, 0].astype(np.int64), rows[:, 1:4] @ clock, rows[:, 4:7] @ clock)


def of_flows(log: Packets, flows: Sequence[int]) -> Packets:
    """Packets of some flows only."""
    chosen = np.isin(log.flow, flows)
    return Packets(log.flow[chosen], log.sent_s[chosen], log.arrived_s[chosen])


def one_way_ns(returned: Packets) -> NDArray[np.int64]:
    """Half of each round trip in nanoseconds, sorted.

    The paper (Troia et al., III-A) does so, since the clocks of two machines do not agree.
    """
    return np.sort((returned.delay_s * (_HALF * 1e9)).astype(np.int64))


def mean_one_way_ns(returned: Packets, edges_s: Sequence[float]) -> tuple[float | None, ...]:
    """Mean one-way delay of the packets that were sent between two moments each, None where there were none.

    `edges_s`: moments, rising but for midnight; one more than there are means.
    """
    first = edges_s[0]
    edges = np.array([(edge - first) % _DAY_S for edge in edges_s])
    index = np.searchsorted(edges, (returned.sent_s - first) % _DAY_S, side="right") - 1
    inside = index < len(edges) - 1
    counts = np.bincount(index[inside], minlength=len(edges) - 1)
    sums = np.bincount(index[inside], weights=returned.delay_s[inside], minlength=len(edges) - 1)
    return tuple(
        float(total * _HALF * 1e9 / count) if count else None for total, count in zip(sums, counts, strict=True)
    )


def most_s(seconds: float, flows: int) -> float:
    """Return how long a run may take that sends for so many seconds: it ends before the deadline of its trial."""
    return seconds + min(_LONGER_S + CLOSING_S * flows, MAX_LONGER_S)


@dataclass(frozen=True, slots=True)
class SenderRun:
    """Result of a run of the sender."""

    returned: Packets
    arrived: Packets
    sender_pps: tuple[float, ...]
    """Packets that left the sending interfaces in each second, beginning before the first packet."""


class DitgPrograms:
    """The receiver, from `start` to `stop`, and runs of the sender."""

    def __init__(self, fabric: Fabric, machine: MachineLock, cpu: int) -> None:
        """Prepare.

        `fabric`: Has the generator's namespace; started before `start`.
        """
        self._fabric = fabric
        self._machine = machine
        self._cpu = cpu
        self._folder: Path | None = None
        self._receiver: Daemon | None = None

    @property
    def folder(self) -> Path:
        """Where scripts and logs are.

        Raises:
            CsitError: Nothing is started.
        """
        if self._folder is None:
            raise CsitError("D-ITG is not started")
        return self._folder

    def start(self) -> None:
        """Start the receiver.

        Raises:
            CsitError: It ended; the text has its last words.
            NotReady: It does not listen in time.
        """
        self._folder = self._machine.folder("ditg")
        self._receiver = Daemon(RECEIVER, [RECEIVER], self._folder / f"{RECEIVER}.log", folder=self._folder)
        self._start(self._receiver)
        self._receiver.wait_for(f"listening on port {_PORT}", self._not_listening, _READY_S)

    def run(self, script: Script, seconds: float, interfaces: Sequence[str]) -> SenderRun:
        """Run the sender to its end.

        `interfaces`: sending ports, whose rate is reported each second meanwhile.

        Raises:
            CommandFailed: The sender failed; its last words are in the text.
            CsitError: The receiver ended, or the sender is stopped or does not come to its end.
            NotReady: The sender did not end in time.
        """
        within_s = most_s(seconds, len(script.lines))
        (self.folder / _SCRIPT).write_text("".join(f"{line}\n" for line in script.lines), encoding="ascii")
        # These interfaces each second.
        report = [PROGRAM, "-n", "DEV", f"--iface={','.join(interfaces)}", "1", str(round(within_s))]
        reporter = Daemon(PROGRAM, report, self.folder / "sar.log", ENVIRONMENT)
        # Each end writes its own log: by a log server (`-L`, `-X`) every run takes a second longer, and packets of logs
        # get lost.
        argv = [SENDER, _SCRIPT, "-l", _SENT, "-x", _ARRIVED]
        sender = Daemon(SENDER, argv, self.folder / f"{SENDER}.log", folder=self.folder)
        try:
            self._start(reporter)
            self._start(sender)
            running = partial(self._still_running, sender)
            wait_until(f"{SENDER} of {seconds:g} s", running, within_s, pause_s=_POLL_S)
            log = sender.output()
            if "rror" in log or "ERROR" in log or log.count("Finished sending") < len(script.lines):
                raise sender.failure(sender.last_output())
        finally:
            for daemon in (sender, reporter):
                daemon.request_end()
            for daemon in (sender, reporter):
                daemon.wait_end(_END_S)
        self._wait_written()
        return SenderRun(
            returned=self._decoded(_SENT),
            arrived=self._decoded(_ARRIVED),
            sender_pps=sent_by_second(reporter.output(), frozenset(interfaces)),
        )

    def _still_running(self, sender: Daemon) -> str:
        if problems := self.problems():
            raise CsitError(problems[0])
        return "" if sender.problem() else f"runs; it said last: {sender.last_output()}"

    def problems(self) -> tuple[str, ...]:
        return tuple(filter(None, (self._receiver.problem(),))) if self._receiver is not None else ()

    def stop(self) -> None:
        """End the receiver. Safe to call at any time and more than once."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.request_end()
            receiver.wait_end(_END_S)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start(self, daemon: Daemon) -> None:
        self._fabric.run_inside(GENERATOR, partial(daemon.start, self._cpu, self._machine))

    def _not_listening(self) -> str:
        return "" if _PORT in self._fabric.run_inside(GENERATOR, tcp_ports) else "no listener"

    def _wait_written(self) -> None:
        """Wait until the logs do not grow any more."""
        logs = [self.folder / _SENT, self.folder / _ARRIVED]
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < _QUIET_S:
            size = sum(log.stat().st_size for log in logs if log.exists())
            if size != seen:
                seen, since = size, time.monotonic()
            time.sleep(_POLL_S)

    def _decoded(self, log: str) -> Packets:
        """A log, which is then removed; one that is missing or empty has no packets."""
        path, text = self.folder / log, self.folder / "decoded"
        if not path.exists() or not path.stat().st_size:
            return packets("")
        argv = [DECODER, path.name, "-l", text.name]
        done = completed(argv, _DECODE_S, folder=self.folder)
        if not text.exists():
            raise CommandFailed(argv, done.returncode, done.stderr)
        try:
            return packets(text.read_text(encoding="ascii"))
        except ValueError as error:
            raise CommandFailed(argv, None, f"its text cannot be read: {error}") from error
        finally:
            text.unlink()
            path.unlink()
