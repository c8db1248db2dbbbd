"""Place of other tools' results in the density matrix: from their properties, or from the names of their files."""

import os.path
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from csit_utils.dataset.foreign.parts import UNKNOWN_TESTBED
from csit_utils.dataset.items import ImportedTest
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import (
    MAX_PARTS,
    MAX_TEMPLATE_LENGTH,
    MAX_VSWITCH_CORES,
    MAX_WILDCARDS,
    quoted,
)
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.density.planning.matrix import core_usage


@dataclass(frozen=True)
class Place:
    """A cell and the sizes of its parts, as far as they are known."""

    service_type: ServiceType
    dimensions: Dimensions
    nf_size: NfSize | None = None
    vs_dtc: int | None = None
    """Physical data cores of the vSwitch."""

    @cached_property
    def nf_cores(self) -> float | None:
        """Physical data cores of all NFs."""
        return self.nf_size.cores * self.dimensions.instances * self.dimensions.nfs if self.nf_size else None

    @cached_property
    def data_cores(self) -> float | None:
        """Physical data cores of the vSwitch and all NFs."""
        return self.vs_dtc + self.nf_cores if self.vs_dtc and self.nf_cores else None

    @property
    def columns(self) -> dict[str, Any]:
        """As columns of `TestRow`."""
        return {
            "service_type": self.service_type.value,
            **self.dimensions.columns,
            "nf_size": str(self.nf_size) if self.nf_size else None,
            **vswitch_columns(self.vs_dtc),
            "nf_data_cores": self.nf_cores,
            "data_cores": self.data_cores,
            "slide_cores": self._slide_cores(),
        }

    def _slide_cores(self) -> float | None:
        if not self.nf_size or not self.vs_dtc or self.vs_dtc > MAX_VSWITCH_CORES:
            return None
        sizes = {"nf_sizes": (self.nf_size,), "vs_dtc": self.vs_dtc}
        return core_usage(Cell(service_type=self.service_type, **self.dimensions.columns, **sizes))


def vswitch_columns(vs_dtc: int | None) -> dict[str, float | None]:
    """Return the cores of a vSwitch as columns of `TestRow`."""
    return {"vs_dtc": vs_dtc, "vswitch_data_cores": None if vs_dtc is None else float(vs_dtc)}


_NUMBER = r"(?<!\d)\d{1,2}(?!\d)"
_FIELDS: Mapping[str, str] = {
    "service": "|".join(service.value for service in ServiceType),
    "instances": _NUMBER,
    "nfs": _NUMBER,
    "vswitch_cores": _NUMBER,
    "nf_cores": rf"(?<!\d)0\.5|{_NUMBER}",
}
"""Patterns of the fields of a template."""
_FIELD = r"\{([a-z_]*)(?:=([\w.]+))?\}"
_NEEDED = ("service", "instances", "nfs")
_FIGURES = ("ndr_lower", "pdr_lower", "mrr")
_FRAME = re.compile(r"(?<![a-z0-9])(\d{2,4}b|imix)(?![a-z0-9])")


