"""Cell of a test of FD.io CSIT in the density matrix, from its tags."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resources.libraries.python.model.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.nf_size import NfSize
from resources.libraries.python.studies.density.planning.matrix import core_usage


@dataclass(frozen=True)
class Place:
    """The cell of a test; unknown for tests without NFs."""

    columns: dict[str, Any]
    """Of `TestRow`."""
    service_type: ServiceType | None = None
    data_cores: float | None = None


def place_of(tags: Sequence[str]) -> Place:
    """Return the cell from the tags of a test.

    `{r}R{c}C` is row and column, VM or DOCKER with CHAIN, PIPELINE or PIPE the service type, `{n}C` the data cores
    of the vSwitch, and `{n}VM{t}T` or `{n}DCR{t}T` the data threads of an NF: two threads are a core, unless `{t}T{n}C`
    is present, which means one thread per core.
    """
    known = {tag.upper() for tag in tags}
    service = _service_type(known)
    locator = _matched(known, r"(\d{1,3})R(\d{1,3})C")
    switch = _matched(known, r"(\d{1,2})C")
    vs_dtc = int(switch[1]) if switch else None
    if service is None or locator is None or not (int(locator[1]) and int(locator[2])):
        return Place({"vs_dtc": vs_dtc, "vswitch_data_cores": None if vs_dtc is None else float(vs_dtc)})
    dimensions = Dimensions(int(locator[1]), int(locator[2]))
    size = _nf_size(known)
    columns: dict[str, Any] = {
        "service_type": service.value,
        **dimensions.columns,
        "nf_size": str(size) if size else None,
        "vs_dtc": vs_dtc,
    }
    nf_cores = size.cores * dimensions.instances * dimensions.nfs if size else None
    total = vs_dtc + nf_cores if vs_dtc and nf_cores else None
    if size and vs_dtc and 1 <= vs_dtc <= 4:
        cell = Cell(service_type=service, **dimensions.columns, nf_sizes=(size,), vs_dtc=vs_dtc)
        columns["slide_cores"] = core_usage(cell)
    columns |= {"vswitch_data_cores": float(vs_dtc) if vs_dtc else None, "nf_data_cores": nf_cores, "data_cores": total}
    return Place(columns, service, total)


def _service_type(tags: set[str]) -> ServiceType | None:
    if tags & {"PIPELINE", "PIPE"}:
        return ServiceType.CSP if "DOCKER" in tags else None
    if "CHAIN" not in tags:
        return None
    return ServiceType.VSC if "VM" in tags else ServiceType.CSC if "DOCKER" in tags else None


def _nf_size(tags: set[str]) -> NfSize | None:
    threads = _matched(tags, r"\d{1,4}(?:VM|DCR)(\d{1,2})T")
    layout = _matched(tags, r"(\d{1,3})T(\d{1,3})C")
    if threads is None or (layout is not None and int(layout[1]) != 2 * int(layout[2])):
        return None
    count = int(threads[1])
    if count % 2 == 0:
        return NfSize.of(count / 2) if count else None
    return NfSize.HALF if count == 1 else None


def _matched(tags: set[str], pattern: str) -> re.Match[str] | None:
    """The tag of this form; None without one, or with several different ones."""
    found = [match for tag in tags if (match := re.fullmatch(pattern, tag))]
    return found[0] if len(found) == 1 else None
