"""Memory of a machine from the kernel's files."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu.memory import (
    discover_memory,
    free_pages,
    remove_files,
    require_huge_pages,
)
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.testbed.memory import MemoryNode
from tests.unit.testbed.node.machine_trees import tree

MEMINFO = """MemTotal:       33554432 kB
MemFree:        20971520 kB
MemAvailable:   25165824 kB
HugePages_Total:     512
HugePages_Free:      500
Hugepagesize:       2048 kB
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the files of a machine of 32 GB that has no nodes yet."""
    return tree(tmp_path, {"nodes/none": "", "cgroup/none": "", "meminfo": MEMINFO})


def look(machine: Path) -> tuple[MemoryNode, ...]:
    return discover_memory(machine / "nodes", machine / "meminfo", machine / "cgroup")


def add_node(
    machine: Path, number: int, total_kb: int, free_kb: int, *, pages_2mb: int = 0, pages_1gb: int = 0
) -> None:
    prefix = f"Node {number} "
    huge_pages(machine / "nodes", number, of_2048=(pages_2mb + 7, pages_2mb), of_1048576=(pages_1gb + 7, pages_1gb))
    (machine / f"nodes/node{number}/meminfo").write_text(
        f"{prefix}MemTotal: {total_kb} kB\n{prefix}MemFree: {free_kb} kB\n"
        f"{prefix}FilePages: 1048576 kB\n{prefix}SReclaimable: 0 kB\n{prefix}HugePages_Total: 9\n"
    )


def huge_pages(root: Path, node: int, **pages: tuple[int, int]) -> None:
    """Pages of sizes: all, and free ones."""
    for size, (total, free) in pages.items():
        folder = f"node{node}/hugepages/hugepages-{size.removeprefix('of_')}kB"
        tree(root, {f"{folder}/nr_hugepages": str(total), f"{folder}/free_hugepages": str(free)})


def test_a_kernel_without_nodes_or_with_one_shows_the_whole_machine(machine: Path) -> None:
    assert look(machine) == (MemoryNode(total_mb=32768, hugepages_2mb=500, available_mb=24576),)
    add_node(machine, 0, 4_194_304, 1_048_576, pages_2mb=10, pages_1gb=2)
    assert look(machine) == (MemoryNode(total_mb=32768, hugepages_2mb=10, hugepages_1gb=2, available_mb=24576),)
    (machine / "meminfo").unlink()
    with pytest.raises(Unsupported, match="does not describe the memory"):
        look(machine)


def test_several_nodes_have_their_own_and_no_more_than_the_machine(machine: Path) -> None:
    add_node(machine, 0, 16_777_216, 2_097_152, pages_2mb=100)
    add_node(machine, 1, 16_777_216, 33_554_432)
    add_node(machine, 2, 0, 0)  # a node of processors alone
    assert look(machine) == (
        MemoryNode(node=0, total_mb=16384, hugepages_2mb=100, available_mb=2048 + 1024),
        MemoryNode(node=1, total_mb=16384, available_mb=24576),
    )


@pytest.mark.parametrize(
    "names", [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")]
)
def test_a_containers_limit_counts(machine: Path, names: tuple[str, str]) -> None:
    for name, size in zip(names, (4 << 30, 1 << 30), strict=True):
        path = machine / "cgroup" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{size}\n")
    assert look(machine)[0].available_mb == 3072
    (machine / "cgroup" / names[0]).write_text("max\n")
    assert look(machine)[0].available_mb == 24576


def test_huge_pages_of_one_node_are_counted_and_too_few_refused_with_the_command(tmp_path: Path) -> None:
    huge_pages(tmp_path, 0, of_2048=(9, 9))
    huge_pages(tmp_path, 1, of_2048=(300, 256), of_1048576=(2, 1))
    assert free_pages(1, tmp_path) == {2048: 256, 1048576: 1}
    require_huge_pages("VPP", 512 + 1024, 1, tmp_path)
    huge_pages(tmp_path, 2, of_2048=(300, 256))
    with pytest.raises(Unsupported) as caught:
        require_huge_pages("Open vSwitch on DPDK", 1024, 2, tmp_path)
    # 44 are taken, and 512 more are needed than there are.
    file = tmp_path / "node2/hugepages/hugepages-2048kB/nr_hugepages"
    assert str(caught.value) == (
        f"Open vSwitch on DPDK needs 1024 MB of huge pages on NUMA 2, 512 MB are free there; echo 556 > {file}"
    )


def test_files_of_a_program_that_has_ended_are_removed_and_no_others(tmp_path: Path) -> None:
    huge, other = tmp_path / "huge", tmp_path / "other"
    for folder in (huge, other):
        folder.mkdir()
        for name in ("csitmap_0", "csitmap_65536", "rtemap_0", "csit"):
            (folder / name).touch()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"tmpfs {other} tmpfs rw 0 0\nnone {huge} hugetlbfs rw,pagesize=2M 0 0\n")
    assert len(remove_files("csit", mounts)) == 2
    assert sorted(path.name for path in huge.iterdir()) == ["csit", "rtemap_0"]
    assert len(list(other.iterdir())) == 4
