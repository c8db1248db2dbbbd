"""Plans of one machine are what they were: a run that is resumed, or compared, knows its cells by their digests."""

from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.plan import digest, make_plan
from tests.builders import cell_of

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SIXTEEN = layout((cpu, cpu // 2, 0, 0) for cpu in range(16))


@pytest.mark.parametrize(
    ("testbed", "kind", "rows", "columns", "size", "vs_dtc", "expected"),
    [
        ("sim", "CSC", 2, 2, "1c", 1, "0b40bfec89eb31ce"),
        ("sim", "CSP", 4, 3, "0.5c", 2, "1691b3becc302505"),
        ("sim", "VSC", 1, 1, "1c", 1, "948ccc475185217c"),
        ("local", "CSC", 1, 2, "1c", 1, "a42558bc7acd8f39"),
        ("local", "CSP", 2, 2, "0.5c", 1, "d01eb7438fd9122f"),
    ],
)
def test_a_plan_is_the_same_to_the_byte(  # noqa: PLR0917 - a row of the table above
    testbed: str, kind: str, rows: int, columns: int, size: str, vs_dtc: int, expected: str
) -> None:
    topology = load_topology(TOPOLOGIES / f"{testbed}.yaml")
    cell = cell_of(kind, rows, columns, nf_sizes=(NfSize(size),), vs_dtc=vs_dtc)
    plan = make_plan(topology, cell, SIXTEEN if testbed == "local" else topology.dut.layout)
    assert digest(plan).startswith(expected)
