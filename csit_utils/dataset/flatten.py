"""From items of a dataset to flat rows."""

import hashlib
import math
import re
from collections.abc import Iterator

from csit_utils.analysis.fairness import itemized
from csit_utils.dataset.items import Dataset, Recorded, Unrecorded
from csit_utils.dataset.rows import (
    FlowRow,
    HopRow,
    InstanceRow,
    LatencyRow,
    TestRow,
    ThreadRow,
    TrialRow,
    profile_text,
)
from resources.libraries.python.model.cell import Cell, Frame, ServiceType, TestType
from resources.libraries.python.model.goal import GoalResult, SearchRecord
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Environment, Mrr, Result, VerdictKind, l1_bps, l2_bps
from resources.libraries.python.planning.matrix import core_usage
from resources.libraries.python.planning.names import GENERATOR


def frame_text(frame: Frame) -> str:
    """A frame's name, and what is in it where the name does not say so."""
    if len(frame.parts) == 1 and frame.name.upper() == f"{frame.parts[0].frame_bytes}B":
        return frame.name
    return f"{frame.name} ({', '.join(f'{part.weight}x{part.frame_bytes}' for part in frame.parts)})"


def nf_data_cores(cell: Cell) -> float:
    """Physical data cores of all NFs of a cell."""
    return cell.nf_chains * sum(cell.size_of(node).cores for node in range(1, cell.nf_nodes + 1))


def rows_of_tests(dataset: Dataset) -> list[TestRow]:
    """One row per test, those without a record last."""
    return [*map(_recorded_row, dataset.recorded), *map(_unrecorded_row, dataset.unrecorded)]


def version_of(result: Result) -> str:
    """What the vSwitch said of itself while it ran, or the kernel, which is the vSwitch otherwise."""
    if result.simulated:
        return "simulated"
    said = result.facts.get("vswitch", {}).get("vswitch")
    return said or f"Linux {result.environment.kernel.split(' ', 1)[0]}"


def revision_of(environment: Environment) -> str | None:
    """Short git revision, with a `+` where there were uncommitted changes."""
    if environment.git_revision is None:
        return None
    return environment.git_revision[:12] + ("+" if environment.git_dirty else "")


def digest_of(environment: Environment) -> str:
    """The same for equal environments."""
    return hashlib.sha256(environment.model_dump_json().encode()).hexdigest()[:16]


def _recorded_row(item: Recorded) -> TestRow:
    result = item.result
    asked, cell, frame = result.asked, result.asked.cell, result.asked.frame
    nf_cores = nf_data_cores(cell)
    cores = cell.vs_dtc + nf_cores
    kinds = result.verdict.kinds
    planned_so = result.plan is not None and result.plan.cores.oversubscribed
    return TestRow(
        anchor=item.anchor,
        test_id=result.test_id,
        test_name=result.test_name,
        source=item.source,
        recorded=True,
        status=item.status,
        message=item.message,
        tags=" ".join(result.tags),
        run=item.source,
        started_at=result.started_at,
        finished_at=result.finished_at,
        world=result.world,
        simulated=result.simulated,
        testbed=result.testbed,
        drivers=", ".join(f"{role} {name}" for role, name in sorted(result.drivers.items())),
        version=version_of(result),
        revision=revision_of(result.environment),
        environment=digest_of(result.environment),
        plan_digest=result.plan_digest,
        profile=asked.profile.name,
        goals=profile_text(asked.profile),
        test_type=asked.test_type,
        service_type=cell.service_type,
        nf_chains=cell.nf_chains,
        nf_nodes=cell.nf_nodes,
        nf_size="+".join(cell.nf_sizes),
        vs_dtc=cell.vs_dtc,
        frame=frame_text(frame),
        frame_mean_bytes=frame.mean_bytes,
        planned=result.plan is not None,
        oversubscribed=planned_so or VerdictKind.OVERSUBSCRIBED in kinds,
        vswitch_data_cores=float(cell.vs_dtc),
        nf_data_cores=nf_cores,
        data_cores=cores,
        slide_cores=core_usage(cell),
        real_cores=_real_cores(result.plan),
        verdicts=" ".join(kinds),
        ndr_verdict=_verdict(result, "NDR") if result.ndr else "",
        pdr_verdict=_verdict(result, "PDR") if result.pdr else "",
        soak_verdict=_verdict(result, "SOAK") if result.soak else "",
        mrr_verdict=_verdict(result, "MRR") if result.mrr else "",
        latency_verdict=_verdict(result, "LATENCY") if result.latency else "",
        evidence="\n".join(result.verdict.evidence),
        broken=len(result.broken),
        quarantined=result.quarantined,
        trials=len(result.trials),
        trials_s=sum(trial.total_duration_s for trial in result.trials),
        deploy_s=result.deployment.deploy_s if result.deployment else None,
        remove_s=result.deployment.remove_s if result.deployment else None,
        # The names below are made from the goal's name; a test compares them with the fields of TestRow.
        **_goal("ndr", result.ndr, frame, cores),  # type: ignore[arg-type]
        **_goal("pdr", result.pdr, frame, cores),  # type: ignore[arg-type]
        **_goal("soak", result.soak, frame, cores),  # type: ignore[arg-type]
        **_mrr(result.mrr, frame, cores),  # type: ignore[arg-type]
        **_search(result.search),  # type: ignore[arg-type]
    )


