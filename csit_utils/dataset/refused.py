"""Cells that suites left out because they do not fit on the testbed, as their metadata tells of them."""

import re
from collections.abc import Iterator

from csit_utils.dataset.items import RefusedCell

_REFUSED = re.compile(r"Does not fit: (\w+) (\d+)R(\d+)C NF-(\S+) vSwitch-(\d+)c")


def refused_cells(source: str, name: str, value: str) -> Iterator[RefusedCell]:
    """The cell that one line of suite metadata refuses, as `DensityLibrary` writes it; nothing for other metadata."""
    cell = _REFUSED.fullmatch(name)
    if cell is not None:
        kind, chains, nodes, size, vs_dtc = cell.groups()
        yield RefusedCell(source, kind, int(chains), int(nodes), size, int(vs_dtc), value)
