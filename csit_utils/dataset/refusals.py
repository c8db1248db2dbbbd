"""Cells that do not fit on their testbed, in outputs and datasets."""

from collections.abc import Iterable, Iterator

import msgspec

from csit_utils.dataset.items import Refusal
from resources.libraries.python.studies.density.model.record import REFUSED_CELLS, RefusedCell


def logged_cells(source: str, message: str) -> Iterator[Refusal]:
    """Read the JSON of a suite's log message.

    Raises:
        ValueError: It is damaged.
    """
    return (Refusal(source, each) for each in REFUSED_CELLS.validate_json(message))


def to_dataset(found: Iterable[Refusal]) -> tuple[msgspec.Raw, ...]:
    """Each once, as a dataset stores them: every suite of a service type reports the same ones."""
    return tuple(msgspec.Raw(each.model_dump_json().encode()) for each in dict.fromkeys(one.refused for one in found))


def from_dataset(source: str, stored: Iterable[msgspec.Raw]) -> Iterator[Refusal]:
    """Read what `to_dataset` made.

    Raises:
        ValueError: It is damaged.
    """
    return (Refusal(source, RefusedCell.model_validate_json(bytes(raw))) for raw in stored)
