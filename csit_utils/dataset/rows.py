"""Flat, typed rows of tests, latency and instances; `trialrows` has those of trials.

Analysis and tables of the report read rows instead of records, so that other storage formats work as well.
Rates are aggregates of all instances and both directions in packets per second, unless a name says otherwise.
"""

from dataclasses import dataclass

OWN = "csit-density"
"""Origin of results of this suite."""
EVERY_INSTANCE = 0
"""Instance of latency over all instances, as other tools report it."""
EITHER = "both"
"""Direction of latency over both directions, as other tools report it."""


@dataclass(frozen=True)
class TestRow:
    """One test. None is unknown."""

    __test__ = False  # not a pytest class

    anchor: str
    test_id: str
    test_name: str
    source: str
    recorded: bool
    """Whether it has figures: from a readable record, or from a file of another tool."""
    status: str
    message: str
    tags: str
    origin: str = OWN
    """Tool that measured, whose definitions hold."""
    run: str = ""
    """Id of the run."""
    label: str | None = None
    """Label of the run, such as a release."""
    started_at: str | None = None
    """ISO 8601; without a zone, and then taken as UTC, if only Robot's clock is known."""
    finished_at: str | None = None
    world: str | None = None
    simulated: bool | None = None
    testbed: str | None = None
    drivers: str | None = None
    version: str | None = None
    """Version of the vSwitch; of the kernel if that is the vSwitch."""
    revision: str | None = None
    """Git revision of this suite; ends in `+` with uncommitted changes."""
    environment: str | None = None
    """Digest of the environment; equal digests mean equal recorded values."""
    plan_digest: str | None = None
    profile: str | None = None
    goals: str | None = None
    test_type: str | None = None
    service_type: str | None = None
    nf_chains: int | None = None
    nf_nodes: int | None = None
    nf_size: str | None = None
    vs_dtc: int | None = None
    frame: str | None = None
    frame_mean_bytes: float | None = None
    planned: bool | None = None
    oversubscribed: bool | None = None
    vswitch_data_cores: float | None = None
    nf_data_cores: float | None = None
    data_cores: float | None = None
    """Requested physical data cores of the vSwitch and all NFs, without main, system and generator cores."""
    slide_cores: float | None = None
    """Cores of vSwitch and NFs as the slides of IETF 105 count them, main threads included: 2 + 1.5 S N for NF-1c."""
    real_cores: float | None = None
    """Physical cores that the plan takes on the DUT: system, main and data cores, halves rounded up; not the
    generator's. None where there was no plan."""
    ndr_loss_ratio: float | None = None
    ndr_lower_pps: float | None = None
    ndr_upper_pps: float | None = None
    ndr_complete: bool | None = None
    ndr_lowest_tried_pps: float | None = None
    ndr_l1_bps: float | None = None
    ndr_l2_bps: float | None = None
    ndr_pps_per_core: float | None = None
    pdr_loss_ratio: float | None = None
    pdr_lower_pps: float | None = None
    pdr_upper_pps: float | None = None
    pdr_complete: bool | None = None
    pdr_lowest_tried_pps: float | None = None
    pdr_l1_bps: float | None = None
    pdr_l2_bps: float | None = None
    pdr_pps_per_core: float | None = None
    soak_loss_ratio: float | None = None
    soak_lower_pps: float | None = None
    soak_upper_pps: float | None = None
    soak_complete: bool | None = None
    soak_lowest_tried_pps: float | None = None
    soak_l1_bps: float | None = None
    soak_l2_bps: float | None = None
    soak_pps_per_core: float | None = None
    mrr_offered_pps: float | None = None
    mrr_pps: float | None = None
    mrr_stdev_pps: float | None = None
    mrr_trials: int | None = None
    mrr_l1_bps: float | None = None
    mrr_l2_bps: float | None = None
    mrr_pps_per_core: float | None = None
    orr_offered_pps: float | None = None
    orr_pps: float | None = None
    orr_stdev_pps: float | None = None
    orr_trials: int | None = None
    orr_l1_bps: float | None = None
    orr_l2_bps: float | None = None
    orr_pps_per_core: float | None = None
    verdicts: str = ""
    """Verdicts of the whole test; those of figures follow."""
    ndr_verdict: str = ""
    pdr_verdict: str = ""
    soak_verdict: str = ""
    mrr_verdict: str = ""
    orr_verdict: str = ""
    latency_verdict: str = ""
    evidence: str = ""
    search_algorithm: str | None = None
    search_prior: str | None = None
    """Test id of the prior of the search; None for a cold start, or if unknown."""
    search_prior_started_at: str | None = None
    search_prior_refuted: bool | None = None
    """None without a prior."""
    search_trials: int | None = None
    search_aborted_trials: int | None = None
    """Trials aborted early because their loss had decided them."""
    search_elapsed_s: float | None = None
    broken: int | None = None
    """Attempts that broke the system under test."""
    quarantined: str | None = None
    """Reason why further tests of the cell were not run."""
    trials: int | None = None
    trials_s: float | None = None
    deploy_s: float | None = None
    remove_s: float | None = None


@dataclass(frozen=True)
class LatencyRow:
    """One-way latency of one instance in one direction at one load."""

    anchor: str
    test_name: str
    load: str
    load_pps: float
    instance: int
    """From 1; `EVERY_INSTANCE` for all instances."""
    direction: str
    """`forward`, `reverse`, or `EITHER` for both."""
    sent: int | None
    received: int | None
    min_ns: int | None
    mean_ns: float | None
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None
    histogram: str | None
    """HDR histogram of nanoseconds, V2 compressed, base64."""
    verdict: str = ""


@dataclass(frozen=True)
class InstanceRow:
    """A throughput figure of one instance in one direction."""

    anchor: str
    test_name: str
    number: str
    """NDR, PDR, SOAK, MRR, ORR, or overload."""
    load_pps: float
    trials: int
    instance: int
    direction: str
    sent: int
    received: int
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    worst: bool
    """Whether it is the instance with the highest loss ratio."""
    fairness: float | None
    """Jain's index of all instances."""
    verdict: str


@dataclass(frozen=True)
class HopRow:
    """Packets of one instance in one direction that were lost between two hops."""

    anchor: str
    test_name: str
    purpose: str
    offered_pps: float
    instance: int
    direction: str
    owner: str
    cause: str
    last_interface: str
    next_interface: str
    lost: int
    lost_share: float
    """Share of all lost packets."""


@dataclass(frozen=True)
class ThreadRow:
    """CPU time of a data thread while losses were located, as shares of the sending time."""

    anchor: str
    test_name: str
    owner: str
    interface: str
    cpu: int
    running: float
    waiting: float
