"""Flat, typed rows of tests, trials, latency and instances.

Analysis and tables of the report read rows instead of records, so that other storage formats work as well.
Rates are aggregates of all instances and both directions in packets per second, unless a name says otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, get_args, get_type_hints

from csit_utils.dataset.goal_words import profile_text
from csit_utils.dataset.measures import PPS, Explanation, Measure, MeasuredValue
from resources.libraries.python.model.measurements.energy import IDLE, joules_per_packet_at, row_at, watts_at
from resources.libraries.python.model.measurements.node_costs import CostByNode
from resources.libraries.python.model.request.cell import Cell, Dimensions, Frame
from resources.libraries.python.model.result import distinct
from resources.libraries.python.studies.density.planning.matrix import core_usage


@dataclass(frozen=True)
class TrialRow:
    """One trial."""

    anchor: str
    test_name: str
    trial: int
    """Counts from 1 in the order of the test."""
    purpose: str
    started_at: str
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    sent: int
    received: int
    loss_ratio: float | None
    duration_s: float
    offered_duration_s: float
    total_duration_s: float
    aborted: bool
    """Ended early because its loss had decided it; counts are of the packets sent."""
    generator_limited: bool
    note: str | None


@dataclass(frozen=True)
class FlowRow:
    """Packets of one instance in one direction in one trial."""

    anchor: str
    test_name: str
    trial: int
    purpose: str
    intended_pps: float
    instance: int
    direction: str
    sent: int
    received: int


PUBLISHED = "published"
"""World of published figures."""
OWN = "csit-density"
"""Origin of results of this suite."""
EVERY_INSTANCE = 0
"""Instance of latency over all instances, as other tools report it."""
EITHER = "both"
"""Direction of latency over both directions, as other tools report it."""


@dataclass(frozen=True)
class At:
    """Where the record of a density test has the value of a column.

    This alone adds a column: what is read of a record, the Parquet and CSV columns and their types follow. With a
    measure, the column is also compared, followed over time and explained.
    """

    path: str
    """Dotted names of fields of `DensityRecord`. `counted` has the figures of its packed part, see `Counted`."""
    convert: Callable[[Any], Any] | None = None
    """Called with the value if it is there; None for the value itself."""
    label: str = ""
    """Name on the page of a test; empty if it is not listed there."""
    measure: Measure | None = None


def _verdicts(findings: Sequence[Any]) -> str:
    return _words(tuple([finding.kind for finding in findings]))


@lru_cache(4096)
def _words(kinds: tuple[str, ...]) -> str:
    return " ".join(distinct(kinds))


def _evidence(findings: Sequence[Any]) -> str:
    return "\n".join(dict.fromkeys([finding.text for finding in findings]))


def _searched(name: str, asked_by: str = "") -> Measure:
    of = name.lower()
    return Measure(
        name,
        goal=name,
        asked_by=asked_by,
        searched=f"{of}_loss_ratio",
        upper_bound=f"{of}_upper_pps",
        complete=f"{of}_complete",
        tried=f"{of}_lowest_tried_pps",
    )


NDR, PDR, SOAK = _searched("NDR"), _searched("PDR"), _searched("SOAK", "NDRPDR")
MRR = Measure("MRR", goal="MRR", stdev="mrr_stdev_pps", trials="mrr_trials")
PDR_CLOCKS, MRR_CLOCKS = (
    Measure(
        f"{load}-clocks",
        "clocks",
        less_is_better=True,
        goal=load,
        optional=True,
        beside=load,
        explanation=Explanation(
            f"{load.lower()}-clocks",
            f"Clocks per packet of the vSwitch {where}",
            "Time that the threads of the vSwitch take for a packet, by their own account.",
            "Clocks of the CPU's time-stamp counter per packet that came back.",
            f"Sum over all nodes of its graph, or its polling threads; set to zero {how}, and read once after it. "
            "The page of a test has the nodes, and `./csit compare` names those that changed.",
            "Packets that are lost behind the vSwitch have cost its time, too. Polls without a packet count for the "
            "packets that came, so each has more clocks at low load.",
        ),
    )
    for load, where, how in (
        ("PDR", "at PDR", "before a trial at that load, after the search"),
        ("MRR", "in MRR", "before the trials of MRR"),
    )
)
"""Of vSwitches that count their work."""
ORR = Measure("ORR", goal="ORR", asked_by="MRR", optional=True, stdev="orr_stdev_pps", trials="orr_trials")
"""Not measured where the highest load of a search is that of MRR."""


def frame_text(frame: Frame) -> str:
    """Return the name of a frame size, with its parts if the name does not state them.

    Of a capture the number of packets and their mean size: its name has digits of the digest of the file.
    """
    if frame.capture is not None:
        return f"{frame.name} ({frame.capture.packets:,} packets, mean {frame.mean_bytes:.0f}B)"
    if len(frame.parts) == 1 and frame.size_name.upper() == f"{frame.parts[0].frame_bytes}B":
        return frame.name
    return f"{frame.name} ({', '.join(f'{part.weight}x{part.frame_bytes}' for part in frame.parts)})"


def _nf_data_cores(cell: Cell) -> float:
    """Return the physical data cores of all NFs of a cell, passive ones included."""
    return sum(count * size.cores for size, count in cell.sizes())


def _data_cores(cell: Cell) -> float:
    return cell.vs_dtc + _nf_data_cores(cell)


def _drivers(by_role: Mapping[str, str]) -> str:
    return _named(tuple(by_role.items()))


def _by_load(sentences: Mapping[str, str]) -> str | None:
    return "; ".join([f"{load}: {sentence}" for load, sentence in sentences.items()]) if sentences else None


def _energy(quantity: Callable[[Any, str], tuple[float, float] | None], label: str) -> Callable[[Any], float | None]:
    """Return what reads a quantity of the system under test at a load, without its error, from an `Energy`."""

    def read(found: Any) -> float | None:  # noqa: ANN401 - fields of an `Energy`
        value = quantity(found, label)
        return value[0] if value else None

    return read


def _at_load(label: str, name: str) -> Callable[[Any], Any]:
    """Return what reads a field of an `EnergyAtLoad`."""

    def read(found: Any) -> Any:  # noqa: ANN401
        row = row_at(found, label)
        return getattr(row, name) if row else None

    return read


def _of(key: str, value: str, name: str) -> Callable[[Any], Any]:
    """Return what reads a field of the first of several parts of a record whose key has a value."""

    def read(found: Any) -> Any:  # noqa: ANN401
        return next((getattr(each, name) for each in found if getattr(each, key) == value), None)

    return read


_cost_fields = attrgetter(*(field.name for field in fields(CostByNode)))


def _costs(found: Any) -> tuple[CostByNode, ...] | None:  # noqa: ANN401 - fields of each `CostByNode`
    return tuple(CostByNode(*_cost_fields(each)) for each in found) if found else None


def _clocks_at(load: str) -> Callable[[Any], float | None]:
    """Return what reads the clocks of the vSwitch per packet at a load from the counted figures."""

    def read(counted: Any) -> float | None:  # noqa: ANN401 - as above
        return counted.vswitch_clocks if any(each.load == load for each in counted.costs) else None

    return read


def _waiting(facts: Mapping[str, Mapping[str, str]]) -> str | None:
    found = facts.get("vswitch", {})
    return next((found[name] for name in ("waiting", "scheduling") if name in found), None)


@lru_cache(4096)
def _named(drivers: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{role} {name}" for role, name in sorted(drivers))


@dataclass(frozen=True)
class TestRow:
    """One test. None is unknown."""

    __test__ = False  # not a pytest class

    anchor: str
    test_id: Annotated[str, At("test_id")]
    test_name: Annotated[str, At("test_name")]
    source: str
    recorded: bool
    """Whether it has figures: from a readable record, or from a file of another tool."""
    status: str
    message: str
    tags: Annotated[str, At("tags", " ".join)]
    origin: str = OWN
    """Tool that measured, whose definitions hold."""
    run: str = ""
    """Id of the run."""
    label: str | None = None
    """Label of the run, such as a release."""
    started_at: Annotated[str | None, At("started_at")] = None
    """ISO 8601; without a zone, and then taken as UTC, if only Robot's clock is known."""
    finished_at: Annotated[str | None, At("finished_at")] = None
    world: Annotated[str | None, At("world")] = None
    simulated: Annotated[bool | None, At("simulated")] = None
    testbed: Annotated[str | None, At("testbed")] = None
    drivers: Annotated[str | None, At("drivers", _drivers)] = None
    version: Annotated[str | None, At("counted.version")] = None
    """Version of the vSwitch; of the kernel if that is the vSwitch."""
    revision: Annotated[str | None, At("counted.revision")] = None
    """Git revision of this suite; ends in `+` with uncommitted changes."""
    environment: Annotated[str | None, At("counted.environment")] = None
    """Digest of the environment; equal digests mean equal recorded values."""
    plan_digest: Annotated[str | None, At("plan_digest")] = None
    profile: Annotated[str | None, At("asked.profile.name")] = None
    goals: Annotated[str | None, At("asked.profile", profile_text)] = None
    test_type: Annotated[str | None, At("asked.test_type", str)] = None
    service_type: Annotated[str | None, At("asked.cell.service_type", str)] = None
    nf_chains: Annotated[int | None, At("asked.cell.nf_chains")] = None
    nf_nodes: Annotated[int | None, At("asked.cell.nf_nodes")] = None
    nf_size: Annotated[str | None, At("asked.cell.size_name")] = None
    vs_dtc: Annotated[int | None, At("asked.cell.vs_dtc")] = None
    frame: Annotated[str | None, At("asked.frame", frame_text)] = None
    frame_mean_bytes: Annotated[float | None, At("asked.frame.mean_bytes")] = None
    ip_version: Annotated[int | None, At("asked.frame.ip_version", label="version of IP")] = None
    flows: Annotated[int | None, At("asked.frame.flows", label="flows of each instance and direction")] = None
    """5-tuples of each instance and direction, where their number was chosen."""
    planned: Annotated[bool | None, At("counted.planned")] = None
    unfit: Annotated[bool, At("unfit")] = False
    """Whether planning found that the cell does not fit on the testbed."""
    oversubscribed: Annotated[bool | None, At("counted.oversubscribed")] = None
    vswitch_data_cores: Annotated[float | None, At("asked.cell.vs_dtc", float)] = None
    nf_data_cores: Annotated[float | None, At("asked.cell", _nf_data_cores)] = None
    data_cores: Annotated[float | None, At("asked.cell", _data_cores)] = None
    """Requested physical data cores of the vSwitch and all NFs, without main, system and generator cores."""
    slide_cores: Annotated[float | None, At("asked.cell", core_usage)] = None
    """Cores of vSwitch and NFs as the slides of IETF 105 count them, main threads included: 2 + 1.5 S N for NF-1c."""
    real_cores: Annotated[float | None, At("counted.real_cores")] = None
    """Physical cores that the plan takes on the DUT: system, main and data cores, halves rounded up; not the
    generator's. None where there was no plan."""
    ndr_loss_ratio: Annotated[float | None, At("ndr.goal.loss_ratio")] = None
    ndr_lower_pps: Annotated[float | None, At("ndr.lower_pps", measure=NDR)] = None
    ndr_upper_pps: Annotated[float | None, At("ndr.upper_pps")] = None
    ndr_complete: Annotated[bool | None, At("ndr.complete")] = None
    ndr_lowest_tried_pps: Annotated[float | None, At("ndr.lowest_tried_pps")] = None
    ndr_l1_bps: float | None = None
    ndr_l2_bps: float | None = None
    ndr_pps_per_core: float | None = None
    pdr_loss_ratio: Annotated[float | None, At("pdr.goal.loss_ratio")] = None
    pdr_lower_pps: Annotated[float | None, At("pdr.lower_pps", measure=PDR)] = None
    pdr_upper_pps: Annotated[float | None, At("pdr.upper_pps")] = None
    pdr_complete: Annotated[bool | None, At("pdr.complete")] = None
    pdr_lowest_tried_pps: Annotated[float | None, At("pdr.lowest_tried_pps")] = None
    pdr_l1_bps: float | None = None
    pdr_l2_bps: float | None = None
    pdr_pps_per_core: float | None = None
    soak_loss_ratio: Annotated[float | None, At("soak.goal.loss_ratio")] = None
    soak_lower_pps: Annotated[float | None, At("soak.lower_pps", measure=SOAK)] = None
    soak_upper_pps: Annotated[float | None, At("soak.upper_pps")] = None
    soak_complete: Annotated[bool | None, At("soak.complete")] = None
    soak_lowest_tried_pps: Annotated[float | None, At("soak.lowest_tried_pps")] = None
    soak_l1_bps: float | None = None
    soak_l2_bps: float | None = None
    soak_pps_per_core: float | None = None
    at_rate: Annotated[str | None, At("at_rate.text", label="Trials at a rate")] = None
    """What trials at a rate that was asked for have decided, in a sentence."""
    rate_load_pps: Annotated[float | None, At("at_rate.load_pps")] = None
    """Aggregate load of trials at a rate that was asked for; None where there are none."""
    rate_ndr_sustained: Annotated[bool | None, At("at_rate.sustained", lambda found: found.get("NDR"))] = None
    """Whether no instance lost more than NDR allows there; None if not decided."""
    rate_pdr_sustained: Annotated[bool | None, At("at_rate.sustained", lambda found: found.get("PDR"))] = None
    mrr_offered_pps: Annotated[float | None, At("mrr.offered_pps")] = None
    mrr_pps: Annotated[float | None, At("mrr.mean_pps", measure=MRR)] = None
    mrr_stdev_pps: Annotated[float | None, At("mrr.stdev_pps")] = None
    mrr_trials: Annotated[int | None, At("mrr.receive_rates_pps", len)] = None
    mrr_l1_bps: float | None = None
    mrr_l2_bps: float | None = None
    mrr_pps_per_core: float | None = None
    orr_offered_pps: Annotated[float | None, At("orr.offered_pps")] = None
    orr_pps: Annotated[float | None, At("orr.mean_pps", measure=ORR)] = None
    orr_stdev_pps: Annotated[float | None, At("orr.stdev_pps")] = None
    orr_trials: Annotated[int | None, At("orr.receive_rates_pps", len)] = None
    orr_l1_bps: float | None = None
    orr_l2_bps: float | None = None
    orr_pps_per_core: float | None = None
    pdr10_p50_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR10", "p50_ns"))] = None
    """Highest median latency of all instances and directions at 10 % of PDR; of the next alike."""
    pdr10_p99_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR10", "p99_ns"))] = None
    pdr10_p999_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR10", "p999_ns"))] = None
    pdr50_p50_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR50", "p50_ns"))] = None
    pdr50_p99_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR50", "p99_ns"))] = None
    pdr50_p999_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR50", "p999_ns"))] = None
    pdr90_p50_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR90", "p50_ns"))] = None
    pdr90_p99_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR90", "p99_ns"))] = None
    pdr90_p999_ns: Annotated[int | None, At("counted.latency", _of("label", "PDR90", "p999_ns"))] = None
    verdicts: Annotated[str, At("verdict.findings", _verdicts)] = ""
    """Verdicts of the whole test; those of figures follow."""
    ndr_verdict: str = ""
    pdr_verdict: str = ""
    soak_verdict: str = ""
    mrr_verdict: str = ""
    orr_verdict: str = ""
    latency_verdict: str = ""
    evidence: Annotated[str, At("verdict.findings", _evidence)] = ""
    search_algorithm: Annotated[str | None, At("search.algorithm")] = None
    search_prior: Annotated[str | None, At("search.prior.test_id")] = None
    """Test id of the prior of the search; None for a cold start, or if unknown."""
    search_prior_started_at: Annotated[str | None, At("search.prior.started_at")] = None
    search_prior_refuted: Annotated[bool | None, At("search.prior_refuted")] = None
    """None without a prior."""
    search_prior_cells: Annotated[int | None, At("search.prior.cells")] = None
    """Cells of the same run that predicted the prior; None without a prior, or if it is an earlier result."""
    ndr_predicted_pps: Annotated[float | None, At("search.predicted", _of("goal", "NDR", "pps"))] = None
    """Lower bound by the cells measured before in the same run, used as the prior or not; then its interval of 95 %."""
    ndr_predicted_low_pps: Annotated[float | None, At("search.predicted", _of("goal", "NDR", "low_pps"))] = None
    ndr_predicted_high_pps: Annotated[float | None, At("search.predicted", _of("goal", "NDR", "high_pps"))] = None
    pdr_predicted_pps: Annotated[float | None, At("search.predicted", _of("goal", "PDR", "pps"))] = None
    pdr_predicted_low_pps: Annotated[float | None, At("search.predicted", _of("goal", "PDR", "low_pps"))] = None
    pdr_predicted_high_pps: Annotated[float | None, At("search.predicted", _of("goal", "PDR", "high_pps"))] = None
    search_trials: Annotated[int | None, At("search.trials")] = None
    search_aborted_trials: Annotated[int | None, At("search.aborted_trials")] = None
    """Trials aborted early because their loss had decided them."""
    search_elapsed_s: Annotated[float | None, At("search.elapsed_s")] = None
    idle_w: Annotated[float | None, At("energy", _energy(watts_at, IDLE))] = None
    """Power of the system under test before the deployment."""
    pdr0_w: Annotated[float | None, At("energy", _energy(watts_at, "PDR0"))] = None
    """Power without traffic; of the next three at 10, 50 and 90 % of PDR."""
    pdr10_w: Annotated[float | None, At("energy", _energy(watts_at, "PDR10"))] = None
    pdr50_w: Annotated[float | None, At("energy", _energy(watts_at, "PDR50"))] = None
    pdr90_w: Annotated[float | None, At("energy", _energy(watts_at, "PDR90"))] = None
    pdr10_j_per_packet: Annotated[float | None, At("energy", _energy(joules_per_packet_at, "PDR10"))] = None
    """Power of the system under test over the rate at which packets came back."""
    pdr50_j_per_packet: Annotated[float | None, At("energy", _energy(joules_per_packet_at, "PDR50"))] = None
    pdr90_j_per_packet: Annotated[float | None, At("energy", _energy(joules_per_packet_at, "PDR90"))] = None
    pdr0_busy_cpus: Annotated[float | None, At("energy", _at_load("PDR0", "busy_cpus"))] = None
    """Data CPUs of vSwitch and NFs that were busy without traffic; of the next three at 10, 50 and 90 % of PDR."""
    pdr10_busy_cpus: Annotated[float | None, At("energy", _at_load("PDR10", "busy_cpus"))] = None
    pdr50_busy_cpus: Annotated[float | None, At("energy", _at_load("PDR50", "busy_cpus"))] = None
    pdr90_busy_cpus: Annotated[float | None, At("energy", _at_load("PDR90", "busy_cpus"))] = None
    pdr10_energy_p99_ns: Annotated[int | None, At("energy", _at_load("PDR10", "p99_ns"))] = None
    """Worst p99 in the trial in which the power was measured."""
    pdr50_energy_p99_ns: Annotated[int | None, At("energy", _at_load("PDR50", "p99_ns"))] = None
    pdr90_energy_p99_ns: Annotated[int | None, At("energy", _at_load("PDR90", "p99_ns"))] = None
    waiting: Annotated[str | None, At("facts", _waiting)] = None
    """How the threads of the vSwitch wait for packets, where it says so."""
    call_stacks: Annotated[str | None, At("stacks_sampled", label="Call stacks")] = None
    """How many were sampled and how; None where none were."""
    pdr_vswitch_clocks: Annotated[float | None, At("counted", _clocks_at("PDR"), measure=PDR_CLOCKS)] = None
    mrr_vswitch_clocks: Annotated[float | None, At("counted", _clocks_at("MRR"), measure=MRR_CLOCKS)] = None
    costs: Annotated[tuple[CostByNode, ...] | None, At("counted.costs", _costs)] = None
    """Cost of packets by node, at PDR or in MRR; a table of its own in files and views."""
    back_to_back_frames: Annotated[float | None, At("back_to_back.mean_frames")] = None
    back_to_back_buffer_s: Annotated[float | None, At("back_to_back.corrected_buffer_s")] = None
    loss_patterns: Annotated[str | None, At("loss_patterns", _by_load)] = None
    """The flow that lost or reordered most at each load, in a sentence."""
    broken: Annotated[int | None, At("broken", len)] = None
    """Attempts that broke the system under test."""
    quarantined: Annotated[str | None, At("quarantined")] = None
    """Reason why further tests of the cell were not run."""
    trials: Annotated[int | None, At("counted.trials")] = None
    trials_s: Annotated[float | None, At("counted.trials_s")] = None
    deploy_s: Annotated[float | None, At("deployment.deploy_s", label="Deployment")] = None
    remove_s: Annotated[float | None, At("deployment.remove_s", label="Removal")] = None

    @property
    def dimensions(self) -> Dimensions | None:
        """Row and column in the density matrix; None if unknown."""
        if self.nf_chains is None or self.nf_nodes is None:
            return None
        return Dimensions(self.nf_chains, self.nf_nodes)


