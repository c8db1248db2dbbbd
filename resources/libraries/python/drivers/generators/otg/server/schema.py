"""The part of OTG's models that the server understands; everything else is refused with its place. Pure.

The models are those of API version 1.62. Each field has OTG's name, unit and default.
"""

import json
import re
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.bounds import DEEPEST_NESTING, LARGEST_INPUT_BYTES, quoted
from resources.libraries.python.model.load import reason_of

API_VERSION = "1.62.0"
MOST_FLOWS = 16
"""Each has a process of its own."""
MOST_PORTS = 32
MOST_VALUES = 254
"""Values of a field of a header, and different headers of a flow."""
LONGEST_S = 3600
"""Longest duration of a flow; a continuous one stops after it."""
_MOST_BYTES = 9216
_MAC = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")

WORDS = 5
"""32-bit words of a TCP header."""
Model = TypeVar("Model", bound=BaseModel)
Value = TypeVar("Value", bound=int)


def _mac(text: object) -> int:
    if not isinstance(text, str) or not _MAC.fullmatch(text):
        raise ValueError(f"'{quoted(str(text))}' is no MAC address")
    return int(text.replace(":", ""), 16)


def _address_of(kind: type[IPv4Address] | type[IPv6Address], name: str) -> BeforeValidator:
    def read(text: object) -> int:
        try:
            return int(kind(str(text)))
        except ValueError as error:
            raise ValueError(f"'{quoted(str(text))}' is no {name} address") from error

    return BeforeValidator(read)


def _words(number: int) -> int:
    if number not in (0, WORDS):
        raise ValueError(f"{number} words; a header without options has {WORDS}")
    return WORDS


