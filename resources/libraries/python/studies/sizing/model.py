"""The record of a sizing."""

from typing import Annotated, Literal

from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.model.service.spec import Sizing


class SizingRecord(Record):
    """A sizing: the deployment sizes of one service under one workload."""

    study: Literal["sizing"] = "sizing"
    sizing: Annotated[Sizing | None, PACKED] = None
