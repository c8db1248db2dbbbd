"""JSON of NFVbench: one test per frame size of a run.

As read in its sources (opnfv/nfvbench: traffic_client.py, chain_runner.py, cfg.default.yaml): a binary search over
loads in percent of line rate; one trial decides a load; its result is the intended load of both directions.
NDR and PDR have the drop percentages of the run's configuration (0.001 and 0.1 by default). IMIX is
7:4:1 of 64/594/1518 bytes. A chain is an instance, with one VM in PVP and two in PVVP; EXT chains are unknown.
Where no load was low enough, all figures of the goal are 0, `warning` too.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from csit_utils.dataset.foreign.parts import (
    UNKNOWN_TESTBED,
    Amount,
    Count,
    ForeignLatency,
    ForeignPart,
    Usec,
    anchor_of,
    derived,
    frame_of,
    goal_columns,
    latency_row,
    no_time,
    read_part,
    single_frame,
)
from csit_utils.dataset.goal_words import ONE_WAY, GoalWords, mrr_words, remark_columns
from csit_utils.dataset.items import ImportedTest, ImportedTrial, Item, ReadError, Status
from csit_utils.dataset.rows import EITHER, LatencyRow, TestRow, frame_text
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.request.cell import Frame, ServiceType

Drops = Annotated[float, Field(strict=True, allow_inf_nan=False)] | None
"""In percent; negative where more was received than sent."""
Warned = Annotated[str | None, BeforeValidator(lambda value: value or None)]
"""A warning, whose absence has several forms."""


class Goals(ForeignPart):
    """Drop rates that were searched, and how close, in percent."""

    NDR: Amount = None
    PDR: Amount = None
    load_epsilon: Amount = None


class NfvbenchFlavor(ForeignPart):
    """Of the VMs."""

    vcpus: Count = None


class Config(ForeignPart):
    """How the run was asked for."""

    duration_sec: Amount = None
    measurement: Goals | None = None
    tool: str | None = Field(None, alias="tg-tool")
    vm_forwarder: str | None = None
    flavor: NfvbenchFlavor | None = None
    vif_multiqueue_size: Count = None
    sriov: bool | None = None
    l3_router: bool | None = None
    service_chain_shared_net: bool | None = None
    user_label: str | None = None


class Openstack(ForeignPart):
    """Facts of the host about its networks."""

    vswitch: str | None = None
    encaps: str | None = None


class Overall(ForeignLatency):
    """Both directions together, at one load."""

    drop_percentage: Drops = None
    drop_rate_percent: Drops = None


class Stats(ForeignPart):
    """Counters at one load."""

    overall: Overall = Overall()
    total_tx_rate: Usec = None
    warning: Warned = None
    """Set if much less was sent than intended."""


class AtLoad(ForeignPart):
    """The load that was found; 0 where none was low enough."""

    rate_pps: Amount
    rate_percent: Amount = None
    stats: Stats


class SearchTrial(ForeignPart):
    """One trial of a search."""

    tx_pps: Amount = None
    """Requested."""
    drop_percentage: Drops = None
    warning: Warned = None
    """As in `Stats`."""


class Iterations(ForeignPart):
    """All trials of a search."""

    ndr_pdr: tuple[SearchTrial, ...] = ()


class NfvbenchRate(ForeignPart):
    """In packets per second and in percent of line rate, of both directions together."""

    rate_pps: Amount
    rate_percent: Amount = None


class NfvbenchRates(ForeignPart):
    """Asked for, sent and received."""

    orig: NfvbenchRate = NfvbenchRate(rate_pps=None)
    tx: NfvbenchRate
    rx: NfvbenchRate


class FixedRateTrial(ForeignPart):
    """A trial at one load."""

    total: NfvbenchRates = Field(alias="direction-total")


class NfvbenchPath(ForeignPart):
    """One direction, by chain."""

    chains: dict[str, ForeignLatency] = Field(default_factory=dict)


class Paths(ForeignPart):
    """Both directions."""

    forward: NfvbenchPath = Field(NfvbenchPath(), alias="Forward")
    reverse: NfvbenchPath = Field(NfvbenchPath(), alias="Reverse")


class OfSize(ForeignPart):
    """All that was measured with one frame size."""

    ndr: AtLoad | None = None
    pdr: AtLoad | None = None
    iteration_stats: Iterations = Iterations()
    run_config: FixedRateTrial | None = None
    stats: Stats | None = None
    packet_path_stats: Paths | None = None


class NfvbenchChains(ForeignPart):
    """The chains, and what was measured, by frame size."""

    bidirectional: bool | None
    service_chain_count: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None
    flow_count: Count = None
    compute_nodes: dict[str, Any] = Field(default_factory=dict)
    result: dict[str, Any]


class Benchmark(ForeignPart):
    """One kind of chain."""

    result: NfvbenchChains


class Network(ForeignPart):
    """By kind of chain."""

    service_chain: dict[str, Benchmark]


class Benchmarks(ForeignPart):
    """Outcome of a run."""

    network: Network


class NfvbenchRun(ForeignPart):
    """The whole file."""

    nfvbench_version: str | None
    date: str | None = None
    config: Config
    openstack_spec: Openstack | None = None
    benchmarks: Benchmarks


ORIGIN = "nfvbench"
IMIX = ((64, 7), (594, 4), (1518, 1))
"""Sizes in bytes, and weights."""
_NODES = {"PVP": 1, "PVVP": 2}
_LINE_RATE_PERCENT = 99.9
"""Of each direction; a share of line rate is rounded to whole packets."""


def read_nfvbench(data: dict[str, Any], source: str) -> Iterator[Item]:
    """Yield the tests of one file.

    Raises:
        ReadError: It has no test, or not the structure of NFVbench's results.
    """
    remarks: list[str] = []
    run = read_part(NfvbenchRun, data, remarks)
    tests = 0
    for chain, benchmark in run.benchmarks.network.service_chain.items():
        for size, found in benchmark.result.result.items():
            if size == "warning":
                continue
            tests += 1
            of_test = list(remarks)
            of_size = read_part(OfSize, found, of_test, f"{chain} {quoted(size)}: ")
            yield _test(run, chain.upper(), benchmark.result, size, of_size, source, (data, size), of_test)
    if not tests:
        raise ReadError("the run of NFVbench has no result, it was started without traffic")


def _test(  # noqa: PLR0917 - the parts of a run, from the whole to the piece
    run: NfvbenchRun,
    chain: str,
    chains: NfvbenchChains,
    size: str,
    of_size: OfSize,
    source: str,
    whole: object,
    remarks: list[str],
) -> ImportedTest:
    frame = _frame(size)
    nodes = _NODES.get(chain)
    count = chains.service_chain_count
    name = f"{size}{'B' if _is_number(size) else ''}-{count or '?'}x{chain}"
    anchor = anchor_of("nfvbench", whole)
    both = chains.bidirectional is not False
    columns, goals = _searched(run, of_size, frame, remarks, bidirectional=both)
    columns |= remark_columns(columns, remarks)
    remarks += _unsent(of_size)
    remarks += _surplus(of_size)
    if of_size.run_config is not None:
        mrr = _fixed(of_size.run_config.total, frame)
        columns |= mrr
        load_pps = _load_pps(of_size.run_config.total, bidirectional=both)
        goals += [mrr_words(1, run.config.duration_sec, load_pps)] if mrr else []
    if frame is None:
        remarks.append(f"the frame size {quoted(size)} is unknown")
    if not goals and not remarks:
        remarks.append("no figure: neither ndr, pdr nor run_config has one")
    row = TestRow(
        anchor=anchor,
        test_id=f"nfvbench.{chain}.{count or '?'}.{size}".lower(),
        test_name=name,
        source=source,
        recorded=True,
        status=Status.PASS,
        message="",
        tags="",
        origin=ORIGIN,
        run=source,
        label=run.config.user_label or None,
        started_at=_started(run.date, remarks),
        world="lab",
        simulated=(run.config.tool or "").lower() == "dummy",
        testbed="+".join(sorted(chains.compute_nodes)) or UNKNOWN_TESTBED,
        drivers=", ".join(_drivers(run, chains, chain)),
        version=run.openstack_spec.vswitch if run.openstack_spec else None,
        revision=f"NFVbench {run.nfvbench_version or ''}".strip(),
        goals="; ".join([*goals, *([] if both else [ONE_WAY])]),
        test_type="NDRPDR" if of_size.ndr or of_size.pdr else "MRR" if "mrr_pps" in columns else None,
        service_type=ServiceType.VSC.value if nodes else None,
        nf_chains=count if nodes else None,
        nf_nodes=nodes,
        frame=frame_text(frame) if frame else None,
        frame_mean_bytes=frame.mean_bytes if frame else None,
        evidence="\n".join(remarks),
        **columns,
    )
    return ImportedTest(row, tuple(_latency(anchor, name, of_size)), tuple(_trials(of_size, run.config.duration_sec)))


def _trials(of_size: OfSize, duration_s: float | None) -> Iterator[ImportedTrial]:
    """Trials of the search whose load was sent."""
    for tried in of_size.iteration_stats.ndr_pdr:
        drops = tried.drop_percentage
        if duration_s and tried.tx_pps and drops is not None and drops <= 100 and not tried.warning:
            yield ImportedTrial(tried.tx_pps, max(0.0, drops / 100), duration_s)


def _searched(
    run: NfvbenchRun, of_size: OfSize, frame: Frame | None, remarks: list[str], *, bidirectional: bool
) -> tuple[dict[str, Any], list[str]]:
    """Columns and definitions of the results of a search."""
    columns: dict[str, Any] = {}
    goals: list[str] = []
    wanted = run.config.measurement
    for name, found in (("NDR", of_size.ndr), ("PDR", of_size.pdr)):
        if found is None or found.rate_pps is None:
            continue
        percent = None if wanted is None else wanted.NDR if name == "NDR" else wanted.PDR
        if wanted is None or percent is None or percent >= 100:
            permits = "is unknown" if percent is None else f"of {percent:g} % permits anything"
            remarks.append(f"{name} is left out: its intended drop rate {permits}")
            continue
        loss = float(Decimal(repr(percent)) / 100)
        goals.append(GoalWords(name, loss, exceed_ratio=0.0, trial_s=run.config.duration_sec).text)
        lower = found.rate_pps or None
        over = [
            tried.tx_pps
            for tried in of_size.iteration_stats.ndr_pdr
            if tried.drop_percentage is not None and tried.drop_percentage > percent
            if tried.tx_pps is not None and tried.tx_pps > found.rate_pps
        ]
        upper = min(over, default=None)
        # Resolution of the search: a share of line rate, per direction.
        directions = 2 if bidirectional else 1
        per_percent = found.rate_pps / found.rate_percent if found.rate_percent else 0.0
        gap_pps = 1.01 * (wanted.load_epsilon or 0.0) * directions * per_percent
        complete = lower is not None and (upper is None or upper - lower <= gap_pps)
        columns |= goal_columns(name.lower(), loss, lower, upper, complete, frame, None)
        if lower is None:
            columns[f"{name.lower()}_lowest_tried_pps"] = upper
            lowest = "" if upper is None else f", also at the lowest load tried, {upper:,.0f} pps"
            remarks.append(f"{name} was not reached: more than {percent:g} % was dropped at each load{lowest}")
    return columns, goals


def _unsent(of_size: OfSize) -> Iterator[str]:
    """Notes on loads of which the generator sent less: NFVbench warns, and reports the load nevertheless."""
    for name, found in (("NDR", of_size.ndr), ("PDR", of_size.pdr)):
        if found is not None and found.stats.warning:
            sent = found.stats.total_tx_rate
            much = f", {sent:,.0f} pps" if sent is not None else ""
            yield f"{name} is the intended load; the generator sent less than 90 % of it{much}"


def _surplus(of_size: OfSize) -> Iterator[str]:
    """Notes on loads of which more was received than sent."""
    loads = [(name, found.stats) for name, found in (("NDR", of_size.ndr), ("PDR", of_size.pdr)) if found is not None]
    loads += [("the fixed load", of_size.stats)] if of_size.stats is not None else []
    for name, stats in loads:
        for drops in (stats.overall.drop_percentage, stats.overall.drop_rate_percent):
            if drops is not None and drops < 0:
                more = f"at {name}, {-drops:.3g} % more received than sent"
                yield f"{more}: duplicates, or counters read at different times"


def _fixed(total: NfvbenchRates, frame: Frame | None) -> dict[str, float | int | None]:
    """A trial at a fixed load as MRR."""
    sent, received = total.tx.rate_pps, total.rx.rate_pps
    if received is None:
        return {}
    return {"mrr_offered_pps": sent, "mrr_pps": received, "mrr_trials": 1} | derived("mrr", received, frame, None)


def _load_pps(total: NfvbenchRates, *, bidirectional: bool) -> float | None:
    """Load that was asked for; None for line rate, which is sent where more is asked for."""
    asked = total.orig.rate_percent
    line = asked is not None and asked >= _LINE_RATE_PERCENT * (2 if bidirectional else 1)
    return None if line else total.orig.rate_pps or total.tx.rate_pps


def _frame(size: str) -> Frame | None:
    if size.upper() == "IMIX":
        return frame_of("IMIX", IMIX)
    return single_frame(int(size)) if _is_number(size) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6


def _started(date: str | None, remarks: list[str]) -> str | None:
    """Start time without a zone: NFVbench writes the local time of its machine."""
    try:
        return datetime.strptime(date, "%Y-%m-%d %H:%M:%S").isoformat() if date else None
    except ValueError:
        remarks.append(no_time(date))
        return None


def _drivers(run: NfvbenchRun, chains: NfvbenchChains, chain: str) -> Iterator[str]:
    """Properties by which systems differ, besides compute nodes and counts."""
    config = run.config
    yield f"chain {chain}"
    if config.tool:
        yield f"generator {config.tool}"
    if run.openstack_spec and run.openstack_spec.vswitch:
        encapsulation = f" ({run.openstack_spec.encaps})" if run.openstack_spec.encaps else ""
        yield f"vSwitch {run.openstack_spec.vswitch}{encapsulation}"
    if chain in _NODES:
        cpus = f" on {config.flavor.vcpus} vCPUs" if config.flavor and config.flavor.vcpus else ""
        queues = f", {config.vif_multiqueue_size} queues" if (config.vif_multiqueue_size or 1) > 1 else ""
        yield f"function {config.vm_forwarder or 'unknown'}{cpus}{queues}"
    marks = {"SR-IOV": config.sriov, "L3 router": config.l3_router, "shared networks": config.service_chain_shared_net}
    yield from (word for word, there in marks.items() if there)
    if chains.flow_count is not None:
        yield f"{chains.flow_count} flows"


def _latency(anchor: str, name: str, of_size: OfSize) -> Iterator[LatencyRow]:
    """Latency at the found loads over all chains and directions; at a fixed load by chain and direction."""
    for label, found in (("NDR", of_size.ndr), ("PDR", of_size.pdr)):
        if found is not None and found.rate_pps:
            yield latency_row(
                found.stats.overall,
                anchor=anchor,
                test_name=name,
                load=label,
                load_pps=found.rate_pps,
                direction=EITHER,
            )
    load_pps = of_size.run_config.total.tx.rate_pps if of_size.run_config is not None else None
    if load_pps is None or of_size.packet_path_stats is None:
        return
    paths: Sequence[tuple[str, Mapping[str, ForeignLatency]]] = (
        ("forward", of_size.packet_path_stats.forward.chains),
        ("reverse", of_size.packet_path_stats.reverse.chains),
    )
    for direction, chains in paths:
        for index, of_chain in chains.items():
            if not _is_number(index) or of_chain.mean_us is None:
                continue
            yield latency_row(
                of_chain,
                anchor=anchor,
                test_name=name,
                load="fixed",
                load_pps=load_pps,
                direction=direction,
                instance=int(index) + 1,
            )
