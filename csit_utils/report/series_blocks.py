"""Blocks of comparable series: with the same system, frame size, search profile and goals."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from csit_utils.analysis.grouping import Series


class _BlockOfSeries(Protocol):
    @property
    def series(self) -> Series: ...


_T = TypeVar("_T", bound=_BlockOfSeries)


def blocks_of(found: Iterable[_T]) -> list[tuple[str, list[_T]]]:
    """Return heading and items of each block, in order.

    `found`: an item of each series.
    """
    blocks: dict[object, list[_T]] = {}
    for each in found:
        one = each.series
        blocks.setdefault((one.system, one.frame, one.profile, one.goals), []).append(each)
    every = [each.series for own in blocks.values() for each in own]
    several = len({one.system for one in every}) > 1, len({one.profile for one in every}) > 1
    return [(_heading([each.series for each in own], *several), by_size(own)) for own in blocks.values()]


def by_size(found: Sequence[_T]) -> list[_T]:
    """Return items with those of the same sizes next to each other: the service types of a size are a row of maps."""
    sizes = [(each.series.nf_size, each.series.vs_dtc) for each in found]
    return [each for size in dict.fromkeys(sizes) for each, own in zip(found, sizes, strict=True) if own == size]


def _heading(own: Sequence[Series], systems: bool, profiles: bool) -> str:
    words = [own[0].system.name] if systems else []
    words += [own[0].frame, common_sizes(own)]
    words += [own[0].method] if profiles else []
    return ", ".join(filter(None, words))


def names(series: Sequence[Series]) -> dict[Series, str]:
    """A short name for each series of a block: the service type, and of the sizes only what sets them apart."""
    sizes: tuple[Callable[[Series], str], ...] = (lambda one: one.nf_name, lambda one: one.vswitch_name)
    telling = [size for size in sizes if len({size(one) for one in series}) > 1]
    return {one: " ".join(filter(None, (one.service_type, *(size(one) for size in telling)))) for one in series}


def common_sizes(series: Sequence[Series]) -> str:
    """The sizes that all series of a block have in common."""
    sizes = ({one.nf_name for one in series}, {one.vswitch_name for one in series})
    return ", ".join(name for names in sizes if len(names) == 1 for name in names if name)