Mac = Annotated[int, BeforeValidator(_mac)]
Ipv4 = Annotated[int, _address_of(IPv4Address, "IPv4")]
Ipv6 = Annotated[int, _address_of(IPv6Address, "IPv6")]
Byte = Annotated[int, Field(ge=0, le=255)]
Short = Annotated[int, Field(ge=0, le=0xFFFF)]
Tag = Annotated[int, Field(ge=0, le=4095)]
Bits3 = Annotated[int, Field(ge=0, le=7)]
Bit = Annotated[int, Field(ge=0, le=1)]
Word = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
Words = Annotated[int, AfterValidator(_words)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class OneOf(Frozen):
    """An object of which one of several fields is given; `choice` names it."""

    DEFAULT: ClassVar[str] = ""
    """The field where none is given."""
    choice: str | None = None

    @property
    def chosen(self) -> str:
        """Name of the field."""
        given = [name for name in self.model_fields_set if name != "choice" and getattr(self, name) is not None]
        return self.choice or (given[0] if given else self.DEFAULT)

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = sorted(name for name in self.model_fields_set if name != "choice" and getattr(self, name) is not None)
        if len(given) > 1 or (given and self.choice not in (None, given[0])):
            raise ValueError(f"one field can be given, the one that choice names, not {' and '.join(given)}")
        known = [name for name in type(self).model_fields if name != "choice"]
        if self.choice is not None and self.choice not in known:
            raise ValueError(f"choice '{quoted(self.choice)}' is not supported ({', '.join(known)})")
        if self.choice is not None and not given and not self.DEFAULT:
            raise ValueError(f"choice is {self.choice}, and there is no {self.choice}")
        return self


class PatternSteps(Frozen, Generic[Value]):
    """Values at equal distances."""

    start: Value
    step: Value
    count: Annotated[int, Field(ge=1, le=MOST_VALUES)] = 1


class FieldPattern(OneOf, Generic[Value]):
    """Values of a field of a header; each packet has the next one."""

    DEFAULT: ClassVar[str] = "value"
    value: Value | None = None
    values: Annotated[tuple[Value, ...], Field(min_length=1, max_length=MOST_VALUES)] | None = None
    increment: PatternSteps[Value] | None = None
    decrement: PatternSteps[Value] | None = None

    def numbers(self, bits: int) -> list[int]:
        """Return all values as numbers of so many bits."""
        if self.values is not None:
            return list(self.values)
        for steps, sign in ((self.increment, 1), (self.decrement, -1)):
            if steps is not None:
                return [(steps.start + sign * steps.step * index) % (1 << bits) for index in range(steps.count)]
        return [self.value or 0]


class EthernetHeader(Frozen):
    """Addresses of a frame."""

    dst: FieldPattern[Mac] = FieldPattern(value=0)
    src: FieldPattern[Mac] = FieldPattern(value=0)


class VlanHeader(Frozen):
    """A VLAN tag."""

    priority: FieldPattern[Bits3] = FieldPattern(value=0)
    id: FieldPattern[Tag] = FieldPattern(value=1)


class Ipv4Header(Frozen):
    """An IPv4 header; a protocol given here counts where neither UDP nor TCP follows."""

    time_to_live: FieldPattern[Byte] = FieldPattern(value=64)
    protocol: FieldPattern[Byte] = FieldPattern(value=61)
    src: FieldPattern[Ipv4] = FieldPattern(value=0)
    dst: FieldPattern[Ipv4] = FieldPattern(value=0)


class Ipv6Header(Frozen):
    """An IPv6 header; a next header given here counts where neither UDP nor TCP follows."""

    hop_limit: FieldPattern[Byte] = FieldPattern(value=64)
    next_header: FieldPattern[Byte] = FieldPattern(value=59)
    src: FieldPattern[Ipv6] = FieldPattern(value=0)
    dst: FieldPattern[Ipv6] = FieldPattern(value=0)


class UdpHeader(Frozen):
    """Ports of a datagram."""

    src_port: FieldPattern[Short] = FieldPattern(value=0)
    dst_port: FieldPattern[Short] = FieldPattern(value=0)


class TcpHeader(Frozen):
    """A TCP header without options, of a segment that belongs to no connection."""

    src_port: FieldPattern[Short] = FieldPattern(value=0)
    dst_port: FieldPattern[Short] = FieldPattern(value=0)
    seq_num: FieldPattern[Word] = FieldPattern(value=0)
    ack_num: FieldPattern[Word] = FieldPattern(value=0)
    data_offset: FieldPattern[Words] = FieldPattern(value=WORDS)
    ecn_ns: FieldPattern[Bit] = FieldPattern(value=0)
    ecn_cwr: FieldPattern[Bit] = FieldPattern(value=0)
    ecn_echo: FieldPattern[Bit] = FieldPattern(value=0)
    ctl_urg: FieldPattern[Bit] = FieldPattern(value=0)
    ctl_ack: FieldPattern[Bit] = FieldPattern(value=0)
    ctl_psh: FieldPattern[Bit] = FieldPattern(value=0)
    ctl_rst: FieldPattern[Bit] = FieldPattern(value=0)
    ctl_syn: FieldPattern[Bit] = FieldPattern(value=0)
    ctl_fin: FieldPattern[Bit] = FieldPattern(value=0)
    window: FieldPattern[Short] = FieldPattern(value=0)


class Header(OneOf):
    """A header of a packet."""

    ethernet: EthernetHeader | None = None
    vlan: VlanHeader | None = None
    ipv4: Ipv4Header | None = None
    ipv6: Ipv6Header | None = None
    udp: UdpHeader | None = None
    tcp: TcpHeader | None = None


class PortPair(Frozen):
    """Ports between which a flow is sent."""

    tx_name: Name
    rx_name: Name | None = None
    rx_names: Annotated[tuple[Name, ...], Field(max_length=1)] = ()

    @model_validator(mode="after")
    def _received(self) -> Self:
        if len({*self.rx_names, *filter(None, [self.rx_name])}) != 1:
            raise ValueError("a flow is received at one port, which rx_names names")
        return self

    @property
    def rx(self) -> str:
        """Name of the port that receives."""
        return self.rx_names[0] if self.rx_names else str(self.rx_name)


class FlowEnds(OneOf):
    """Ends of a flow."""

    port: PortPair


class FlowSize(OneOf):
    """Frame size."""

    DEFAULT: ClassVar[str] = "fixed"
    fixed: Annotated[int, Field(ge=64, le=_MOST_BYTES)] = 64
    """Bytes with FCS."""


class RequestedRate(OneOf):
    """Rate of a flow; bits are those of the line, with preamble and gap between frames."""

    DEFAULT: ClassVar[str] = "pps"
    pps: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    bps: Annotated[int, Field(ge=672, le=10**12)] | None = None
    kbps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    mbps: Annotated[int, Field(ge=1, le=10**6)] | None = None
    gbps: Annotated[int, Field(ge=1, le=1000)] | None = None
    percentage: Annotated[float, Field(gt=0, le=100)] | None = None


class FixedPackets(Frozen):
    """Duration by a number of packets."""

    packets: Annotated[int, Field(ge=1, le=2**32 - 1)] = 1
    gap: Literal[12] = 12


class FixedSeconds(Frozen):
    """Duration by time."""

    seconds: Annotated[float, Field(ge=0.001, le=LONGEST_S)] = 1.0
    gap: Literal[12] = 12


class Continuous(Frozen):
    """Duration until it is stopped."""

    gap: Literal[12] = 12


class FlowDuration(OneOf):
    """Duration of a flow."""

    DEFAULT: ClassVar[str] = "continuous"
    fixed_packets: FixedPackets | None = None
    fixed_seconds: FixedSeconds | None = None
    continuous: Continuous | None = None


class LatencyMetrics(Frozen):
    """Whether latency is measured; both modes are time stamps of the kernel."""

    enable: bool = False
    mode: Literal["store_forward", "cut_through"] = "store_forward"


class FlowMetrics(Frozen):
    """Metrics of a flow."""

    enable: bool = False
    loss: bool = False
    timestamps: Literal[False] = False
    latency: LatencyMetrics = LatencyMetrics()


class OtgFlow(Frozen):
    """A flow."""

    name: Name
    tx_rx: FlowEnds
    packet: Annotated[tuple[Header, ...], Field(min_length=2, max_length=4)]
    size: FlowSize = FlowSize()
    rate: RequestedRate = RequestedRate()
    duration: FlowDuration = FlowDuration()
    metrics: FlowMetrics = FlowMetrics()


class OtgPort(Frozen):
    """A port, whose location is an interface."""

    name: Name
    location: Name


class OtgConfig(Frozen):
    """A configuration: ports and their flows."""

    ports: Annotated[tuple[OtgPort, ...], Field(max_length=MOST_PORTS)] = ()
    flows: Annotated[tuple[OtgFlow, ...], Field(max_length=MOST_FLOWS)] = ()
    layer1: Annotated[tuple[Any, ...], Field(max_length=MOST_PORTS)] = ()
    options: Any = None

    @property
    def warnings(self) -> list[str]:
        return [
            f"{name}: ignored, ports stay as the kernel has them"
            for name in ("layer1", "options")
            if getattr(self, name)
        ]


class FlowTransmit(Frozen):
    """Flows to start or stop, all where none is named."""

    state: Literal["start", "stop"]
    flow_names: Annotated[tuple[Name, ...], Field(max_length=MOST_FLOWS)] = ()


class TrafficState(OneOf):
    """State of traffic."""

    flow_transmit: FlowTransmit


class ProtocolAll(Frozen):
    """State of all protocols."""

    state: Literal["start", "stop"]


class ProtocolState(OneOf):
    """State of protocols."""

    all: ProtocolAll


class ControlState(OneOf):
    """Transmission to start or stop."""

    traffic: TrafficState | None = None
    protocol: ProtocolState | None = None
    """Accepted with a warning: no protocols can be configured."""


class FlowMetricsRequest(Frozen):
    """Flows whose metrics are asked for, all where none is named."""

    flow_names: Annotated[tuple[Name, ...], Field(max_length=MOST_FLOWS)] = ()
    metric_names: Annotated[tuple[Name, ...], Field(max_length=100)] = ()


class PortMetricsRequest(Frozen):
    """Ports whose metrics are asked for, all where none is named."""

    port_names: Annotated[tuple[Name, ...], Field(max_length=MOST_PORTS)] = ()
    column_names: Annotated[tuple[Name, ...], Field(max_length=100)] = ()


class MetricsRequest(OneOf):
    """Metrics asked for."""

    DEFAULT: ClassVar[str] = "port"
    port: PortMetricsRequest | None = None
    flow: FlowMetricsRequest | None = None


def parse(body: bytes, model: type[Model]) -> Model:
    """Read the body of a request.

    Raises:
        ConfigError: It is too large, nested too deeply, no JSON, or has something that is not supported; the text names
            the field.
        Unsupported: It has more of something than this server can do, such as flows.
    """
    if len(body) > LARGEST_INPUT_BYTES:
        raise ConfigError(f"the request has {len(body):,} bytes, at most {LARGEST_INPUT_BYTES:,} are read")
    if _depth(body) > DEEPEST_NESTING:
        raise ConfigError(f"the request is nested more than {DEEPEST_NESTING} deep")
    try:
        return model.model_validate(json.loads(body))
    except ValidationError as error:
        raise _refusal(error, model) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the request is not valid JSON: {quoted(str(error))}") from error


def _depth(body: bytes) -> int:
    """Return an upper bound of the nesting: brackets in texts count too."""
    depth = most = 0
    for letter in body:
        if letter in b"[{":
            depth += 1
            most = max(most, depth)
        elif letter in b"]}":
            depth -= 1
    return most


def _refusal(error: ValidationError, model: type[BaseModel]) -> CsitError:
    """Return the first error with its place as in `flows[0].rate.pps`."""
    errors = error.errors(include_url=False)
    first = max(errors, key=lambda row: (row["type"] == "extra_forbidden", len(row["loc"])))
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{quoted(step)}" for step in first["loc"]).lstrip(".")
    if first["type"] == "too_long":
        return Unsupported(f"{place}: {len(first['input'])}, at most {first['ctx']['max_length']} are possible")
    unknown = first["type"] == "extra_forbidden"
    reason = "not supported by this server" if unknown else reason_of(first, model)
    return ConfigError(f"{place or 'the request'}: {reason}")
