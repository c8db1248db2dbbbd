"""Command lines of iperf3: pure, from a flow and a trial."""

import math

from resources.libraries.python.drivers.generators.iperf3.registration import port
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Flow
from resources.libraries.python.model.request.traffic import Protocol

PROGRAM = "iperf3"
_MAX_SESSIONS = 128
_ETHERNET_BYTES = 18
"""Header and FCS."""
_HEADER_BYTES = {Protocol.UDP: 20 + 8, Protocol.TCP: 20 + 32}
"""IPv4 and what follows; TCP with its time stamps."""
_OPTIONS_BYTES = 12
"""Size of TCP's time stamps, which the segment size includes."""
_MIN_PAYLOAD_BYTES = {Protocol.UDP: 16, Protocol.TCP: 76}
"""The kernel takes segment sizes from 88 bytes on."""
_MAX_AT_ONCE_BYTES = 128 * 1024
_WRITES_PER_S = 1000
"""Of a TCP session: the 128 KiB that iperf3 writes at once by itself come as a burst that overflows queues."""
_CONNECT_MS = 5000
_MIN_BPS = 1.0


def protocol(trial: Trial) -> Protocol:
    """Protocol of a trial's packets; UDP where it does not say.

    Raises:
        Unsupported: iperf3 does not send it.
    """
    chosen = trial.protocol or Protocol.UDP
    if chosen not in _HEADER_BYTES:
        raise Unsupported(f"iperf3 sends {', '.join(_HEADER_BYTES)}, not {chosen}")
    return chosen


def payload_bytes(trial: Trial) -> int:
    """Payload of each packet.

    Raises:
        Unsupported: Frames are of several sizes, or smaller than iperf3 can make them.
    """
    chosen = protocol(trial)
    if len({part.frame_bytes for part in trial.frame.parts}) > 1:
        raise Unsupported(f"iperf3 sends frames of one size, and {trial.frame.name} is a mix")
    overhead = _ETHERNET_BYTES + _HEADER_BYTES[chosen]
    least = overhead + _MIN_PAYLOAD_BYTES[chosen]
    if (size := trial.frame.largest_bytes) < least:
        name = trial.frame.name
        raise Unsupported(f"iperf3 sends {chosen} in frames of {least} bytes or more, and {name} has {size}")
    return size - overhead


def ways(trial: Trial) -> int:
    """How many ways data goes: both with UDP; with TCP the way back is that of acknowledgements."""
    return 2 if protocol(trial) is Protocol.UDP else 1


def seconds(trial: Trial) -> int:
    """How long a run is: whole seconds."""
    return max(1, math.ceil(trial.duration_s))


def server(flow: Flow) -> list[str]:
    """The argument vector of a server, for one run.

    Args:
        flow: The forward flow of an instance.
    """
    return [PROGRAM, "-s", "-1", "-J", "-B", flow.destination_ip, "-p", str(port(flow.instance))]


def client(flow: Flow, trial: Trial, instances: int) -> list[str]:
    """The argument vector of a client.

    Args:
        flow: The forward flow of an instance.
        trial: What to send; its load is the aggregate of all instances, and of both ways where data goes both.
        instances: How many share it.

    Raises:
        Unsupported: iperf3 cannot send that.
    """
    sessions = trial.sessions or trial.frame.flows or 1
    if sessions > _MAX_SESSIONS:
        raise Unsupported(f"iperf3 has at most {_MAX_SESSIONS} sessions for a service instance, not {sessions}")
    if trial.on_off_s is not None:
        raise Unsupported("iperf3 sends no bursts; ditg would, chosen by GENERATOR")
    size = payload_bytes(trial)
    each_pps = (trial.load_pps or trial.probe_pps * ways(trial) * instances) / ways(trial) / instances / sessions
    by_udp = protocol(trial) is Protocol.UDP
    if by_udp:
        kind = ["-u", "--bidir", "-l", str(size)]
    else:
        at_once = min(_MAX_AT_ONCE_BYTES, size * max(1, round(each_pps / _WRITES_PER_S)))
        kind = ["-M", str(size + _OPTIONS_BYTES), "-l", str(at_once)]
    return [
        PROGRAM, "-c", flow.destination_ip, "-B", flow.source_ip, "-p", str(port(flow.instance)), "-J",
        "--connect-timeout", str(_CONNECT_MS), "-t", str(seconds(trial)), "-P", str(sessions),
        "-b", str(round(max(_MIN_BPS, each_pps * size * 8))), *kind,
    ]  # fmt: skip
