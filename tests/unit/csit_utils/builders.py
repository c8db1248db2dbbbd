"""Records with realistic values."""

import math
import random
from functools import cache
from statistics import fmean
from typing import Any

from hdrh.histogram import HdrHistogram

from csit_utils.dataset.items import Refusal
from resources.libraries.python.model import result as results
from resources.libraries.python.model.core_map import CoreMap, Thread, ThreadRole
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, FlowLatency, Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request import goal as searches
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType, TestType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.search.findings.itemize import itemize, itemize_goal
from resources.libraries.python.studies.density.model import DensityRecord, RefusedCell

NDR = searches.Goal(name="NDR", loss_ratio=0.0)
PDR = searches.Goal(name="PDR", loss_ratio=0.005)
PROFILE = searches.SearchProfile(
    name="ladder", goals=(NDR, PDR), duration_max_s=1200.0, latency_duration_s=5.0, latency_probe_pps=200.0,
    mrr_trials=10, mrr_duration_s=1.0,
)  # fmt: skip
B64 = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
IMIX = Frame(
    name="IMIX",
    parts=tuple(FramePart(frame_bytes=size, weight=weight) for size, weight in ((64, 7), (570, 4), (1518, 1))),
)
ENVIRONMENT = results.Environment(
    hostname="bench-1", cpu_model="Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz", microcode="0x2006e05", cpus_online=56,
    memory_bytes=201_326_592_000, kernel="6.18.4-amd64", distribution="Debian GNU/Linux 12 (bookworm)",
    command_line="isolcpus=1-27 nohz_full=1-27 intel_pstate=disable", virtualization=None, python="3.11.2",
    versions={"robotframework": "7.5", "MLRsearch": "1.2.1"},
    git_revision="c3313a2d0f5b8b7a4fc3a8f9d4f4e3b2a1908765", git_dirty=True,
)  # fmt: skip


def rate_of(service: ServiceType, chains: int, nodes: int) -> float:
    """A made-up NDR in the shape of CSIT's: snakes pay per vSwitch crossing, pipelines do not."""
    crossings = 2 if service is ServiceType.CSP else nodes + 1
    base = {ServiceType.VSC: 290_000.0, ServiceType.CSC: 424_000.0, ServiceType.CSP: 420_000.0}[service]
    return base / crossings * math.pow(chains, -0.3 if service is ServiceType.VSC else -0.1)


def flow_latency(instance: int, direction: Direction, median_ns: float, count: int, rng: random.Random) -> FlowLatency:
    """The latency of one flow."""
    tails = (4.0 if rng.random() < 0.005 else 1.0 for _ in range(count))
    values_ns = [int(median_ns * math.exp(rng.gauss(0, 0.15)) * tail) for tail in tails]
    made = HdrHistogram(1, 10_000_000_000, 3)
    for value in values_ns:
        made.record_value(value)
    at = made.get_percentile_to_value_dict([50, 90, 99, 99.9])
    return FlowLatency(
        instance=instance, direction=direction, sent=count, received=count, min_ns=int(made.get_min_value()),
        mean_ns=fmean(values_ns),  # the histogram takes 0.3 s for its own
        p50_ns=at[50], p90_ns=at[90], p99_ns=at[99], p999_ns=at[99.9], max_ns=int(made.get_max_value()),
        histogram=made.encode().decode(),
    )  # fmt: skip


def trial(load_pps: float, chains: int, loss_ratio: float, purpose: str = "search", frame: Frame = B64) -> TrialResult:
    """One trial; the last instance loses most."""
    sent = int(load_pps) // (2 * chains)
    lost = round(loss_ratio * sent * chains)
    flows = tuple(
        FlowCount(instance=i, direction=d, sent=sent, received=max(0, sent - (lost if i == chains else 0)))
        for i in range(1, chains + 1)
        for d in Direction
    )
    return TrialResult(
        trial=Trial(load_pps=load_pps, duration_s=1.0, frame=frame, purpose=purpose), flows=flows,
        started_at="2026-11-20T10:00:00Z", offered_duration_s=1.0, total_duration_s=1.04,
    )  # fmt: skip


def goal_result(goal: searches.Goal, lower_pps: float) -> searches.GoalResult:
    """A finished search."""
    width = 1 + goal.relative_width * 0.9
    return searches.GoalResult(
        goal=goal, lower_pps=lower_pps, upper_pps=lower_pps * width, throughput_pps=lower_pps, complete=True
    )


def search_trials(ndr_pps: float, pdr_pps: float, chains: int, frame: Frame) -> tuple[TrialResult, ...]:
    """Trials that close in on both goals."""
    tried = [(4 * ndr_pps, 0.08), (2 * ndr_pps, 0.04), (0.7 * ndr_pps, 0.0)]
    for distance in (0.4 / 1.8**step for step in range(12)):
        tried += [(ndr_pps * (1 - distance), 0.0), (pdr_pps * (1 + distance), 0.005 + distance / 5)]
    tried += [(ndr_pps, 0.0), (pdr_pps, 0.004)]
    return tuple(trial(pps, chains, loss_ratio, frame=frame) for pps, loss_ratio in tried)


