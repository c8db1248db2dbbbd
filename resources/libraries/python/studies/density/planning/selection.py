"""Selection of tests from the density matrix."""

import re
from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Annotated

from pydantic import Field

from resources.libraries.python.driver_registry import functions
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.bounds import (
    MAX_CACHE_WAYS,
    MAX_FRAMES,
    MAX_NFS,
    MAX_NFS_OF_A_SELECTION,
    quoted,
    refuse_endless,
)
from resources.libraries.python.model.request.cell import (
    MAX_FLOWS,
    Cell,
    Dimensions,
    Frame,
    ServiceType,
    readable_cells,
)
from resources.libraries.python.model.request.frames import frame, with_flows, with_ipv6
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.request.variables import CELLS
from resources.libraries.python.model.testbed.cpu import expand

DRAFT_GRID = CELLS.default
"""Rows and columns of draft-mkonstan-nf-service-density-01 and of FD.io's published figures."""


class Selection(Frozen):
    """A set of cells with their sizes and frames."""

    service_types: Annotated[tuple[ServiceType, ...], Field(min_length=1)]
    points: Annotated[tuple[tuple[int, int], ...], Field(min_length=1)]
    """(service instances, NFs per instance), in the order to be run."""
    nf_sizes: Annotated[tuple[tuple[NfSize, ...], ...], Field(min_length=1)]
    vs_dtcs: Annotated[tuple[int, ...], Field(min_length=1)]
    frames: Annotated[tuple[Frame, ...], Field(min_length=1)]
    nf_kinds: Annotated[tuple[tuple[NfKind, ...], ...], Field(min_length=1)] = ((),)
    """Empty for the testbed's own kind."""
    cache_ways: Annotated[int, Field(ge=1, le=64)] | None = None
    """Of each NF; None where NFs have none of their own."""

    def cells(self) -> tuple[Cell, ...]:
        """All cells, small ones first, whether they fit or not.

        A list of NF sizes or kinds for a service of a certain length is left out at other lengths.
        """
        return tuple(
            Cell(
                service_type=service_type,
                **Dimensions(rows, columns).columns,
                nf_sizes=sizes,
                vs_dtc=vs_dtc,
                nf_kinds=kinds,
                limits=limits_of(self.cache_ways, columns),
            )
            for service_type, kinds, vs_dtc, sizes, (rows, columns) in product(
                self.service_types, self.nf_kinds, self.vs_dtcs, self.nf_sizes, self.points
            )
            if len(sizes) in (1, columns) and len(kinds) in (0, 1, columns)
        )


def parse_selection(
    *,
    service_types: str = "VSC,CSC,CSP",
    cells: str = DRAFT_GRID,
    nf_sizes: str = "1c,0.5c",
    vswitch: str = "1",
    frames: str = "64B",
    nf_kinds: str = "",
    flows: str = "",
    ip_versions: str = "4",
    cache_ways: str = "",
) -> Selection:
    """Parse a selection.

    `service_types`: Such as `CSC,CSP`.
    `cells`: Rows x columns, such as `1x1,1x2,2x1`, `{1,2,4}x{1-10}` or `1-3x2`.
    `nf_sizes`: Such as `1c,0.5c,3c`; `1c+0.5c` gives each NF of a two-NF service its own size.
    `vswitch`: Physical data cores of the vSwitch, such as `1,2,4` (or `1c,2c,4c`).
    `frames`: Names of frame sizes, such as `64B,IMIX`.
    `nf_kinds`: Such as `linux_router,testpmd`; `linux_router+testpmd` gives each NF of a two-NF service its own kind;
      empty for the testbed's own kind.
    `flows`: Numbers of flows of each instance and direction, such as `1,1000,1000000`; each with each frame size.
      Empty, or `auto`, for the plan's number of source addresses.
    `ip_versions`: `4`, `6` or `4,6`; each with each frame size.
    `cache_ways`: Ways of the last-level cache of each NF, such as `2`; empty for none of their own.

    Raises:
        ConfigError: Something in it cannot be read; the text says what is possible.
    """
    found = Selection(
        service_types=tuple(ServiceType(_one_of(word, ServiceType, "service type")) for word in _words(service_types)),
        points=_points(cells),
        nf_sizes=tuple(parse_sizes(word) for word in _words(nf_sizes)),
        vs_dtcs=tuple(_vswitch_cores(word) for word in _words(vswitch)),
        frames=parse_frames(frames, flows, ip_versions),
        nf_kinds=tuple(parse_kinds(word) for word in _words(nf_kinds)) if nf_kinds else ((),),
        cache_ways=_cache_ways(cache_ways),
    )
    lists = (found.service_types, found.points, found.nf_sizes, found.vs_dtcs, found.frames, found.nf_kinds)
    refuse_endless(f"'{quoted(cells)}'", prod(map(len, lists)), "tests of each type")
    nfs = sum(rows * columns for rows, columns in found.points) * prod(map(len, lists)) // len(found.points)
    if nfs > MAX_NFS_OF_A_SELECTION:
        raise ConfigError(
            f"'{quoted(cells)}': {nfs:,} NFs in all cells together; at most {MAX_NFS_OF_A_SELECTION:,} are possible"
        )
    return found


