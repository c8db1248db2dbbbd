"""CPU discovery on made-up machines."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.errors import Unsupported

Row = tuple[int, str, int, int | None]
"""CPU, its siblings as the kernel writes them, package, NUMA node or none."""


def machine(root: Path, online: str, rows: Iterable[Row]) -> Path:
    """A tree like /sys/devices/system."""
    (root / "cpu").mkdir()
    (root / "cpu" / "online").write_text(f"{online}\n")
    for cpu, siblings, package, node in rows:
        topology = root / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{siblings}\n")
        (topology / "physical_package_id").write_text(f"{package}\n")
        (topology / "core_id").write_text("0\n")  # as useless as in real life
        if node is not None:
            (root / "cpu" / f"cpu{cpu}" / f"node{node}").mkdir()
    return root


def test_siblings_numbered_in_a_row(tmp_path: Path) -> None:
    rows = [(cpu, f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}", 0, 0) for cpu in range(4)]
    found = discover(machine(tmp_path, "0-3", rows), allowed=range(4))
    assert found.smt
    assert found.cores(0) == ((0, 1), (2, 3))


def test_siblings_numbered_in_halves(tmp_path: Path) -> None:
    rows = [(cpu, f"{cpu % 2},{cpu % 2 + 2}", 0, 0) for cpu in range(4)]
    assert discover(machine(tmp_path, "0-3", rows), allowed=range(4)).cores(0) == ((0, 2), (1, 3))


def test_smt_off(tmp_path: Path) -> None:
    found = discover(machine(tmp_path, "0,2", [(0, "0", 0, 0), (2, "2", 0, 0)]), allowed=range(8))
    assert not found.smt
    assert found.cores(0) == ((0,), (2,))


def test_two_numa_nodes_and_sockets(tmp_path: Path) -> None:
    rows = [(cpu, str(cpu), cpu // 2, cpu // 2) for cpu in range(4)]
    found = discover(machine(tmp_path, "0-3", rows), allowed=range(4))
    assert found.numa_nodes == (0, 1)
    assert (found.cores(0), found.cores(1)) == (((0,), (1,)), ((2,), (3,)))
    assert [row.socket for row in found.cpus] == [0, 0, 1, 1]


def test_a_cpuset_hides_cpus(tmp_path: Path) -> None:
    rows = [(cpu, f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}", 0, 0) for cpu in range(4)]
    assert discover(machine(tmp_path, "0-3", rows), allowed={1, 2, 3}).cores(0) == ((1,), (2, 3))


def test_no_numa_and_no_package(tmp_path: Path) -> None:
    found = discover(machine(tmp_path, "0", [(0, "0", -1, None)]), allowed={0})
    assert (found.cpus[0].socket, found.cpus[0].node) == (0, 0)


def test_nothing_usable(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"none of the CPUs \[7\]"):
        discover(machine(tmp_path, "0", [(0, "0", 0, 0)]), allowed={7})


def test_no_description(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="online is missing"):
        discover(tmp_path, allowed={0})
