"""Huge pages that are free on a NUMA node, and the refusal where DPDK finds too few."""

from pathlib import Path

from resources.libraries.python.errors import Unsupported

NODES = Path("/sys/devices/system/node")
MOUNTS = Path("/proc/self/mounts")
_ALL = Path("/sys/kernel/mm/hugepages")
"""Where a kernel without NUMA counts them."""
SIZES_KB = (2048, 1024 * 1024)


def free_pages(numa_node: int, nodes: Path = NODES) -> dict[int, int]:
    """Free huge pages of a NUMA node by their size in KB; sizes that the kernel does not have are left out."""
    return {size: count for size in SIZES_KB if (count := _read(_file(numa_node, size, "free", nodes))) is not None}


def require(who: str, needs_mb: int, numa_node: int, nodes: Path = NODES) -> None:
    """See whether a program will find its memory.

    Args:
        who: Name of the program, for errors.
        needs_mb: In huge pages of any size.
        numa_node: Of its ports.
        nodes: Where the kernel counts them; another folder for tests.

    Raises:
        Unsupported: There is too little; the text has the command that sets more pages aside.
    """
    free = free_pages(numa_node, nodes)
    free_mb = sum(size * count for size, count in free.items()) // 1024
    if needs_mb <= free_mb:
        return
    raise too_few(who, needs_mb, numa_node, nodes)


def too_few(who: str, needs_mb: int, numa_node: int, nodes: Path = NODES) -> Unsupported:
    """The error for a program of DPDK that does not find its memory; arguments as for `require`."""
    free_mb = sum(size * count for size, count in free_pages(numa_node, nodes).items()) // 1024
    file = _file(numa_node, SIZES_KB[0], "nr", nodes)
    pages = (_read(file) or 0) - (min(0, free_mb - needs_mb) or -needs_mb) // 2
    return Unsupported(
        f"{who} needs {needs_mb} MB of huge pages on NUMA {numa_node}, {free_mb} MB are free there; "
        f"echo {pages} > {file}"
    )


def remove_files(prefix: str, mounts: Path = MOUNTS) -> list[str]:
    """Remove what a program of DPDK has left in hugetlbfs; say what it was.

    Args:
        prefix: Its `--file-prefix`.
        mounts: The kernel's list of mounts; another file for tests.
    """
    removed = []
    for line in mounts.read_text(encoding="utf-8").splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "hugetlbfs":
            for path in sorted(Path(folder).glob(f"{prefix}map_*")):
                path.unlink(missing_ok=True)
                removed.append(f"removed huge page file {path}")
    return removed


def _file(numa_node: int, size_kb: int, what: str, nodes: Path) -> Path:
    node = nodes / f"node{numa_node}/hugepages"
    folder = node if node.is_dir() or nodes != NODES else _ALL
    return folder / f"hugepages-{size_kb}kB" / f"{what}_hugepages"


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