class NameTemplate:
    """Names of files of which each states the cell that it measured, such as `{service}_{instances}c{nfs}n`.

    The name of a file begins as the template does; what follows is ignored. A template with folders,
    `*t{vswitch_cores}c_*/{service}_{instances}c{nfs}n`, is that of the end of the path; `*` is any text within a name.
    A field with a value, `{nf_cores=1}`, is that of all files, whose names do not state it.
    """

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises:
            ConfigError: It is no template.
        """
        self.text = text
        self._constants = {name: value for name, value in _fields(text) if value}
        self._pattern = re.compile(rf"(?:^|/){_regex(text)}[^/]*$", re.IGNORECASE)

    def place(self, path: str) -> Place | None:
        """Return what a path states; None where its name has another form, or its numbers are out of range."""
        found = self._search(path)
        if found is None:
            return None
        part = found.groupdict() | self._constants
        dimensions = Dimensions(int(part["instances"]), int(part["nfs"]))
        vs_dtc, cores = part.get("vswitch_cores"), part.get("nf_cores")
        if not (1 <= dimensions.instances <= MAX_PARTS and dimensions.nfs <= MAX_PARTS) or "0" in (vs_dtc, cores):
            return None
        size = NfSize.of(float(cores)) if cores else None
        return Place(ServiceType(part["service"].upper()), dimensions, size, int(vs_dtc) if vs_dtc else None)

    def placed(self, item: ImportedTest, root: str | None = None) -> ImportedTest:
        """Return a test with the place that the name of its file states, unless its file states one.

        Folders below `root` that are not of the template are part of the testbed: files of the same name in two of
        them are of two systems.
        """
        row = item.row
        if row.service_type is not None:
            return item
        place = self.place(row.source)
        remarks = [row.evidence] if row.evidence else []
        if place is None:
            remarks.append(f"not placed: the name of the file is not of the form {self.text}")
            return replace(item, row=replace(row, evidence="\n".join(remarks)))
        remarks += _other_frame(row)
        name = "/".join(_parts(row.source)[-2:]).removesuffix(".json")
        named = replace(row, test_id=f"{row.test_id}.{name}", evidence="\n".join(remarks))
        if root is not None and (folders := self._folders(row.source, root)):
            known = f"{row.testbed} " if row.testbed != UNKNOWN_TESTBED else ""
            named = replace(named, testbed=f"{known}{folders}")
        return replace(item, row=replace(named, **place.columns, **_per_core(row, place)))

    def _search(self, path: str) -> re.Match[str] | None:
        return self._pattern.search("/".join(_parts(path)))

    def _folders(self, path: str, root: str) -> str:
        """Return the folders between `root` and what the template states; empty without any."""
        found = self._search(path)
        before = "/".join(_parts(path))[: found.start()] if found is not None else ""
        below = os.path.relpath(os.path.realpath(before), root)
        return "" if below.startswith(".") else below.replace("/", "-")


def _per_core(row: TestRow, place: Place) -> dict[str, Any]:
    if not place.data_cores:
        return {}
    figures = {name.partition("_")[0]: getattr(row, f"{name}_pps") for name in _FIGURES}
    return {f"{name}_pps_per_core": pps / place.data_cores for name, pps in figures.items() if pps is not None}


def _other_frame(row: TestRow) -> list[str]:
    """Return a remark where folder or file are named after another frame size than the file's."""
    named = _FRAME.findall("/".join(_parts(row.source.lower())[-2:]))
    size = (row.frame or "").lower().split(" ")[0]
    if not size or not named or size in named:
        return []
    return [f"frames are {size.upper()}, as the file states; its path says {named[-1].upper()}"]


def _parts(path: str) -> list[str]:
    """Return folders and name of a file, also in an archive."""
    return re.split(r"[/\\!]", path)


def _fields(text: str) -> list[tuple[str, str]]:
    """Return the fields of a template with their values; empty for those that names state."""
    return re.findall(_FIELD, text)


def _regex(text: str) -> str:
    """Return the pattern of a template.

    Raises:
        ConfigError: It is no template.
    """
    between, given = re.split(_FIELD, text)[::3], _fields(text)
    names = [name for name, _ in given]
    faults = [
        *([f"more than {MAX_TEMPLATE_LENGTH} characters"] if len(text) > MAX_TEMPLATE_LENGTH else []),
        *([f"more than {MAX_WILDCARDS} '*'"] if text.count("*") > MAX_WILDCARDS else []),
        *(["an unmatched brace"] if set("{}") & set("".join(between)) else []),
        *(f"unknown field {{{name}}}" for name in names if name not in _FIELDS),
        *(
            f"{{{name}={value}}}: the value is out of range"
            for name, value in given
            if value and not re.fullmatch(_FIELDS.get(name, ""), value, re.IGNORECASE)
        ),
        *(f"{{{name}}} occurs twice" for name in set(names) if names.count(name) > 1),
        *(f"{{{name}}} is missing" for name in _NEEDED if name not in names),
    ]
    if faults:
        example = "such as {service}_{instances}c{nfs}n"
        raise ConfigError(f"template '{quoted(text)}': {faults[0]}; fields: {', '.join(_FIELDS)}; {example}")
    literal = ["[^/]*".join(map(re.escape, part.split("*"))) for part in between]
    fields = ["" if value else rf"(?P<{name}>{_FIELDS[name]})" for name, value in given]
    return literal[0] + "".join(field + after for field, after in zip(fields, literal[1:], strict=True))
