"""JSON of DPDK's Test Suite: `single_core_forward_perf`, one test for each frame size and number of descriptors.

As read in its sources (DPDK, dts/tests/TestSuite_single_core_forward_perf.py): two ports forward to each other on one
core; the generator sends for 30 s as fast as it can on both, and the figure is what came back of both directions. A
frame size counts Ethernet and IP headers and payload, without the FCS.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from csit_utils.dataset.foreign.parts import (
    UNKNOWN_TESTBED,
    Amount,
    Count,
    ForeignPart,
    anchor_of,
    derived,
    read_part,
    single_frame,
)
from csit_utils.dataset.goal_words import mrr_words
from csit_utils.dataset.items import ImportedTest, Status
from csit_utils.dataset.rows import TestRow, frame_text
from resources.libraries.python.quantities import rate

ORIGIN = "dpdk-dts"
_FCS_BYTES = 4
_TRIAL_S = 30.0


class _DtsRow(ForeignPart):
    """A frame size."""

    frame_size: Annotated[int, Field(ge=1, le=65_535, strict=True)] | None
    num_descriptors: Count = None
    expected_mpps: Amount = None
    measured_mpps: Amount
    passed: Annotated[bool, Field(strict=True)] | None = Field(None, alias="pass")


class _DtsResults(ForeignPart):
    """The whole file."""

    results: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=10_000)]


def is_dts(data: Mapping[str, Any]) -> bool:
    """Whether this is such a file."""
    rows = data.get("results")
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict) and "measured_mpps" in rows[0]


def read_dts(data: dict[str, Any], source: str) -> Iterator[ImportedTest]:
    """Yield the tests of one file.

    Raises:
        ReadError: Not its structure.
    """
    for number, part in enumerate(read_part(_DtsResults, data, []).results):
        remarks: list[str] = []
        row = read_part(_DtsRow, part, remarks, f"row {number + 1}: ")
        yield ImportedTest(_test(row, anchor_of("dts", (data, number)), source, remarks))


def _test(row: _DtsRow, anchor: str, source: str, remarks: list[str]) -> TestRow:
    frame = None if row.frame_size is None else single_frame(row.frame_size + _FCS_BYTES)
    if row.frame_size is not None:
        remarks.append(f"frames of {row.frame_size} B without FCS")
    measured_pps = None if row.measured_mpps is None else row.measured_mpps * 1e6
    if row.expected_mpps is not None:
        remarks.append(f"expected were {rate(row.expected_mpps * 1e6)}")
    descriptors = f"-{row.num_descriptors}rxd" if row.num_descriptors is not None else ""
    name = f"{row.frame_size or '?'}B-1c-forward{descriptors}"
    figures: dict[str, Any] = {} if measured_pps is None else {"mrr_pps": measured_pps, "mrr_trials": 1}
    figures |= derived("mrr", measured_pps, frame, None)
    return TestRow(
        anchor=anchor,
        test_id=f"dts.single_core_forward_perf.{name}".lower(),
        test_name=name,
        source=source,
        recorded=True,
        status=Status.FAIL if row.passed is False else Status.PASS,
        message=f"less than expected: {rate(measured_pps)}" if row.passed is False else "",
        tags="",
        origin=ORIGIN,
        run=source,
        world="lab",
        simulated=False,
        testbed=UNKNOWN_TESTBED,
        drivers=f"forwarding on 1 core{f', {row.num_descriptors} descriptors' if row.num_descriptors else ''}",
        goals=mrr_words(1, _TRIAL_S),
        test_type="MRR",
        frame=frame_text(frame) if frame else None,
        frame_mean_bytes=frame.mean_bytes if frame else None,
        evidence="\n".join(remarks),
        **figures,
    )
