"""Cells that do not fit on a testbed: planned, written into `output.xml`, read from there, and shown."""

from pydantic import TypeAdapter

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.cell import Cell


class RefusedCell(Frozen):
    """A cell that suites leave out because it does not fit on the testbed."""

    cell: Cell
    reason: str
    """With the numbers: `needs 33 cores on NUMA 0, 28 available`."""


REFUSED_CELLS = TypeAdapter(tuple[RefusedCell, ...])
"""JSON of those of a suite."""