def plan(cell: Cell, *, oversubscribed: bool = False) -> Plan:
    """A plan with a core map and nothing else."""
    last = 4 + cell.nf_count
    planned = [("system", ThreadRole.SYSTEM, 0), ("generator", ThreadRole.DATA, 1)]
    planned += [("vswitch", ThreadRole.MAIN, 2), ("vswitch", ThreadRole.DATA, 3)]
    places = ((instance, node) for instance in range(1, cell.nf_chains + 1) for node in range(1, cell.nf_nodes + 1))
    for cpu, (instance, node) in enumerate(places, 4):
        planned += [(f"nf-{instance}-{node}", ThreadRole.DATA, cpu), (f"nf-{instance}-{node}", ThreadRole.MAIN, last)]
    threads = tuple(
        Thread(owner=owner, role=role, index=0, cpu=1 + cpu % 2 if oversubscribed and cpu else cpu)
        for owner, role, cpu in planned
    )
    cores = CoreMap(
        numa_node=0, smt=False, physical=tuple((cpu,) for cpu in sorted({thread.cpu for thread in threads})),
        threads=threads, cores_needed=5 + cell.nf_count, cores_there=3 if oversubscribed else 28,
        oversubscribed=oversubscribed,
    )  # fmt: skip
    return Plan(
        testbed="local", cell=cell, tags=("NF_DENSITY", cell.service_type, cell.locator), discriminator="link",
        suite_id=f"eth-l2bd-{cell.nf_chains}ch-{2 * cell.nf_count}veth-{cell.nf_count}dcr1t-lnxip4", cores=cores,
        links=(), segments=(), functions=(), flows=(), paths=(),
    )  # fmt: skip


def verdict_with(kind: results.VerdictKind, text: str) -> results.Verdict:
    """A verdict with one finding."""
    return results.Verdict(findings=(results.Finding(kind=kind, text=text),))


def result(  # noqa: PLR0917 - the six words that name a cell read well in their order
    service: ServiceType = ServiceType.CSC, chains: int = 1, nodes: int = 1, frame: Frame = B64,
    size: NfSize = NfSize.ONE, vs_dtc: int = 1, *, simulated: bool = False, oversubscribed: bool = False,
    histograms: bool = True, **changes: Any,
) -> DensityRecord:  # fmt: skip
    """A finished NDR and PDR test; `changes` replace fields of it."""
    cell = Cell(service_type=service, nf_chains=chains, nf_nodes=nodes, nf_sizes=(size,), vs_dtc=vs_dtc)
    fields = _fields(cell, frame, simulated, oversubscribed, histograms)
    return _itemized(DensityRecord(**{**fields, **changes}))


def _itemized(made: DensityRecord) -> DensityRecord:
    """With the figures per instance and direction that its trials give, as a run records them."""
    goals = (itemize_goal(found, made.trials) for found in (made.ndr, made.pdr, made.soak) if found)
    rate = itemize("MRR", (each for each in made.trials if each.trial.purpose == "mrr"))
    found = tuple(each for each in (*goals, rate) if each is not None)
    return made if made.itemized else made.model_copy(update={"itemized": found})


@cache
def _fields(cell: Cell, frame: Frame, simulated: bool, oversubscribed: bool, histograms: bool) -> dict[str, Any]:
    service, chains, nodes = cell.service_type, cell.nf_chains, cell.nf_nodes
    rng = random.Random(f"{cell}{frame.name}")
    ndr = rate_of(service, chains, nodes) * (1 if frame is B64 else 0.6) * (20 if simulated else 1)
    ndr *= rng.uniform(0.97, 1.03)
    pdr = ndr * rng.uniform(1.02, 1.12)
    name = f"{frame.name}-{cell.vs_dtc}c-{service.lower()}-{chains}ch-{nodes}n-ndrpdr"
    made_plan = plan(cell, oversubscribed=oversubscribed)
    loads = (("PDR0", 0.0, 30_000), ("PDR10", 0.1, 34_000), ("PDR50", 0.5, 52_000), ("PDR90", 0.9, 140_000))
    latency = tuple(
        results.LatencyAtLoad(
            label=label,
            load_pps=share * pdr,
            flows=tuple(
                flow_latency(i, d, median * nodes * rng.uniform(0.9, 1.1), 1000, rng)
                for i in range(1, chains + 1)
                for d in Direction
            ),
        )
        for label, share, median in (loads if histograms else ())
    )
    affinity = tuple(
        results.Affinity(owner=t.owner, interface=f"cs{t.owner}", planned_cpu=t.cpu, actual_cpus=(t.cpu,))
        for t in made_plan.cores.threads
        if t.role is ThreadRole.DATA
    )
    kind = results.VerdictKind.OVERSUBSCRIBED if oversubscribed else results.VerdictKind.MEASURED
    verdict = verdict_with(kind, f"NDR {ndr:,.0f} pps, PDR {pdr:,.0f} pps, bounds within 0.5 %")
    return {
        "test_id": f"Density.{service}.{name}", "test_name": name, "tags": made_plan.tags,
        "started_at": f"2026-11-20T1{chains % 10}:{nodes:02d}:00Z",
        "finished_at": f"2026-11-20T1{chains % 10}:{nodes + 3:02d}:00Z",
        "passed": True, "message": "", "world": World.SIM if simulated else World.LOCAL, "simulated": simulated,
        "testbed": "sim" if simulated else "local",
        "asked": results.MeasurementRequest(test_type=TestType.NDRPDR, cell=cell, frame=frame, profile=PROFILE),
        "plan": made_plan, "plan_digest": "0" * 64, "environment": ENVIRONMENT,
        "drivers": {"generator": "sim" if simulated else "ring", "vswitch": "sim" if simulated else "linux_bridge"},
        "trials": search_trials(ndr, pdr, chains, frame), "ndr": goal_result(NDR, ndr), "pdr": goal_result(PDR, pdr),
        "latency": latency, "affinity": affinity, "deployment": results.DeploymentTimes(deploy_s=0.41, remove_s=0.12),
        "verdict": verdict,
    }  # fmt: skip


