"""Parameters of a simulated testbed, from the `simulation` part of a topology."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from resources.libraries.python.drivers.sim.impairment import BufferPool, Impairment, PacketLosses
from resources.libraries.python.drivers.sim.power import Power
from resources.libraries.python.drivers.sim.state_tables import StateTables
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen, is_empty, is_none, validate_yaml
from resources.libraries.python.model.bounds import HIGHEST_PARAMETER, dotted, quoted
from resources.libraries.python.model.load import reason_of
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import is_interface, is_owner

OVERHEAD_BYTES = 20
"""Preamble, start delimiter and interframe gap of an Ethernet frame, beyond its L2 size."""
LINE_RATE_64B_PPS = 10e9 / 8 / (64 + OVERHEAD_BYTES)
"""10GE: 14.88 Mpps."""

Share = Annotated[float, Field(ge=0, lt=1)]


def _owner(name: str) -> str:
    if not is_owner(name):
        raise ValueError(f"'{quoted(name)}' is no vSwitch and no NF; expected a name such as vswitch or nf-2-1")
    return name


def _place(name: str) -> str:
    return name if is_interface(name) else _owner(name)


class ModelName(StrEnum):
    """How the system under test behaves around its capacity; see `models`."""

    SHARP = "sharp"
    NOISY = "noisy"
    STALL = "stall"
    KNEE = "knee"
    TWO_BAND = "two_band"
    SAG = "sag"


class Interruptions(Frozen):
    """Seconds in which events interrupt what they happen to, and what all instances share; see `outage`."""

    restart_s: Annotated[float, Field(ge=0)] = 0.15
    add_s: Annotated[float, Field(ge=0)] = 0.06
    reload_s: Annotated[float, Field(ge=0)] = 0.012
    move_s: Annotated[float, Field(ge=0)] = 0.003
    queue: Annotated[int, Field(ge=0)] = 256
    """Packets of each flow that wait for the end of a pause."""
    stall_s: dict[PartEvent, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Stall of the vSwitch, by the event of an NF: of all instances that are not hit."""
    noisy_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the trials in which the host stalls, at a random time and for all instances."""
    noise_s: Annotated[float, Field(ge=0)] = 0.05
    """Length of such a stall; its packets are lost."""


class FlowCache(Frozen):
    """A cache of flows in the vSwitch. Flows beyond its entries replace each other at random."""

    entries: Annotated[int, Field(ge=1)]
    miss_cost: Annotated[float, Field(ge=1)] = 2.0
    """Time for a packet whose flow is not there, relative to one whose flow is."""

    def slowdown(self, flows: int) -> float:
        """Mean time for a packet of so many flows in turns, relative to one whose flow is in the cache."""
        hits = min(1.0, self.entries / flows)
        return hits + self.miss_cost * (1 - hits)


class OwnLimits(Frozen):
    """Behaviour of the simulated generator, with or without a system under test; see `drivers`."""

    loss_free_pps: Annotated[float, Field(gt=0)] | None = None
    """Aggregate rate above which its receiving end loses packets; None for never."""
    pause_us: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0
    """Gap before one of 500 packets."""
    floor_us: Annotated[float, Field(gt=0, le=1_000_000)] = 2.0
    """Latency of a loop-back."""


class CapacityLoss(Frozen):
    """A system that forwards less and less, from the deployment of its cell on."""

    per_minute: Share = 0.0
    """Share of its capacity that it loses in each minute."""
    leak_mib: Annotated[float, Field(ge=0)] = 0.0
    """Memory that each NF takes more in each minute."""


class NodeWork(Frozen):
    """What a simulated vSwitch counts of one of its graph nodes, which every packet that it receives passes."""

    clocks: Annotated[float, Field(ge=0)]
    """Per packet."""
    packets_per_call: Annotated[float, Field(ge=1)] = 64.0


class Simulation(Frozen):
    """All parameters have defaults, so a topology names those that it changes."""

    model: ModelName = ModelName.NOISY
    seed: int = 1
    line_rate_pps: Annotated[float, Field(gt=0)] = LINE_RATE_64B_PPS
    """Frames of 64 bytes per second on one port in one direction; other sizes follow."""
    generator_max_pps: Annotated[float, Field(gt=0)] | None = None
    """Maximum load of the generator, aggregate of both directions; None for line rate."""
    generator: OwnLimits = Field(default=OwnLimits(), exclude_if=lambda limits: limits == OwnLimits())
    """Limits of the generator's own, which a qualification finds."""
    overhead_s: Annotated[float, Field(ge=0)] = 0.5
    """Virtual time of a trial besides sending."""
    capacity_scale: Annotated[float, Field(gt=0)] = 1.0
    """Factor on the calibrated capacity of every cell."""
    sibling_speed: Annotated[float, Field(gt=0, le=1)] = Field(default=0.65, exclude_if=lambda speed: speed == 0.65)
    """Speed of a data thread while the other thread of its core works as well, relative to one that has the core for
    itself, as all have where SMT is switched off. Capacities are calibrated with two busy threads on each core."""
    scales_to: dict[NfKind, Annotated[float, Field(gt=0)]] = Field(default_factory=dict, exclude_if=is_empty)
    """Data cores beyond which NFs of a kind get no faster: their other data threads idle."""
    sensitivity: dict[NfKind, Share] = Field(default_factory=dict, exclude_if=is_empty)
    """Largest degradation of NFs of a kind beside others; `truth` has values for kinds that are not named."""
    half_pressure: dict[NfKind, Annotated[float, Field(gt=0)]] = Field(default_factory=dict, exclude_if=is_empty)
    """Pressure of all neighbours at which NFs of a kind lose half of that."""
    pressure: dict[NfKind, Share] = Field(default_factory=dict, exclude_if=is_empty)
    """Pressure of an NF of a kind on its neighbours; see `truth`, too."""
    network_part: Share = 0.4
    """The part of what NFs lose that goes away when each has its share of the network guaranteed."""
    cpu_part: dict[NfKind, Annotated[float, Field(gt=-1, lt=1)]] = Field(default_factory=dict, exclude_if=is_empty)
    """The part of what NFs of a kind lose that goes away when each has its share of CPU time guaranteed; below 0 they
    lose more. `truth` has values for kinds that are not named."""
    noise: Share = 0.02
    """noisy: standard deviation of the capacity from trial to trial, relative."""
    stall_hz: Annotated[float, Field(ge=0)] = 0.05
    """stall: stalls per second."""
    stall_packets: Annotated[int, Field(ge=1)] = 20
    """stall: packets lost in one."""
    knee: Annotated[float, Field(gt=0, lt=1)] = 0.8
    """knee: share of the capacity at which losses begin."""
    knee_loss: Annotated[float, Field(gt=0, lt=1)] = 0.01
    """knee: loss ratio at the capacity."""
    low_band: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """two_band: share of the capacity that is left in the low band."""
    low_band_share: Annotated[float, Field(ge=0, lt=0.5)] = 0.25
    """two_band: share of trials that run in the low band."""
    sag: Annotated[float, Field(ge=0)] = 0.1
    """sag: packets that one packet above the capacity takes from those that are forwarded."""
    decay: CapacityLoss = Field(default=CapacityLoss(), exclude_if=lambda decay: decay == CapacityLoss())
    """Fault: the system loses capacity while it runs."""
    unfairness: Share = 0.0
    """Spread of losses among service instances and directions, relative; 0 loses the same of all."""
    drop_at: tuple[Annotated[str, AfterValidator(_place)], ...] = ()
    """Fault: names of owners or interfaces where all packets end, such as `nf-2-1`."""
    limited_by: Annotated[str, AfterValidator(_owner)] | None = None
    """Fault: the owner, such as `vswitch` or `nf-2-1`, that limits the system instead of the one that the calibration
    says; with the same capacity. Cells without that NF are as they were."""
    impaired: tuple[Impairment, ...] = Field(default=(), exclude_if=is_empty)
    """Faults: NFs that are impaired in one chain only."""
    drops_inside: bool = False
    """Fault: the owner that limits drops packets itself, as a policer does, and its receive queue never fills."""
    flow_cache: FlowCache | None = Field(default=None, exclude_if=is_none)
    """Flow cache of the vSwitch; None where the number of flows costs nothing."""
    interruptions: Interruptions = Field(
        default=Interruptions(), exclude_if=lambda interruptions: interruptions == Interruptions()
    )
    """Interruptions of events while traffic runs."""
    host_gap_hz: Annotated[float, Field(ge=0, le=10_000)] = Field(default=0.0, exclude_if=is_empty)
    """Interruptions of each data CPU by the host, per second; see `host_gaps`."""
    host_gap_us: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        default=500.0, exclude_if=lambda length: length == 500.0
    )
    """Their mean duration."""
    packet_losses: PacketLosses = Field(default=PacketLosses(), exclude_if=lambda losses: losses == PacketLosses())
    """Mechanisms that lose and reorder packets while losses are counted."""
    power: Power = Field(default=Power(), exclude_if=lambda power: power == Power())
    """Power of the machine."""
    buffer_pools: dict[NfKind, BufferPool] = Field(default_factory=dict, exclude_if=is_empty)
    """Buffers of NFs of a kind, whose memory grows with the load and ends there; see `buffer_pools`."""
    state_tables: StateTables = Field(default=StateTables(), exclude_if=lambda tables: tables == StateTables())
    """Tables of connections of kinds that keep such."""
    hot: dict[str, Annotated[float, Field(gt=0, le=1e6)]] = Field(default_factory=dict, exclude_if=is_empty)
    """Functions in sampled call stacks, such as `sim_filter`, that take so many times their usual part of the time."""
    node_costs: dict[str, NodeWork] = Field(default_factory=dict, exclude_if=is_empty)
    """Graph nodes of the vSwitch, such as `{ip4-lookup: {clocks: 30}}`; without any it counts no work of its own."""
    moved: tuple[str, ...] = ()
    """Fault: interfaces whose data threads leave their planned CPU in the first trial of a search or MRR."""

    def line_pps(self, frame: Frame) -> float:
        """Line rate of one direction for frames of a size."""
        return self.line_rate_pps * (64 + OVERHEAD_BYTES) / (frame.mean_bytes + OVERHEAD_BYTES)


