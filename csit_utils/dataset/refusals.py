"""Cells that do not fit on their testbed, in the files of this version and of earlier ones."""

import re
from collections.abc import Iterable, Iterator

import msgspec
from pydantic import ValidationError

from csit_utils.dataset.items import Refusal
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.density.model.record import REFUSED_CELLS, RefusedCell

_METADATA = re.compile(r"Does not fit: (CSC|CSP|VSC) (\d{1,9})R(\d{1,9})C NF-(\S+) vSwitch-(\d)c")
_FLAT_KEYS = ("service_type", "nf_chains", "nf_nodes", "nf_size", "vs_dtc", "reason")


def logged_cells(source: str, message: str) -> Iterator[Refusal]:
    """Read the JSON of a suite's log message.

    Raises:
        ValueError: It is damaged.
    """
    return (Refusal(source, each) for each in REFUSED_CELLS.validate_json(message))


def metadata_cells(source: str, name: str, value: str) -> Iterator[Refusal]:
    """Read one line of a suite's metadata, where versions before record schema 3.0 wrote a cell; nothing of others."""
    if (cell := _METADATA.fullmatch(name)) is not None:
        kind, chains, nodes, size, vs_dtc = cell.groups()
        try:
            yield Refusal(source, _flat(kind, int(chains), int(nodes), size, int(vs_dtc), value))
        except ValueError:
            return  # metadata of another suite


def to_dataset(found: Iterable[Refusal]) -> tuple[msgspec.Raw, ...]:
    """Each once, as a dataset stores them: every suite of a service type reports the same ones."""
    return tuple(msgspec.Raw(each.model_dump_json().encode()) for each in dict.fromkeys(one.refused for one in found))


def from_dataset(source: str, stored: Iterable[msgspec.Raw]) -> Iterator[Refusal]:
    """Read what `to_dataset` made, in this version or an earlier one.

    Raises:
        ValueError: It is damaged.
    """
    for raw in stored:
        try:
            yield Refusal(source, RefusedCell.model_validate_json(bytes(raw)))
        except ValidationError:
            flat = msgspec.json.decode(raw, type=dict[str, str | int])
            yield Refusal(source, _flat(*(flat[key] for key in _FLAT_KEYS)))


def _flat(  # noqa: PLR0917 - as earlier versions wrote it
    service_type: object, nf_chains: object, nf_nodes: object, nf_size: object, vs_dtc: object, reason: object
) -> RefusedCell:
    cell = Cell(
        service_type=ServiceType(str(service_type)),
        nf_chains=int(str(nf_chains)),
        nf_nodes=int(str(nf_nodes)),
        nf_sizes=tuple(NfSize(size) for size in str(nf_size).split("+")),
        vs_dtc=int(str(vs_dtc)),
    )
    return RefusedCell(cell=cell, reason=str(reason))
