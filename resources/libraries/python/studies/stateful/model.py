"""Specification and record of a study of stateful density: connection rates, tear-downs and table capacity."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, at_most, at_most_items
from resources.libraries.python.model.bounds import LONGEST_TIMEOUT_S, MAX_REPETITIONS, MAX_TOGETHER
from resources.libraries.python.model.findings import LeastMeasured
from resources.libraries.python.model.measurements.counters import ConnectionTable
from resources.libraries.python.model.record import PACKED, Record
from resources.libraries.python.model.request.cell import MAX_FLOWS, Cell, ServiceType
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
    frame: FrameByName
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


class Phase(StrEnum):
    """Purpose of a trial."""

    FIRST = "first"
    """Connections at a low rate, before all others."""
    RATE = "rate"
    TEAR_DOWN = "tear-down"
    CAPACITY = "capacity"


class InstanceConnections(Frozen):
    """Connections of one instance in one trial."""

    sent: int
    """Packets, each of a new connection."""
    arrived: int
    """Those that came through."""
    entries: int
    """Entries after the trial, the fewest of the instance's tables; they were empty before it."""

    @property
    def established(self) -> int:
        """Connections whose packet arrived and which every table has an entry of."""
        return min(self.sent, self.arrived, self.entries)


class ConnectionTrial(Frozen):
    """One trial; its tables were empty before, as counted."""

    phase: Phase
    load_cps: float
    """New connections per second, of all instances."""
    duration_s: float
    instances: tuple[InstanceConnections, ...]
    failed: int | None
    """Insertions that failed in it, in all tables; None where it cannot be read, like the next two."""
    dropped: int | None
    evicted: int | None
    counts: bool = True
    """Whether the generator offered the load."""

    @property
    def complete(self) -> bool:
        """Whether all connections were established."""
        return all(each.established == each.sent > 0 for each in self.instances)

    @property
    def lost_before_tables(self) -> bool:
        """Whether connections failed although tables refused and evicted none: their packets were lost elsewhere."""
        all_kept = all(each.entries >= each.arrived for each in self.instances)
        return not self.complete and all_kept and self.failed == self.dropped == self.evicted == 0

    @property
    def refused(self) -> bool:
        """Whether a table did not take, or did not keep, an entry for each connection that came to it."""
        return not self.complete and not self.lost_before_tables

    @property
    def held(self) -> int:
        """Entries after the trial, of the smallest table."""
        return min(each.entries for each in self.instances)

    @property
    def reached(self) -> int:
        """Most connections of an instance that may have come to its tables: those that arrived or that one dropped."""
        lost = self.dropped if self.dropped is not None else MAX_FLOWS
        return max(min(each.sent, each.arrived + lost) for each in self.instances)


class EstablishmentRate(Frozen):
    """The maximum connection establishment rate of a cell."""

    lower_cps: float
    """Of all instances: the rate."""
    upper_cps: float | None
    """None where no rate was too high."""
    by_instance_cps: tuple[float, ...]
    """Connections established per second in a trial at the lower bound."""
    complete: bool
    """Whether the bounds are as close as the search's width."""
    trials: int
    search_s: float
    sending_s: float
    """Of this the time of the trials themselves."""
    emptying_s: float = 0.0
    """Of this the time of deletions before them."""
    remark: str = ""
    """Limit of the search, where that is not the system."""


class TearDown(Frozen):
    """The deletion of all entries of all tables, from the first request to the last answer."""

    entries: tuple[int, ...]
    """Of each table before it, in the order of `CellConnections.tables`."""
    seconds: tuple[float, ...]
    """Duration at each table."""
    total_s: float
    """From the first request to the last answer, in milliseconds' resolution of the node's clock."""

    @property
    def rate_cps(self) -> float | None:
        """Entries deleted per second, of all tables."""
        return sum(self.entries) / self.total_s if self.total_s > 0 else None


class TableCapacity(Frozen):
    """Entries of the smallest table of a cell, when all instances fill theirs at the same time."""

    entries: int
    """Most that every table held when none had refused or evicted any; 0 where each trial was refused."""
    refused_at: int | None
    """Fewest connections of which a table refused or evicted some; None where that did not happen."""
    rate_cps: float
    """Rate at which all tables were filled together."""
    trials: int
    remark: str = ""
    """Limit of the search, where that is not a table."""


class Check(Frozen):
    """A requirement of RFC 9693, and whether the result meets it."""

    subject: str
    """Subject of the RFC."""
    met: bool
    text: str


class CellConnections(Frozen):
    """Results of one cell."""

    instances: int
    nodes: int
    """Network functions of each instance."""
    plan: str
    """Digest of the plan."""
    tables: Annotated[dict[str, ConnectionTable], Field(min_length=1)]
    """As configured, by name of the network function."""
    rate: EstablishmentRate
    empty_s: float
    """Duration of a deletion when all tables are empty."""
    tear_downs: tuple[TearDown, ...]
    capacity: TableCapacity | None
    trials: tuple[ConnectionTrial, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`2x1`: two instances of one network function."""
        return f"{self.instances}x{self.nodes}"

    @property
    def is_valid(self) -> bool:
        """Whether all requirements are met."""
        return all(check.met for check in self.checks)

    @property
    def tear_down_cps(self) -> float | None:
        """Tear-down rate of all tables: entries of all repetitions over their time."""
        seconds = sum(each.total_s for each in self.tear_downs)
        return sum(sum(each.entries) for each in self.tear_downs) / seconds if seconds > 0 else None


class StatefulDensity(Frozen):
    """Part of a record: what was measured."""

    spec: StatefulSpec
    cells: tuple[CellConnections, ...]
    skipped: dict[str, str] = Field(default_factory=dict)
    """Cells that do not fit the testbed, and why."""

    @model_validator(mode="after")
    def _checked_alike(self) -> Self:
        """Pages list a requirement once for all cells."""
        if len({tuple(check.subject for check in cell.checks) for cell in self.cells}) > 1:
            raise ValueError("cells: each has the same checks")
        return self


class StatefulRecord(Record):
    """A study of stateful density."""

    study: Literal["stateful"] = "stateful"
    stateful: Annotated[StatefulDensity | None, PACKED] = None
