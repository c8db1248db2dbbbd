"""Rows of tests, from records, and from Robot's data on tests without one."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from csit_utils.dataset.goal_words import profile_text
from csit_utils.dataset.heads import (
    CountedHead,
    FindingHead,
    GoalResultHead,
    Head,
    ReceiveRateHead,
    SearchHead,
    VerdictHead,
    head_of,
)
from csit_utils.dataset.items import Recorded, Unrecorded
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.cell import Cell, Frame, ServiceType, TestType
from resources.libraries.python.model.goal import Algorithm, SearchProfile
from resources.libraries.python.model.result import Verdict, VerdictKind, l1_bps, l2_bps
from resources.libraries.python.recording.packed import Counted, counted
from resources.libraries.python.search.profiles import current_name
from resources.libraries.python.studies.density.planning.matrix import core_usage

_NUMBERS = ("NDR", "PDR", "SOAK", "MRR", "ORR", "LATENCY")
_CACHED = 4096
_OVERSUBSCRIBED = VerdictKind.OVERSUBSCRIBED.value
Values = Mapping[str, Any]
"""Some fields of a row."""


def frame_text(frame: Frame) -> str:
    """Return the name of a frame size, with its parts if the name does not state them."""
    if len(frame.parts) == 1 and frame.name.upper() == f"{frame.parts[0].frame_bytes}B":
        return frame.name
    return f"{frame.name} ({', '.join(f'{part.weight}x{part.frame_bytes}' for part in frame.parts)})"


def nf_data_cores(cell: Cell) -> float:
    """Return the physical data cores of all NFs of a cell, passive ones included."""
    return sum(count * size.cores for size, count in cell.sizes())


@dataclass(frozen=True, slots=True)
class AskedParts:
    """Fields of rows that follow from the requested test, equal in many tests."""

    row: Values
    """Fields of a row."""
    anchor: str
    """Prefix of anchors; see `Recorded.anchor`."""
    l1_bits: float
    """L1 bits of one packet."""
    l2_bits: float
    data_cores: float


def asked_parts(test_type: str, cell: Values, frame: Values, profile: Values, others: Values) -> AskedParts:
    """Combine the parts of the requested test.

    Args:
        test_type: Type of the test.
        cell: As `cell_part`.
        frame: As `frame_part`.
        profile: As `profile_part`.
        others: Further fields.
    """
    named = {name: frame[name] for name in ("frame", "frame_mean_bytes")}
    row = {**others, "recorded": True, "test_type": test_type, **cell, **named, **profile}
    locator = f"{cell['nf_chains']}R{cell['nf_nodes']}C"
    anchor = f"test-{cell['service_type']}-{locator}-{test_type}-".lower()
    return AskedParts(row, anchor, frame["l1_bits"], frame["l2_bits"], cell["data_cores"])


def cell_part(cell: Cell) -> Values:
    """Return the fields of a cell."""
    nf_cores = nf_data_cores(cell)
    return {
        "service_type": cell.service_type.value,
        "nf_chains": cell.nf_chains,
        "nf_nodes": cell.nf_nodes,
        "nf_size": cell.size_name,
        "vs_dtc": cell.vs_dtc,
        "vswitch_data_cores": float(cell.vs_dtc),
        "nf_data_cores": nf_cores,
        "data_cores": cell.vs_dtc + nf_cores,
        "slide_cores": core_usage(cell),
    }


def frame_part(frame: Frame) -> Values:
    """Return the fields of a frame, and the L1 and L2 bits of one packet."""
    return {
        "frame": frame_text(frame),
        "frame_mean_bytes": frame.mean_bytes,
        "l1_bits": l1_bps(1.0, frame),
        "l2_bits": l2_bps(1.0, frame),
    }


def profile_part(profile: SearchProfile) -> Values:
    """Return the fields of a search profile, under its present name for comparisons with new results."""
    name = current_name(profile.name) if profile.algorithm is Algorithm.LADDER else profile.name
    return {"profile": name, "goals": profile_text(profile)}


def recorded_row(item: Recorded) -> TestRow:
    """Return the row of a test with its record."""
    asked = item.result.asked
    parts = asked_parts(
        asked.test_type.value, cell_part(asked.cell), frame_part(asked.frame), profile_part(asked.profile), {}
    )
    values = row_values(head_of(item.result), parts, counted(item.result, item.digest))
    return TestRow(**values, source=item.source, status=item.status, message=item.message, run=item.source)


def row_values(head: Head, asked: AskedParts, figures: Counted | CountedHead) -> dict[str, Any]:
    """Return all fields of a row that follow from its record; those of `asked.row` come first."""
    verdict, deployment = head.verdict, head.deployment
    row = dict(asked.row)
    row["anchor"] = asked.anchor + figures.digest[:8].lower()
    row["test_id"] = head.test_id
    row["test_name"] = head.test_name
    row["tags"] = " ".join(head.tags)
    row["started_at"] = head.started_at
    row["finished_at"] = head.finished_at
    row["world"] = head.world
    row["simulated"] = head.simulated
    row["testbed"] = head.testbed
    row["drivers"] = _drivers(tuple(head.drivers.items()))
    row["version"] = figures.version
    row["revision"] = figures.revision
    row["environment"] = figures.environment
    row["plan_digest"] = head.plan_digest
    row["planned"] = figures.planned
    row["oversubscribed"] = figures.oversubscribed or _OVERSUBSCRIBED in verdict.kinds
    row["real_cores"] = figures.real_cores
    row["verdicts"] = " ".join(verdict.kinds)
    row["evidence"] = "\n".join(verdict.evidence)
    row["broken"] = len(head.broken)
    row["quarantined"] = head.quarantined
    row["trials"] = figures.trials
    row["trials_s"] = figures.trials_s
    row["deploy_s"] = deployment.deploy_s if deployment else None
    row["remove_s"] = deployment.remove_s if deployment else None
    about = _about(verdict.kinds, verdict.findings)
    row["latency_verdict"] = about["LATENCY"] if figures.loads else ""
    for name, found in (("ndr", head.ndr), ("pdr", head.pdr), ("soak", head.soak)):
        row[f"{name}_verdict"] = about[name.upper()] if found else ""
        if found is not None:
            _goal(row, name, found, asked)
    for name, rate in (("mrr", head.mrr), ("orr", head.orr)):
        row[f"{name}_verdict"] = about[name.upper()] if rate else ""
        if rate is not None:
            _receive_rate(row, name, rate, asked)
    if head.search is not None:
        _search(row, head.search)
    return row


@lru_cache(_CACHED)
def _drivers(named: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{role} {name}" for role, name in sorted(named))


@lru_cache(_CACHED)
def _about(kinds: tuple[str, ...], findings: tuple[FindingHead, ...]) -> Values:
    """Verdicts of each figure of a test, which are equal in many tests."""
    verdict = VerdictHead(kinds, (), findings)
    # It has the attributes that are read.
    return {number: " ".join(Verdict.of(verdict, number)) for number in _NUMBERS}  # type: ignore[arg-type]


def _finite(value: float | None) -> float | None:
    """Return None for NaN and infinity, which JSON of other tools may have."""
    return value if value is not None and math.isfinite(value) else None


def _goal(values: dict[str, Any], name: str, found: GoalResultHead, asked: AskedParts) -> None:
    values[f"{name}_loss_ratio"] = found.goal.loss_ratio
    values[f"{name}_lower_pps"] = _finite(found.lower_pps)
    values[f"{name}_upper_pps"] = _finite(found.upper_pps)
    values[f"{name}_complete"] = found.complete
    values[f"{name}_lowest_tried_pps"] = _finite(found.lowest_tried_pps)
    _derived(values, name, values[f"{name}_lower_pps"], asked)


def _receive_rate(values: dict[str, Any], name: str, found: ReceiveRateHead, asked: AskedParts) -> None:
    values[f"{name}_offered_pps"] = _finite(found.offered_pps)
    values[f"{name}_pps"] = _finite(found.mean_pps)
    values[f"{name}_stdev_pps"] = _finite(found.stdev_pps)
    values[f"{name}_trials"] = len(found.receive_rates_pps)
    _derived(values, name, values[f"{name}_pps"], asked)


def _search(values: dict[str, Any], record: SearchHead) -> None:
    prior = record.prior
    values["search_algorithm"] = record.algorithm
    values["search_prior"] = prior.test_id if prior else None
    values["search_prior_started_at"] = prior.started_at if prior else None
    values["search_prior_refuted"] = record.prior_refuted if prior else None
    values["search_trials"] = record.trials
    values["search_aborted_trials"] = record.aborted_trials
    values["search_elapsed_s"] = _finite(record.elapsed_s)


def _derived(values: dict[str, Any], name: str, rate_pps: float | None, asked: AskedParts) -> None:
    if rate_pps is not None:
        values[f"{name}_l1_bps"] = rate_pps * asked.l1_bits
        values[f"{name}_l2_bps"] = rate_pps * asked.l2_bits
        values[f"{name}_pps_per_core"] = rate_pps / asked.data_cores


def unrecorded_row(item: Unrecorded) -> TestRow:
    """Return the row of a test without a record, from its tags."""
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
        started_at=item.started_at,
        test_type=next((kind.value for kind in TestType if kind in tags), None),
        service_type=next((kind.value for kind in ServiceType if kind in tags), None),
        nf_chains=int(locators[0][1]) if locators else None,
        nf_nodes=int(locators[0][2]) if locators else None,
        nf_size=sizes[0] if sizes else None,
        vs_dtc=switches[0] if switches else None,
        frame=frames[0] if frames else None,
        planned=False if item.message.startswith("PlanError") else None,
    )
