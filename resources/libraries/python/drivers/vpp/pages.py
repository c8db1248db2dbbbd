"""Which pages VPP's memory is made of: huge ones of 2 MB or 1 GB where enough are free, else 4 KB. Pure."""

from dataclasses import dataclass

_BUFFER_BYTES = 2496
"""A buffer of 2048 bytes of data with all that belongs to it and its alignment."""
_HUGEPAGE_MB = 2


@dataclass(frozen=True, slots=True)
class HugePageChoice:
    """Page size in the notation of startup.conf, and the reason."""

    size: str
    why: str


def pool_mb(heap_mb: int, buffers: int) -> int:
    """Heap and buffers of a VPP."""
    return heap_mb - (-buffers * _BUFFER_BYTES // 2**20)


def choose_pages(heap_mb: int, buffers: int, instances: int, free_2mb: int, free_1gb: int = 0) -> HugePageChoice:
    """Choose for some instances on one NUMA node.

    Args:
        heap_mb: Main heap of each.
        buffers: Packet buffers of each.
        instances: How many.
        free_2mb: Free huge pages of 2 MB.
        free_1gb: Free huge pages of 1 GB.
    """
    buffers_mb = pool_mb(0, buffers)
    needed = (-(-heap_mb // _HUGEPAGE_MB) - (-buffers * _BUFFER_BYTES // (_HUGEPAGE_MB * 2**20))) * instances
    if free_2mb >= needed:
        return HugePageChoice("2m", f"huge pages of 2 MB: {needed} of {free_2mb} free ones")
    # Heap and buffers begin in pages of their own.
    large = (-(-heap_mb // 1024) - (-buffers_mb // 1024)) * instances
    if free_1gb >= large:
        return HugePageChoice("1g", f"huge pages of 1 GB: {large} of {free_1gb} free ones")
    return HugePageChoice("4k", f"pages of 4 KB: {needed} huge pages of 2 MB needed, {free_2mb} free")
