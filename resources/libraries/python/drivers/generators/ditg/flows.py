"""Script of ITGSend's multi-flow mode. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from resources.libraries.python.drivers.generators.ditg.registration import FIRST_PORT
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.traffic import Departures, Protocol

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

    @property
    def text(self) -> str:
        """The file."""
        return "\n".join(self.lines) + "\n"


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

    Args:
        plan: Has the flows; `Flow.sources` says how many an instance has.
        trial: The load; one of probes only sends them at `probe_pps`.
        sizes_file: Where the payload sizes of a mix will be.

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
    """Options that all flows of a trial have."""
    protocol = trial.protocol or Protocol.UDP
    sizes = payloads(trial.frame, protocol)
    words = [
        "-Sda", SIGNALLING,
        "-m", "owdm" if protocol is Protocol.ICMP else "rttm",
        "-t", f"{round(trial.duration_s * 1000)}",
        *(_bursts(trial.on_off_s) if trial.on_off_s else ()),
        *(("-c", f"{sizes[0]}") if len(set(sizes)) == 1 else ("-Fs", sizes_file)),
        *(() if sleeps else ("-poll",)),
        "-T", *_PROTOCOL_WORDS[protocol],
    ]  # fmt: skip
    return " ".join(words)


def _bursts(on_off_s: Sequence[float]) -> list[str]:
    return ["-B", *(word for seconds in on_off_s for word in ("C", f"{round(seconds * 1000)}"))]
