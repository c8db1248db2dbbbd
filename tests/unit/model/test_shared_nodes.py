"""Which nodes of a service instances may share, and how many NFs there are then."""

import pytest
from pydantic import ValidationError

from resources.libraries.python.model.request.cell import Cell, ServiceType


def cell(kind: str = "CSP", chains: int = 2, nodes: int = 3, shared: tuple[int, ...] = (1, 3)) -> Cell:
    return Cell(service_type=ServiceType(kind), nf_chains=chains, nf_nodes=nodes, shared_nodes=shared)


@pytest.mark.parametrize(
    ("kind", "nodes", "shared", "message"),
    [
        ("CSP", 3, (1, 4), "node 4 is to be shared, and an instance has 3 NFs"),
        ("CSP", 3, (3, 1), r"shared nodes \(3, 1\): write each once, in ascending order"),
        ("CSP", 3, (1, 1), "write each once"),
        ("CSC", 3, (1,), "nodes are shared in a CSP only, .*: in a CSC every hop crosses the vSwitch"),
        ("VSC", 3, (1,), "in a VSC every hop crosses the vSwitch"),
    ],
)
def test_what_makes_no_sense_is_refused(kind: str, nodes: int, shared: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        cell(kind, nodes=nodes, shared=shared)


def test_a_split_and_merge_has_four_nfs() -> None:
    assert list(cell().nfs()) == [(0, 1), (1, 2), (0, 3), (2, 2)]
    assert cell().nf_count == 4
    assert [cell().count_of(node) for node in (1, 2, 3)] == [1, 2, 1]