def mrr_result(service: ServiceType, chains: int, nodes: int, **changes: Any) -> DensityRecord:
    """A finished MRR test."""
    base = result(service, chains, nodes, histograms=False)
    rates = tuple(rate_of(service, chains, nodes) * factor for factor in (1.30, 1.31, 1.29))
    mrr = results.ReceiveRate(
        offered_pps=2e6, receive_rates_pps=rates, mean_pps=sum(rates) / 3, stdev_pps=rates[1] - rates[0]
    )  # fmt: skip
    fields: dict[str, Any] = {
        "asked": base.asked.model_copy(update={"test_type": TestType.MRR}), "ndr": None, "pdr": None, "mrr": mrr,
        "test_id": base.test_id.replace("ndrpdr", "mrr"), "test_name": base.test_name.replace("ndrpdr", "mrr"),
        "trials": tuple(trial(2_000_000, chains, 0.5, purpose="mrr") for _ in rates),
    }  # fmt: skip
    return _itemized(base.model_copy(update={"itemized": (), **fields, **changes}))


def does_not_fit(service: ServiceType, chains: int, nodes: int) -> DensityRecord:
    """A test whose plan was refused."""
    reason = "needs 33 cores on NUMA 0, 28 available"
    return result(
        service, chains, nodes, histograms=False, passed=False, message=reason, unfit=True, plan=None, plan_digest=None,
        trials=(), ndr=None, pdr=None, affinity=(), deployment=None,
        verdict=verdict_with(results.VerdictKind.FAILED, reason),
    )  # fmt: skip


def refused_cell(nf_chains: int, nf_nodes: int, reason: str, source: str = "output.xml", **parts: Any) -> Refusal:
    """A CSC with one vSwitch core that does not fit, unless `parts` of the cell say otherwise."""
    usual = {"service_type": ServiceType.CSC, "nf_chains": nf_chains, "nf_nodes": nf_nodes}
    return Refusal(source, RefusedCell(cell=Cell.model_validate(usual | parts), reason=reason))


CSC, CSP, VSC = ServiceType.CSC, ServiceType.CSP, ServiceType.VSC
SOAK = searches.Goal(name="SOAK", loss_ratio=1e-7, final_trial_duration_s=5.1, duration_sum_s=1800.0)
PRIOR = searches.Prior(test_id="Density.old", started_at="2026-11-19T08:00:00Z", lower_pps={"NDR": 1e5})
RECORD = searches.SearchRecord(
    algorithm=searches.Algorithm.LADDER, prior=PRIOR, prior_refuted=True, trials=43, aborted_trials=12, elapsed_s=31.5
)
VERDICT = results.Verdict(
    findings=(
        results.Finding(kind=results.VerdictKind.GENERATOR_BOUND, text="too slow", numbers=("LATENCY",)),
        results.Finding(kind=results.VerdictKind.UNSTABLE, text="two bands", numbers=("SOAK",)),
    ),
)


def soaked(chains: int = 1, rate: float = 2e5, **changes: object) -> DensityRecord:
    """A finished soak."""
    base = result(CSC, chains, 1)
    latency = tuple(
        load.model_copy(update={"label": load.label.replace("PDR", "SOAK"), "load_pps": share * rate})
        for load, share in zip(base.latency, (0.0, 0.1, 0.5, 0.9), strict=True)
    )
    profile = PROFILE.model_copy(update={"name": "soak", "goals": (SOAK,)})
    plr = {"algorithm": searches.Algorithm.PLR, "prior": None, "prior_refuted": False, "aborted_trials": 0}
    fields = {
        "asked": base.asked.model_copy(update={"profile": profile}), "ndr": None, "pdr": None, "latency": latency,
        "soak": goal_result(SOAK, rate), "search": RECORD.model_copy(update=plr), "verdict": VERDICT,
        "trials": tuple(trial(rate * factor, chains, 0.0, purpose="soak") for factor in (0.9, 1.0, 1.0)),
    }  # fmt: skip
    return base.model_copy(update={**fields, **changes})
