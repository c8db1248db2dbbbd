"""The remark on results whose PDR is below their NDR, for every reader: searches of this project make it themselves."""

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.result import Finding
from resources.libraries.python.search.findings.verdict import GoalBound, out_of_order, rank, verdict_of
from resources.libraries.python.studies.density.model import DensityRecord


def of_row(row: TestRow) -> Finding | None:
    """Return the remark on a row."""
    return out_of_order(
        GoalBound("NDR", row.ndr_loss_ratio, row.ndr_lower_pps), GoalBound("PDR", row.pdr_loss_ratio, row.pdr_lower_pps)
    )


def remarked(record: Record) -> Record:
    """Return a record with the remark, where it lacks it."""
    if not isinstance(record, DensityRecord) or (found := _of_parts(record)) is None:
        return record
    return record.model_copy(update={"verdict": verdict_of((found, *record.verdict.findings))})


def remarked_head(head: Any) -> Any:  # noqa: ANN401 - its type is made at runtime
    """Return a `Head` with the remark, where it lacks it."""
    if (found := _of_parts(head)) is None:
        return head
    (kind_of_findings, _) = get_args(get_type_hints(type(head.verdict))["findings"])
    finding = msgspec.convert(found.model_dump(mode="json"), kind_of_findings)
    every = sorted((finding, *head.verdict.findings), key=lambda each: rank(each.kind))
    return msgspec.structs.replace(head, verdict=msgspec.structs.replace(head.verdict, findings=tuple(every)))


def of_columns(columns: Mapping[str, Any], remarks: list[str]) -> dict[str, str]:
    """Add the remark on the columns of a row to its others; return the columns of its verdicts."""
    ndr, pdr = (
        GoalBound(name.upper(), columns.get(f"{name}_loss_ratio"), columns.get(f"{name}_lower_pps"))
        for name in ("ndr", "pdr")
    )
    if (found := out_of_order(ndr, pdr)) is None:
        return {}
    remarks.append(found.text)
    return dict.fromkeys(("verdicts", "ndr_verdict", "pdr_verdict"), found.kind.value)


def _of_parts(record: Any) -> Finding | None:  # noqa: ANN401 - a record, or the head of one
    ndr, pdr = record.ndr, record.pdr
    if ndr is None or pdr is None or not record.passed:
        return None
    found = out_of_order(
        GoalBound("NDR", ndr.goal.loss_ratio, ndr.lower_pps), GoalBound("PDR", pdr.goal.loss_ratio, pdr.lower_pps)
    )
    return None if found is None or any(found.text == each.text for each in record.verdict.findings) else found
