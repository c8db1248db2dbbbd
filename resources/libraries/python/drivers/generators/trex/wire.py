"""Dialogue of driver and client: one JSON object per line, each a record of this file.

`client_process.py` writes and reads the same keys without these classes, which its Python does not have.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import Frozen, error_text

Count = Annotated[int, Field(ge=0)]
Record = TypeVar("Record", bound=Frozen)
LINKS_S = 30.0
"""How long the ports of NICs may take to negotiate their links, once the server has started them."""


class VariedField(Frozen):
    """A 4-byte field that differs from packet to packet."""

    offset: Count
    """Bytes from the beginning of the frame."""
    first: Count
    count: Annotated[int, Field(ge=1)]
    """How many consecutive values it takes."""
    order: Literal["increment", "random"]
    checksum_offset: Count
    """Where the IPv4 header begins whose checksum is to be right."""


class Stream(Frozen):
    """Packets of one size of one flow."""

    port: Count
    """The sending port, counted from 0."""
    frame: str
    """The first packet without FCS, hexadecimal."""
    vary: VariedField | None
    pps: Annotated[float, Field(gt=0)]
    group: Count
    """Group under which its packets are counted."""
    probe: bool
    """Whether it carries time stamps."""
    start_us: Annotated[float, Field(ge=0)] = 0.0
    """When its first packet is due."""


class OpenPorts(Frozen):
    """Take the ports into use."""

    do: Literal["open"] = "open"
    directory: str
    """Where the program is installed."""
    ports: Annotated[int, Field(ge=1)]
    within_s: float
    """For a server that does not answer yet."""
    links_within_s: float = LINKS_S


class OpenedPorts(Frozen):
    """Answer to opening the ports: versions and counters."""

    version: str
    """Version of the server."""
    python: str
    """That the client runs on."""
    drivers: tuple[str, ...]
    """Drivers of the ports."""
    counters: Count
    """Flows that the ports can count at a time."""


class RunTrial(Frozen):
    """Run a trial."""

    do: Literal["trial"] = "trial"
    streams: tuple[Stream, ...]
    duration_s: float
    most_s: float
    """Sending is stopped when it lasts longer than this."""
    most_lost: Count | None
    """Sending is stopped when more packets of the load than this are lost for certain; None: never."""


class GroupCount(Frozen):
    """Packets of a group."""

    group: Count
    sent: Count
    received: Count


class PortCount(Frozen):
    """Error counters of a port."""

    send_errors: Count
    """Packets that could not be handed over."""
    receive_errors: Count
    """Packets that came to the port and were dropped by the generator itself."""


class ProbeErrors(Frozen):
    """Received probes whose number was not the one that was due."""

    out_of_order: Count
    dup: Count
    seq_too_high: Count
    seq_too_low: Count


class ProbeLatency(Frozen):
    """Latency of a group of probes in microseconds."""

    group: Count
    histogram: str | None
    """HDR histogram, V2 compressed, base64; None where the server has none."""
    buckets: dict[Count, Count]
    """Lower bound to packets: one digit and zeros; 0 for less than 10."""
    errors: ProbeErrors


class Report(Frozen):
    """Outcome of a trial."""

    sending_s: float
    """The shortest time that sending can have lasted, by what was seen of its counters; in a trial that was ended, the
    time until the decision."""
    finished: bool
    """Whether all that was asked for has been sent."""
    aborted: bool
    """Whether sending was ended for loss."""
    settled: bool
    """Whether the counters had stopped when they were read."""
    groups: tuple[GroupCount, ...]
    ports: tuple[PortCount, ...]
    latency: tuple[ProbeLatency, ...]
    queue_full: Count
    cpu_percent: float
    """CPU usage of the sending threads, as the server smooths it over some time before."""


class OpenStateful(Frozen):
    """Take servers into use that open TCP connections."""

    do: Literal["open_stateful"] = "open_stateful"
    directory: str
    """Where the program is installed."""
    servers: tuple[tuple[int, int], ...]
    """TCP ports of each: the one where it publishes, and the one where it answers."""
    within_s: float
    """For servers that do not answer yet."""
    links_within_s: float = LINKS_S


class OpenedServers(Frozen):
    """Answer to opening servers."""

    version: str
    python: str
    """That the client runs on."""
    drivers: tuple[str, ...]
    """Drivers of the ports."""


class ConnectionLoad(Frozen):
    """Connections of one instance, whose server has a pair of ports."""

    clients: tuple[str, str]
    """First and last address."""
    server: str
    port: Annotated[int, Field(ge=1, le=65535)]
    connections: Annotated[int, Field(ge=1)]
    rate_cps: Annotated[float, Field(gt=0)]


class ConnectionOrder(Frozen):
    """Open TCP connections, each with a request and an answer; then the server closes it, and after that the client."""

    do: Literal["connections"] = "connections"
    loads: tuple[ConnectionLoad, ...]
    """One for each server, in their order."""
    most_s: float
    """Opening is ended when it lasts longer than this, from the first connection on."""
    rest_s: float
    """Time that connections have to end after the last one was opened."""


class ConnectionCounts(Frozen):
    """Connections of one instance, as both of its ends count them."""

    attempted: Count
    """SYNs of clients, without repetitions."""
    connected: Count
    """Connections of clients that were established."""
    closed: Count
    """Connections of clients that ended, dropped ones among them."""
    dropped: Count
    """Of these, connections that were reset or given up, before or after they were established."""
    repeated: Count
    """SYNs that clients sent again, because there was no answer."""
    accepted: Count
    """Connections that servers took."""
    errors: dict[str, Count]
    """Error counters of the server, by its names."""
    sending_s: float
    """From the first connection that was seen to the last one."""


class ConnectionReport(Frozen):
    """Outcome of a trial with connections."""

    counts: tuple[ConnectionCounts, ...]
    """By instance, in the order of the loads."""


def read(record: type[Record], plain: object) -> Record:
    """A record from what was said.

    Raises:
        CsitError: It is something else.
    """
    try:
        return record.model_validate(plain)
    except ValidationError as error:
        raise CsitError(
            f"TRex's client sent an invalid answer: {error_text(error)}; it said {str(plain)[:200]}"
        ) from error
