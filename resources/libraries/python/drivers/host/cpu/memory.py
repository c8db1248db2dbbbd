"""The machine's memory by NUMA node as the kernel describes it, and its free huge pages."""

import re
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.kernel_files import number_of
from resources.libraries.python.drivers.host.ownership.cleanup_steps import remove_file, take_all
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.testbed.memory import MemoryLayout, MemoryNode

NODES = Path("/sys/devices/system/node")
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def discover_memory(nodes: Path = NODES, meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> MemoryLayout:
    """Read total, free and huge pages of every NUMA node that has memory.

    What is free is the kernel's estimate for the whole machine, which nothing can take more than, and on a machine of
    several nodes no more than what is unused or only cached on a node. A limit of the cgroup that holds the machine
    (a container's) counts as well.

    Raises:
        Unsupported: The kernel does not describe its memory.
    """
    try:
        whole = _kilobytes(meminfo.read_text(encoding="ascii"))
    except OSError as error:
        raise Unsupported(f"{meminfo} does not describe the memory: {error.strerror or error}") from error
    if "MemTotal" not in whole:
        raise Unsupported(f"{meminfo} has no MemTotal")
    limit = _cgroup_spare_mb(cgroup)
    available = whole.get("MemAvailable", whole.get("MemFree", 0)) // 1024
    spare = available if limit is None else min(available, limit)
    paths = [path for path in sorted(nodes.glob("node[0-9]*")) if _of_node(path).get("MemTotal", 0) > 0]
    if len(paths) > 1:
        return tuple(_node(path, spare) for path in paths)
    # One node is the whole machine. Its own meminfo leaves out memory that was plugged in later.
    number = _number_of(paths[0]) if paths else 0
    pages = {size: _free_pages(paths[0], size) if paths else 0 for size in (2048, 1024 * 1024)}
    if not paths and whole.get("Hugepagesize") == 2048:
        pages[2048] = whole.get("HugePages_Free", 0)
    return (
        MemoryNode(
            node=number,
            total_mb=whole["MemTotal"] // 1024,
            hugepages_2mb=pages[2048],
            hugepages_1gb=pages[1024 * 1024],
            available_mb=spare,
        ),
    )


def _number_of(node: Path) -> int:
    return int(node.name.removeprefix("node"))


def _kilobytes(text: str) -> dict[str, int]:
    """Rows such as `MemTotal: 24684084 kB` or `Node 0 MemTotal: 24684084 kB`; huge pages are counts."""
    rows = re.findall(r"^(?:Node \d+ )?([\w()]+):\s+(\d+)", text, re.MULTILINE)
    return {name: int(value) for name, value in rows}


def _of_node(node: Path) -> dict[str, int]:
    try:
        return _kilobytes((node / "meminfo").read_text(encoding="ascii"))
    except OSError:
        return {}


def _node(path: Path, available_mb: int) -> MemoryNode:
    rows = _of_node(path)
    unused_mb = (rows.get("MemFree", 0) + rows.get("FilePages", 0) + rows.get("SReclaimable", 0)) // 1024
    return MemoryNode(
        node=_number_of(path),
        total_mb=rows["MemTotal"] // 1024,
        hugepages_2mb=_free_pages(path, 2048),
        hugepages_1gb=_free_pages(path, 1024 * 1024),
        available_mb=min(available_mb, unused_mb),
    )


def _free_pages(node: Path, size_kb: int) -> int:
    return number_of(node / "hugepages" / f"hugepages-{size_kb}kB" / "free_hugepages") or 0


def _cgroup_spare_mb(root: Path) -> int | None:
    """Memory that a container's limit leaves, cgroup v2 or v1; None where there is no limit."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        most, now = number_of(root / limit), number_of(root / used)
        if most is not None and now is not None:
            return max(0, most - now) // 2**20
    return None


MOUNTS = Path("/proc/self/mounts")
_ALL = Path("/sys/kernel/mm/hugepages")
"""Where a kernel without NUMA counts them."""
SIZES_KB = (2048, 1024 * 1024)


def free_pages(numa_node: int, nodes: Path = NODES) -> dict[int, int]:
    """Free huge pages of a NUMA node by their size in KB; sizes that the kernel does not have are left out."""
    return {size: count for size in SIZES_KB if (count := number_of(_file(numa_node, size, "free", nodes))) is not None}


def require_huge_pages(who: str, needs_mb: int, numa_node: int, nodes: Path = NODES) -> None:
    """See whether a program will find its memory.

    `nodes`: where the kernel counts them; another folder for tests.

    Raises:
        Unsupported: There is too little; the text has the command that sets more pages aside.
    """
    if needs_mb > _free_mb(numa_node, nodes):
        raise too_few(who, needs_mb, numa_node, nodes)


def too_few(who: str, needs_mb: int, numa_node: int, nodes: Path = NODES) -> Unsupported:
    """The error for a program of DPDK that does not find its memory; arguments as for `require`."""
    free_mb = _free_mb(numa_node, nodes)
    file = _file(numa_node, SIZES_KB[0], "nr", nodes)
    pages = (number_of(file) or 0) - (min(0, free_mb - needs_mb) or -needs_mb) // 2
    return Unsupported(
        f"{who} needs {needs_mb} MB of huge pages on NUMA {numa_node}, {free_mb} MB are free there; "
        f"echo {pages} > {file}"
    )


def _free_mb(numa_node: int, nodes: Path) -> int:
    return sum(size * count for size, count in free_pages(numa_node, nodes).items()) // 1024


def remove_files(prefix: str, mounts: Path = MOUNTS) -> list[str]:
    """Remove what a program of DPDK has left in hugetlbfs; say what it was.

    `prefix`: Its `--file-prefix`.
    `mounts`: The kernel's list of mounts; another file for tests.

    Raises:
        CsitError: Some files cannot be removed; the others were.
    """
    rows = (line.split() for line in mounts.read_text(encoding="utf-8").splitlines())
    folders = [Path(folder) for _, folder, kind, *_ in rows if kind == "hugetlbfs"]

    def remove(folder: Path) -> list[str]:
        return take_all(
            partial(remove_file, path, f"huge page file {path}") for path in sorted(folder.glob(f"{prefix}map_*"))
        )

    return take_all(partial(remove, folder) for folder in folders)


def _file(numa_node: int, size_kb: int, what: str, nodes: Path) -> Path:
    node = nodes / f"node{numa_node}/hugepages"
    folder = node if node.is_dir() or nodes != NODES else _ALL
    return folder / f"hugepages-{size_kb}kB" / f"{what}_hugepages"
