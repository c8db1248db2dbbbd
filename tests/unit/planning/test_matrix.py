"""The whole matrix: fast, and with a reason for every cell that does not run."""

from pathlib import Path

import pytest

from resources.libraries.python.model.cpu import layout
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.selection import parse_selection
from resources.libraries.python.planning.matrix import candidates

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
SIM = load_topology(TOPOLOGIES / "sim.yaml")
LOCAL = load_topology(TOPOLOGIES / "local.yaml")
TWO_CORES = layout([(0, 0, 0, 0), (1, 1, 0, 0)])


def test_every_cell_of_10_by_10_fits_or_says_why() -> None:
    everything = parse_selection(cells="1-10x1-10", nf_sizes="0.5c,1c,2c", vswitch="1,2,4")
    rows = list(candidates(SIM, SIM.dut.layout, everything))
    assert len(rows) == 100 * 3 * 3 * 3
    assert all((row.cores is not None) == row.fits == (row.reason is None) for row in rows)


@pytest.mark.parametrize(
    ("kind", "size", "reason", "runs"),
    [
        ("CSC", "1c", "needs 6 cores on NUMA 0, 2 there", True),
        ("CSC", "0.5c", "NF size 0.5c needs SMT (half a core is one of two sibling threads), and SMT is off", False),
        ("VSC", "1c", "testbed local has no driver for VMs", False),
    ],
)
def test_two_cores_run_what_is_only_a_matter_of_their_number(kind: str, size: str, reason: str, runs: bool) -> None:
    asked = parse_selection(service_types=kind, cells="1x1", nf_sizes=size)
    (row,) = candidates(LOCAL, TWO_CORES, asked)
    assert (row.reason, row.runs, row.oversubscribed, row.fits) == (reason, runs, runs, False)


def test_more_instances_than_addresses() -> None:
    asked = parse_selection(service_types="CSC", cells="300x1", nf_sizes="1c")
    (row,) = candidates(LOCAL, TWO_CORES, asked)
    assert row.reason == "needs addresses for 300 instances and 300 NFs, there are 254 and 65535"
    assert not row.runs