def _verdict(result: Result, number: str) -> str:
    """Verdict of one number of a test."""
    return " ".join(result.verdict.of(number))


def _real_cores(plan: Plan | None) -> float | None:
    """Of the (first) DUT, as data cores are counted. A generator on it has one thread on each of its cores."""
    if plan is None:
        return None
    return float(plan.cores.cores_needed - sum(thread.owner == GENERATOR for thread in plan.cores.on(None)))


def _finite(value: float | None) -> float | None:
    """JSON of other origin may hold NaN or infinity; in a table those are unknown."""
    return value if value is not None and math.isfinite(value) else None


def _goal(name: str, found: GoalResult | None, frame: Frame, cores: float) -> dict[str, float | bool | None]:
    if found is None:
        return {}
    return {
        f"{name}_loss_ratio": found.goal.loss_ratio,
        f"{name}_lower_pps": _finite(found.lower_pps),
        f"{name}_upper_pps": _finite(found.upper_pps),
        f"{name}_complete": found.complete,
        f"{name}_lowest_tried_pps": _finite(found.lowest_tried_pps),
        **_derived(name, _finite(found.lower_pps), frame, cores),
    }


def _mrr(found: Mrr | None, frame: Frame, cores: float) -> dict[str, float | int | None]:
    if found is None:
        return {}
    return {
        "mrr_offered_pps": _finite(found.offered_pps),
        "mrr_pps": _finite(found.mean_pps),
        "mrr_stdev_pps": _finite(found.stdev_pps),
        "mrr_trials": len(found.receive_rates_pps),
        **_derived("mrr", _finite(found.mean_pps), frame, cores),
    }


def _search(record: SearchRecord | None) -> dict[str, str | float | bool | None]:
    if record is None:
        return {}
    prior = record.prior
    return {
        "search_algorithm": record.algorithm.value,
        "search_prior": prior.test_id if prior else None,
        "search_prior_started_at": prior.started_at if prior else None,
        "search_prior_refuted": record.prior_refuted if prior else None,
        "search_trials": record.trials,
        "search_aborted_trials": record.aborted_trials,
        "search_elapsed_s": _finite(record.elapsed_s),
    }


def _derived(name: str, rate_pps: float | None, frame: Frame, cores: float) -> dict[str, float]:
    if rate_pps is None:
        return {}
    return {
        f"{name}_l1_bps": l1_bps(rate_pps, frame),
        f"{name}_l2_bps": l2_bps(rate_pps, frame),
        f"{name}_pps_per_core": rate_pps / cores,
    }


