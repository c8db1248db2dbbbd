"""One line of the table of studies checked against known truth."""

from typing import NamedTuple


class BoundedQuantity(NamedTuple):
    """A quantity, its worst or mean value over simulated studies, and the bound that it is promised to stay within."""

    what: str
    value: float
    bound: float
    unit: str
    note: str