PLACES = {
    column: at
    for column, hint in get_type_hints(TestRow, include_extras=True).items()
    for at in get_args(hint)
    if isinstance(at, At)
}
"""Place in the record by column."""
MEASURES: dict[Measure, str] = {at.measure: column for column, at in PLACES.items() if at.measure is not None}
"""Columns of measures, in their order."""
LISTS: Mapping[str, type[CostByNode]] = {"costs": CostByNode}
"""Columns that are tables, with the types of their rows."""
THROUGHPUTS = tuple(measure for measure in MEASURES if measure.unit == PPS)
"""Measures of the density matrix."""
UNBOUNDED = frozenset(measure for measure in MEASURES if not (measure.upper_bound or measure.stdev))
"""Measures of whose error a single value says nothing."""


@dataclass(frozen=True)
class MeasuredRow(TestRow):
    """A record of another study as a test: the service is its `service_type`, the load its `goals`."""

    measures: tuple[MeasuredValue, ...] = ()


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


@dataclass(frozen=True)
class CostRow:
    """Cost of packets in one node of one thread; see `NodeCost`."""

    anchor: str
    test_name: str
    load: str
    load_pps: float
    part: str
    thread: str
    node: str
    packets: int
    calls: int | None
    cost: float | None
    unit: str
    error: float


DEFAULTS: dict[str, Any] = {
    field.name: None if field.default is MISSING else field.default for field in fields(TestRow)
}
"""A row without values, with the columns in their order."""
