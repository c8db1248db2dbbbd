"""Receive queues of cables: which data thread polls each, and when RSS cannot fill them."""

import pytest

from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import Candidate, candidates
from tests.unit.planning.labs import Word, lab
from tests.unit.planning.polled_ports import polled

FOUR_THREADS = lab(smt=True, discriminator="mac")


def cell(rows: int = 1) -> Cell:
    return Cell(service_type=ServiceType.CSC, nf_chains=rows, nf_nodes=1, vs_dtc=2)


def candidate(topology: Topology, rows: int = 1) -> Candidate:
    selection = parse_selection(service_types="CSC", cells=f"{rows}x1", nf_sizes="1c", vswitch="2")
    (found,) = candidates(topology, {}, selection)
    return found


def test_each_queue_of_a_cable_is_listed_with_its_data_thread_and_cpu() -> None:
    found = candidate(polled(FOUR_THREADS))
    assert found.cores is not None
    cpus = found.cores.cpus("vswitch")
    assert [port.name for port in found.ports] == ["DUT1.port1", "DUT1.port2"]
    placed = ", ".join(f"queue {number} on data thread {number} (CPU {cpus[number]})" for number in range(4))
    assert str(found.ports[0]) == f"DUT1.port1 of vswitch: {placed}"
    assert not any(list(port.warnings()) for port in found.ports)


def test_the_second_dut_of_three_nodes_has_its_own() -> None:
    topology = lab(2, smt=True)
    found = candidate(polled(polled(topology), node="DUT2"))
    assert [(port.name, port.owner) for port in found.ports] == [
        ("DUT1.port1", "vswitch"), ("DUT1.port2", "vswitch"), ("DUT2.port1", "vswitch-2"), ("DUT2.port2", "vswitch-2"),
    ]  # fmt: skip


def test_a_port_with_fewer_queues_than_data_threads_is_named_with_the_reason() -> None:
    by_kernel = lab(smt=True, discriminator="mac", vpp={"ports": "af_packet"})
    assert next(candidate(by_kernel).ports[0].warnings()) == (
        "DUT1.port1: 1 receive queue for 4 data threads of vswitch, because the kernel drives the port: "
        "only 1 of them receive"
    )
    two = next(candidate(polled(FOUR_THREADS, rx_queues=2)).ports[1].warnings())
    assert "DUT1.port2: 2 receive queues for 4 data threads of vswitch, because the NIC has no more than 2" in two


@pytest.mark.parametrize(
    ("sources", "rows", "word", "said"),
    [
        (
            1,
            1,
            "mac",
            "DUT1.port1: 1 address pair for 4 receive queues: RSS hashes nothing else of these packets, so 3",
        ),
        (1, 3, "vlan", "DUT1.port1: 3 address pairs for 4 receive queues"),
        (1, 4, "mac", "DUT1.port1: 4 address pairs for 4 receive queues: too few for RSS to spread them evenly"),
        (16, 2, "link", "DUT1.port1: 16 address pairs for 4 receive queues: too few"),
        (31, 1, "link", "DUT1.port1: 31 address pairs for 4 receive queues: too few"),
        (32, 1, "link", None),
        (16, 2, "mac", None),
        (254, 1, "link", None),
    ],
)
def test_few_address_pairs_do_not_fill_the_queues(sources: int, rows: int, word: Word, said: str | None) -> None:
    topology = polled(lab(1, rows if word == "link" else 1, smt=True, discriminator=word))
    warnings = make_plan(topology, cell(rows), {}, sources=sources).warnings
    assert warnings[0].startswith(said) if said else not warnings, warnings