def _unrecorded_row(item: Unrecorded) -> TestRow:
    """What the tags tell of a test without a record."""
    tags = {tag.upper() for tag in item.tags}
    locators = [match for tag in tags if (match := re.fullmatch(r"(\d+)R(\d+)C", tag))]
    sizes = [match[1].lower() for tag in tags if (match := re.fullmatch(r"NF_([\dC.+]+)", tag))]
    switches = [int(match[1]) for tag in tags if (match := re.fullmatch(r"(\d)C", tag))]
    frames = [tag for tag in tags if re.fullmatch(r"\d{2,4}B|IMIX.*", tag)]
    return TestRow(
        anchor=item.anchor,
        test_id=item.test_id,
        test_name=item.name,
        source=item.source,
        recorded=False,
        status=item.status,
        message=item.message,
        tags=" ".join(item.tags),
        run=item.source,
        test_type=next((kind.value for kind in TestType if kind in tags), None),
        service_type=next((kind.value for kind in ServiceType if kind in tags), None),
        nf_chains=int(locators[0][1]) if locators else None,
        nf_nodes=int(locators[0][2]) if locators else None,
        nf_size=sizes[0] if sizes else None,
        vs_dtc=switches[0] if switches else None,
        frame=frames[0] if frames else None,
        planned=False if item.message.startswith("PlanError") else None,
    )


def latency_rows(dataset: Dataset) -> Iterator[LatencyRow]:
    """One row per test, load, instance and direction."""
    for item in dataset.recorded:
        for load in item.result.latency:
            for flow in load.flows:
                yield LatencyRow(
                    item.anchor,
                    item.result.test_name,
                    load.label,
                    load.load_pps,
                    flow.instance,
                    flow.direction,
                    flow.sent,
                    flow.received,
                    flow.min_ns,
                    flow.mean_ns,
                    flow.p50_ns,
                    flow.p90_ns,
                    flow.p99_ns,
                    flow.p999_ns,
                    flow.max_ns,
                    flow.histogram,
                    _verdict(item.result, "LATENCY"),
                )


def trial_rows(dataset: Dataset) -> Iterator[TrialRow]:
    """One row per test and trial."""
    for item in dataset.recorded:
        for number, done in enumerate(item.result.trials, 1):
            yield TrialRow(
                item.anchor,
                item.result.test_name,
                number,
                done.trial.purpose,
                done.started_at,
                done.trial.load_pps,
                done.offered_pps,
                done.forwarded_pps,
                done.sent,
                done.received,
                done.loss_ratio,
                done.trial.duration_s,
                done.offered_duration_s,
                done.total_duration_s,
                done.aborted,
                done.generator_limited,
                done.note,
            )


def flow_rows(dataset: Dataset) -> Iterator[FlowRow]:
    """One row per test, trial, instance and direction."""
    for item in dataset.recorded:
        for number, done in enumerate(item.result.trials, 1):
            for flow in done.flows:
                yield FlowRow(
                    item.anchor,
                    item.result.test_name,
                    number,
                    done.trial.purpose,
                    done.trial.load_pps,
                    flow.instance,
                    flow.direction,
                    flow.sent,
                    flow.received,
                )


def instance_rows(dataset: Dataset) -> Iterator[InstanceRow]:
    """One row per test, throughput figure, instance and direction."""
    for item in dataset.recorded:
        for found in itemized(item.result):
            for flow in found.flows:
                yield InstanceRow(
                    item.anchor,
                    item.result.test_name,
                    found.number,
                    found.load_pps,
                    found.trials,
                    flow.instance,
                    flow.direction,
                    flow.sent,
                    flow.received,
                    flow.offered_pps,
                    flow.forwarded_pps,
                    flow.loss_ratio,
                    flow.instance == found.worst_instance and found.worst_loss_ratio > 0,
                    found.fairness,
                    _verdict(item.result, found.number),
                )


def hop_rows(dataset: Dataset) -> Iterator[HopRow]:
    """One row per test, instance, direction and pair of hops between which packets were lost."""
    for item in dataset.recorded:
        found = item.result.located
        if found is None:
            continue
        for loss in found.hops:
            yield HopRow(
                item.anchor,
                item.result.test_name,
                found.purpose,
                found.offered_pps,
                loss.instance,
                loss.direction,
                loss.owner,
                loss.cause,
                loss.last,
                loss.next,
                loss.lost,
                loss.lost / max(1, found.sent - found.received),
            )


def thread_rows(dataset: Dataset) -> Iterator[ThreadRow]:
    """One row per test and data thread."""
    for item in dataset.recorded:
        found = item.result.located
        for thread in found.usage.threads if found and found.usage else ():
            yield ThreadRow(
                item.anchor,
                item.result.test_name,
                thread.owner,
                thread.interface,
                thread.cpu,
                thread.running,
                thread.waiting,
            )