def parse_frames(text: str, flows: str = "", ip_versions: str = "4") -> tuple[Frame, ...]:
    """Read names of frame sizes, such as `64B,IMIX`, numbers of flows and versions of IP, as of `parse_selection`.

    Raises:
        ConfigError: There is no such frame, or none is named; or a number of flows is not in [1, 1,000,000].
    """
    known = {"4": lambda each: each, "6": with_ipv6}
    versions = [known[_one_of(word, known, "version of IP")] for word in _words(ip_versions)]
    sizes = [version(frame(word)) for word in _words(text) for version in versions]
    numbers = [_flow_count(word) for word in _words(flows)] if flows else [None]
    if (count := len(sizes) * len(numbers)) > MAX_FRAMES:
        raise ConfigError(f"'{quoted(text)}': {count:,} frames by size and number of flows; at most {MAX_FRAMES:,}")
    return tuple(dict.fromkeys(each if n is None else with_flows(each, n) for each in sizes for n in numbers))


def _cache_ways(word: str) -> int | None:
    if not word:
        return None
    if not re.fullmatch(r"[1-9]\d?", word, re.ASCII) or int(word) > MAX_CACHE_WAYS:
        raise ConfigError(
            f"CACHE_WAYS '{quoted(word)}': ways of the last-level cache of each NF, 1 to {MAX_CACHE_WAYS}"
        )
    return int(word)


def limits_of(cache_ways: int | None, nfs: int) -> tuple[Limits, ...]:
    """Limits of the NFs of an instance with so many cache ways each."""
    return (Limits(cache_ways=cache_ways),) * nfs if cache_ways else ()


def _flow_count(word: str) -> int | None:
    if word.lower() == "auto":
        return None
    if not re.fullmatch(r"0*[1-9]\d{0,6}", word, re.ASCII):
        raise ConfigError(f"invalid number of flows '{quoted(word)}'; expected 1 to {MAX_FLOWS}, such as 1,1000,100000")
    return int(word)


def parse_kinds(word: str) -> tuple[NfKind, ...]:
    """Read the kinds of a service's NFs, such as `linux_router+testpmd`; an empty word is the testbed's own kind.

    Raises:
        ConfigError: There is no such kind.
    """
    return tuple(NfKind(_one_of(kind, functions(), "NF kind")) for kind in word.split("+")) if word else ()


def parse_sizes(word: str) -> tuple[NfSize, ...]:
    """Read the sizes of a service's NFs: `1c` for all, or `1c+0.5c`, one for each.

    Raises:
        ConfigError: There is no such size.
    """
    try:
        return tuple(NfSize(size.lower()) for size in word.split("+"))
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise ConfigError("an empty list selects nothing")
    return words


def _one_of(word: str, choices: Iterable[str], what: str) -> str:
    names = [str(choice) for choice in choices]
    for name in names:
        if name.lower() == word.lower():
            return name
    raise ConfigError(f"no {what} '{quoted(word)}'; choose from {', '.join(names)}")


def _vswitch_cores(word: str) -> int:
    match = re.fullmatch(r"([124])c?", word.lower())
    if match is None:
        raise ConfigError(f"no vSwitch size '{quoted(word)}'; choose from 1c, 2c, 4c")
    return int(match[1])


def _points(text: str) -> tuple[tuple[int, int], ...]:
    points: list[tuple[int, int]] = []
    asked, rest, begin = quoted(text), readable_cells(text.replace(" ", "")), 0
    side = r"(\{[\d,-]+\}|\d+(?:-\d+)?)"
    pattern = re.compile(rf"{side}x{side}(?:,|$)", re.IGNORECASE)
    while begin < len(rest):
        match = pattern.match(rest, begin)
        if match is None:
            wrong = quoted(rest[begin:])
            raise ConfigError(f"invalid cells at '{wrong}'; expected rows x columns: 1x1,2x1 or {DRAFT_GRID}")
        try:
            rows, columns = (expand(group.strip("{}")) for group in match.groups())
        except ValueError as error:
            raise ConfigError(f"invalid cells at '{quoted(rest[begin:])}': {error}") from error
        refuse_endless(f"'{asked}'", len(points) + len(rows) * len(columns), "cells")  # before they are listed
        if max(rows) * max(columns) > MAX_NFS:
            raise ConfigError(
                f"'{asked}': a cell of {max(rows) * max(columns):,} NFs; at most {MAX_NFS:,} are possible"
            )
        points.extend(product(rows, columns))
        begin = match.end()
    if not points or min(min(point) for point in points) < 1:
        raise ConfigError(f"no cells in '{asked}'; rows and columns count from 1")
    return tuple(dict.fromkeys(points))
