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
    probe: bool
    """Whether it carries time stamps."""
    start_us: Annotated[float, Field(ge=0)] = 0.0


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
    python: str
    """That the client runs on."""
    drivers: tuple[str, ...]
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
    aborted: bool
    settled: bool
    """Whether the counters had stopped when they were read."""
    groups: tuple[GroupCount, ...]
    ports: tuple[PortCount, ...]
    latency: tuple[ProbeLatency, ...]
    queue_full: Count
    cpu_percent: float
    """CPU usage of the sending threads, as the server smooths it over some time before."""


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
