"""Model of the parts of NFVbench's JSON that are read."""

from math import isnan
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from csit_utils.dataset.foreign_parts import Amount, Count, Read


def _known(value: object) -> object:
    """Return None for `n/a` and NaN, which mean latencies that were not measured."""
    return None if value == "n/a" or (isinstance(value, float) and isnan(value)) else value


Usec = Annotated[Amount | None, BeforeValidator(_known)]


class Goals(Read):
    """Drop rates that were searched, and how close, in percent."""

    NDR: Amount
    PDR: Amount
    load_epsilon: Amount


class NfvbenchFlavor(Read):
    """Of the VMs."""

    vcpus: Count | None = None


class Config(Read):
    """How the run was asked for."""

    duration_sec: Amount
    measurement: Goals | None = None
    tool: str = Field("", alias="tg-tool")
    vm_forwarder: str | None = None
    flavor: NfvbenchFlavor | None = None
    vif_multiqueue_size: Count | None = None
    sriov: bool | None = None
    l3_router: bool | None = None
    service_chain_shared_net: bool | None = None
    user_label: str | None = None


class Openstack(Read):
    """What the host says of its networks."""

    vswitch: str | None = None
    encaps: str | None = None


class Overall(Read):
    """Both directions together, at one load."""

    drop_percentage: Usec = None
    drop_rate_percent: Usec = None
    avg_delay_usec: Usec = None
    min_delay_usec: Usec = None
    max_delay_usec: Usec = None
    hdrh: str | None = None


class Stats(Read):
    """Counters at one load."""

    overall: Overall
    total_tx_rate: Usec = None
    warning: str | None = None
    """Set if much less was sent than intended."""


class AtLoad(Read):
    """The load that was found; 0 where none was low enough."""

    rate_pps: Amount
    rate_percent: Amount
    stats: Stats


class Tried(Read):
    """One trial of a search."""

    tx_pps: Amount
    drop_percentage: float = Field(strict=True, allow_inf_nan=False)


class Iterations(Read):
    """All trials of a search."""

    ndr_pdr: tuple[Tried, ...] = ()


class NfvbenchRate(Read):
    """In packets per second and in percent of line rate, of both directions together."""

    rate_pps: Amount
    rate_percent: Amount


class NfvbenchRates(Read):
    """Asked for, sent and received."""

    orig: NfvbenchRate
    tx: NfvbenchRate
    rx: NfvbenchRate


class Fixed(Read):
    """A trial at one load."""

    total: NfvbenchRates = Field(alias="direction-total")


class ChainLatency(Read):
    """Of one chain in one direction."""

    lat_avg_usec: Usec = None
    lat_min_usec: Usec = None
    lat_max_usec: Usec = None
    hdrh: str | None = None


class NfvbenchPath(Read):
    """One direction, by chain."""

    chains: dict[str, ChainLatency] = Field(default_factory=dict)


class Paths(Read):
    """Both directions."""

    forward: NfvbenchPath = Field(NfvbenchPath(), alias="Forward")
    reverse: NfvbenchPath = Field(NfvbenchPath(), alias="Reverse")


class OfSize(Read):
    """All that was measured with one frame size."""

    ndr: AtLoad | None = None
    pdr: AtLoad | None = None
    iteration_stats: Iterations = Iterations()
    run_config: Fixed | None = None
    stats: Stats | None = None
    packet_path_stats: Paths | None = None


class NfvbenchChains(Read):
    """The chains, and what was measured, by frame size."""

    bidirectional: bool
    service_chain_count: Annotated[int, Field(ge=1, le=10_000, strict=True)]
    flow_count: Count | None = None
    compute_nodes: dict[str, Any] = Field(default_factory=dict)
    result: dict[str, Any]


class Benchmark(Read):
    """One kind of chain."""

    result: NfvbenchChains


class Network(Read):
    """By kind of chain."""

    service_chain: dict[str, Benchmark]


class Benchmarks(Read):
    """What a run did."""

    network: Network


class NfvbenchRun(Read):
    """The whole file."""

    nfvbench_version: str
    date: str
    config: Config
    openstack_spec: Openstack | None = None
    benchmarks: Benchmarks
