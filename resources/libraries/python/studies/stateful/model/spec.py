"""Specification of a study of stateful density: a kind of network function, cells, and how to search."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, at_most, at_most_items
from resources.libraries.python.model.bounds import LONGEST_TIMEOUT_S, MAX_REPETITIONS, MAX_TOGETHER
from resources.libraries.python.model.findings.coverage import LeastMeasured
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.cell import MAX_FLOWS, Cell, Frame, ServiceType
from resources.libraries.python.model.request.frames import FrameByName
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize

_Count = Annotated[int, Field(ge=1), at_most(MAX_TOGETHER)]


class StatefulSpec(Frozen):
    """All that a study of stateful density is asked."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    kind: NfKind
    """A kind that keeps a table of connections."""
    instances: Annotated[tuple[_Count, ...], Field(min_length=1), at_most_items(16)]
    """Numbers of service instances."""
    nodes: Annotated[tuple[_Count, ...], Field(min_length=1), at_most_items(16)] = (1,)
    """Numbers of network functions of each instance; each is measured with each number of instances."""
    size: NfSize = NfSize.ONE
    frame: Frame
    search: str = "quick"
    """Profile of the search of the connection establishment rate; its goal is that of NDR."""
    timeout_s: Annotated[int, Field(ge=10), at_most(LONGEST_TIMEOUT_S)] = 300
    """Time after which entries expire; longer than any trial."""
    fill: Annotated[float, Field(gt=0, le=0.95)] = 0.8
    """Share of a table's limit that a trial of the rate may fill."""
    share: Annotated[float, Field(gt=0, le=0.9)] = 0.5
    """Share of the connection establishment rate at which tables are filled for tear-downs and for their capacity."""
    tear_downs: Annotated[int, Field(ge=1), at_most(MAX_REPETITIONS)] = 5
    connections: Annotated[int, Field(ge=100), at_most(MAX_FLOWS)] = 50_000
    """Entries of each table that are torn down; fewer where a trial of the rate may have no more."""
    capacity: bool = True
    """Whether the capacity of the tables is searched."""
    capacity_width: Annotated[float, Field(ge=0.0001, le=0.5)] = 0.01
    """Width of its bounds, relative."""
    least_measured: LeastMeasured = 1.0
    """Required share of the cells; with less the test fails, and its record has what there is."""

    @model_validator(mode="after")
    def _kind_keeps_connections(self) -> Self:
        if not self.kind.driver.tracks_connections:
            if self.kind.in_guest is not None and self.kind.in_guest.driver.tracks_connections:
                raise ValueError(f"{self.kind} keeps its table of connections in a guest, where it cannot be counted")
            raise ValueError(f"{self.kind} keeps no table of connections")
        return self

    @model_validator(mode="after")
    def _cells_exist(self) -> Self:
        self.cells  # noqa: B018 - raises
        return self

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Cells in the order in which they are measured."""
        pairs = dict.fromkeys((instances, nodes) for nodes in self.nodes for instances in self.instances)
        return tuple(
            Cell(
                service_type=ServiceType.CSC,
                nf_chains=instances,
                nf_nodes=nodes,
                nf_sizes=(self.size,),
                nf_kinds=(self.kind,) * nodes,
            )
            for instances, nodes in pairs
        )


class StatefulFile(StatefulSpec):
    """A study as a file says it: a frame size has its name (`64B`, `IMIX`)."""

    frame: FrameByName


def load_stateful(path: Path, settings: Mapping[str, str] = MappingProxyType({})) -> StatefulSpec:
    """Read a specification.

    Raises:
        ConfigError: The file does not fit; the sentence has file, line and path inside it.
    """
    return StatefulSpec.model_validate(load_yaml(path, StatefulFile, settings).model_dump())