def parse_simulation(parameters: Mapping[str, Any]) -> Simulation:
    """Validate the parameters of a topology.

    Raises:
        ConfigError: A key is unknown or a value does not fit; the text has its path.
    """
    try:
        found = validate_yaml(Simulation, dict(parameters))
    except ValidationError as error:
        errors = error.errors(include_url=False)
        first = errors[0]
        path = dotted(("simulation", *first["loc"]))
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise ConfigError(f"{path}: {reason_of(first, Simulation)}{others}") from error
    for path, number in _numbers("simulation", found.model_dump(exclude={"seed"})):
        if not abs(number) <= HIGHEST_PARAMETER:  # nor what is no number
            raise ConfigError(f"{path}: {number:g} is not from {-HIGHEST_PARAMETER:g} to {HIGHEST_PARAMETER:g}")
    return found


def _numbers(path: str, value: object) -> Iterator[tuple[str, float]]:
    """Numbers at any depth, with their paths."""
    if isinstance(value, int | float):
        yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
    for name, part in parts:
        yield from _numbers(f"{path}.{name}", part)


def simulation_of(topology: Topology) -> Simulation:
    """The parameters of a testbed; its ports give the line rate where the parameters do not.

    Raises:
        ConfigError: A key is unknown or a value does not fit.
    """
    parameters = dict(topology.simulation or {})
    rates = [port.rate_bps for port in topology.tg.interfaces.values() if port.rate_bps is not None]
    if rates:
        parameters.setdefault("line_rate_pps", min(rates) / 8 / (64 + OVERHEAD_BYTES))
    return parse_simulation(parameters)
