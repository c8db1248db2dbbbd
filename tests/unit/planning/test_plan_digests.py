"""Plans of one machine are what they were: a run that is resumed, or compared, knows its cells by their digests."""

from pathlib import Path

import pytest

from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SIXTEEN = layout((cpu, cpu // 2, 0, 0) for cpu in range(16))


@pytest.mark.parametrize(
    ("testbed", "kind", "rows", "columns", "size", "vs_dtc", "expected"),
    [
        ("sim", "CSC", 2, 2, "1c", 1, "88afcde7dee6272d"),
        ("sim", "CSP", 4, 3, "0.5c", 2, "7419a7f679d41f75"),
        ("sim", "VSC", 1, 1, "1c", 1, "630e2b727a3c515d"),
        ("local", "CSC", 1, 2, "1c", 1, "5aa6589dfec00d88"),
        ("local", "CSP", 2, 2, "0.5c", 1, "c761071ff8b94fb0"),
    ],
)
def test_a_plan_is_the_same_to_the_byte(  # noqa: PLR0917 - a row of the table above
    testbed: str, kind: str, rows: int, columns: int, size: str, vs_dtc: int, expected: str
) -> None:
    topology = load_topology(TOPOLOGIES / f"{testbed}.yaml")
    cell = cell_of(kind, rows, columns, nf_sizes=(NfSize(size),), vs_dtc=vs_dtc)
    plan = make_plan(topology, cell, SIXTEEN if testbed == "local" else topology.dut.layout)
    assert digest_of_model(plan).startswith(expected)
