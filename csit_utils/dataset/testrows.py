"""Rows of tests, from records and from what Robot says of tests without one."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from csit_utils.dataset.heads import GoalResultHead, Head, MrrHead, SearchHead, VerdictHead, head_of
from csit_utils.dataset.items import Recorded, Unrecorded
from csit_utils.dataset.rows import TestRow, profile_text
from resources.libraries.python.model.cell import Cell, Frame, ServiceType, TestType
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.result import Verdict, VerdictKind, l1_bps, l2_bps
from resources.libraries.python.planning.matrix import core_usage
from resources.libraries.python.recording.packed import Counted, counted

_OVERSUBSCRIBED = VerdictKind.OVERSUBSCRIBED.value
Values = Mapping[str, Any]
"""Some fields of a row."""


def frame_text(frame: Frame) -> str:
    """A frame's name, and what is in it where the name does not say so."""
    if len(frame.parts) == 1 and frame.name.upper() == f"{frame.parts[0].frame_bytes}B":
        return frame.name
    return f"{frame.name} ({', '.join(f'{part.weight}x{part.frame_bytes}' for part in frame.parts)})"


def nf_data_cores(cell: Cell) -> float:
    """Physical data cores of all NFs of a cell."""
    return cell.nf_chains * sum(cell.size_of(node).cores for node in range(1, cell.nf_nodes + 1))


@dataclass(frozen=True, slots=True)
class AskedParts:
    """What was asked, in fields of rows. The parts are the same in many tests."""

    test_type: str
    cell: Values
    frame: Values
    profile: Values

    def anchor(self, digest: str) -> str:
        """As `Recorded.anchor`."""
        cell = self.cell
        locator = f"{cell['nf_chains']}R{cell['nf_nodes']}C"
        return f"test-{cell['service_type']}-{locator}-{self.test_type}-{digest[:8]}".lower()


def cell_part(cell: Cell) -> Values:
    """Fields of a cell."""
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
    """Fields of a frame, and the L1 and L2 bits of one packet."""
    return {
        "frame": frame_text(frame),
        "frame_mean_bytes": frame.mean_bytes,
        "l1_bits": l1_bps(1.0, frame),
        "l2_bits": l2_bps(1.0, frame),
    }


def profile_part(profile: SearchProfile) -> Values:
    """Fields of a search profile."""
    return {"profile": profile.name, "goals": profile_text(profile)}


def recorded_row(item: Recorded) -> TestRow:
    """The row of a test with its record."""
    asked = item.result.asked
    parts = AskedParts(
        asked.test_type.value, cell_part(asked.cell), frame_part(asked.frame), profile_part(asked.profile)
    )
    values = row_values(head_of(item.result), parts, counted(item.result, item.digest))
    return TestRow(**values, source=item.source, status=item.status, message=item.message, run=item.source)


def row_values(head: Head, asked: AskedParts, figures: Counted) -> dict[str, Any]:
    """All fields of a row that its record decides."""
    verdict, cell, frame = head.verdict, asked.cell, asked.frame
    values: dict[str, Any] = {
        "anchor": asked.anchor(figures.digest),
        "test_id": head.test_id,
        "test_name": head.test_name,
        "recorded": True,
        "tags": " ".join(head.tags),
        "started_at": head.started_at,
        "finished_at": head.finished_at,
        "world": head.world,
        "simulated": head.simulated,
        "testbed": head.testbed,
        "drivers": ", ".join(f"{role} {name}" for role, name in sorted(head.drivers.items())),
        "version": figures.version,
        "revision": figures.revision,
        "environment": figures.environment,
        "plan_digest": head.plan_digest,
        "test_type": asked.test_type,
        **cell,
        "frame": frame["frame"],
        "frame_mean_bytes": frame["frame_mean_bytes"],
        **asked.profile,
        "planned": figures.planned,
        "oversubscribed": figures.oversubscribed or _OVERSUBSCRIBED in verdict.kinds,
        "real_cores": figures.real_cores,
        "verdicts": " ".join(verdict.kinds),
        "ndr_verdict": _verdict(verdict, "NDR") if head.ndr else "",
        "pdr_verdict": _verdict(verdict, "PDR") if head.pdr else "",
        "soak_verdict": _verdict(verdict, "SOAK") if head.soak else "",
        "mrr_verdict": _verdict(verdict, "MRR") if head.mrr else "",
        "latency_verdict": _verdict(verdict, "LATENCY") if figures.loads else "",
        "evidence": "\n".join(verdict.evidence),
        "broken": len(head.broken),
        "quarantined": head.quarantined,
        "trials": figures.trials,
        "trials_s": figures.trials_s,
        "deploy_s": head.deployment.deploy_s if head.deployment else None,
        "remove_s": head.deployment.remove_s if head.deployment else None,
    }
    for name, found in (("ndr", head.ndr), ("pdr", head.pdr), ("soak", head.soak)):
        if found is not None:
            _goal(values, name, found, asked)
    if head.mrr is not None:
        _mrr(values, head.mrr, asked)
    if head.search is not None:
        _search(values, head.search)
    return values


def _verdict(verdict: VerdictHead, number: str) -> str:
    """Verdict of one number of a test."""
    return " ".join(Verdict.of(verdict, number))  # type: ignore[arg-type] # has the attributes that it reads


def _finite(value: float | None) -> float | None:
    """JSON of other origin may hold NaN or infinity; in a table those are unknown."""
    return value if value is not None and math.isfinite(value) else None


def _goal(values: dict[str, Any], name: str, found: GoalResultHead, asked: AskedParts) -> None:
    values[f"{name}_loss_ratio"] = found.goal.loss_ratio
    values[f"{name}_lower_pps"] = _finite(found.lower_pps)
    values[f"{name}_upper_pps"] = _finite(found.upper_pps)
    values[f"{name}_complete"] = found.complete
    values[f"{name}_lowest_tried_pps"] = _finite(found.lowest_tried_pps)
    _derived(values, name, values[f"{name}_lower_pps"], asked)


def _mrr(values: dict[str, Any], found: MrrHead, asked: AskedParts) -> None:
    values["mrr_offered_pps"] = _finite(found.offered_pps)
    values["mrr_pps"] = _finite(found.mean_pps)
    values["mrr_stdev_pps"] = _finite(found.stdev_pps)
    values["mrr_trials"] = len(found.receive_rates_pps)
    _derived(values, "mrr", values["mrr_pps"], asked)


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
        values[f"{name}_l1_bps"] = rate_pps * asked.frame["l1_bits"]
        values[f"{name}_l2_bps"] = rate_pps * asked.frame["l2_bits"]
        values[f"{name}_pps_per_core"] = rate_pps / asked.cell["data_cores"]


def unrecorded_row(item: Unrecorded) -> TestRow:
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
