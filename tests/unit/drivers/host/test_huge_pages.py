"""Huge pages: counted by size and NUMA node, refused with the command that sets more aside, files removed."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu.memory import free_pages, remove_files, require_huge_pages
from resources.libraries.python.errors import Unsupported


def sysfs(root: Path, node: int, **pages: tuple[int, int]) -> Path:
    for size, (total, free) in pages.items():
        folder = root / f"node{node}/hugepages/hugepages-{size.removeprefix('of_')}kB"
        folder.mkdir(parents=True)
        (folder / "nr_hugepages").write_text(f"{total}\n")
        (folder / "free_hugepages").write_text(f"{free}\n")
    return root


def test_both_sizes_of_one_node_are_counted(tmp_path: Path) -> None:
    sysfs(tmp_path, 0, of_2048=(9, 9))
    sysfs(tmp_path, 1, of_2048=(300, 256), of_1048576=(2, 1))
    assert free_pages(1, tmp_path) == {2048: 256, 1048576: 1}
    require_huge_pages("VPP", 512 + 1024, 1, tmp_path)


def test_too_few_are_refused_with_the_command(tmp_path: Path) -> None:
    sysfs(tmp_path, 1, of_2048=(300, 256))
    with pytest.raises(Unsupported) as caught:
        require_huge_pages("Open vSwitch on DPDK", 1024, 1, tmp_path)
    # 44 are taken; 512 more are needed than nobody has.
    file = tmp_path / "node1/hugepages/hugepages-2048kB/nr_hugepages"
    assert str(caught.value) == (
        f"Open vSwitch on DPDK needs 1024 MB of huge pages on NUMA 1, 512 MB are free there; echo 556 > {file}"
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
