"""Declarations of studies on the reading side: pages, commands, record kinds, explanations."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

from csit_utils.dataset.flatten import measured_row
from csit_utils.dataset.items import Recorded
from csit_utils.dataset.measures import Explanation, Measure, MeasuredSubject
from csit_utils.dataset.rows import MeasuredRow
from csit_utils.report.details.capsule import rerun_command
from csit_utils.report.details.machines import NoiseView, noise_floor
from resources.libraries.python.model.record import Record
from resources.libraries.python.planning.cost import StudyCost

if TYPE_CHECKING:
    from csit_utils.report.stack_sides import CellStacks

ContextT = TypeVar("ContextT")


@dataclass(frozen=True)
class Page(Generic[ContextT]):
    """Page of the report: a file of its own in a site, a section of the single page otherwise."""

    name: str
    """Name of its file without `.html`."""
    title: str
    """Title in the navigation."""
    build: Callable[[ContextT], Mapping[str, object] | None]
    """Returns values for the template; None if there is nothing to show.

    `figures` among them is a list of `Figure`; `count` is a number of items that need attention, for the navigation.
    """
    template: str = ""
    """Its name below `pages/`, without `.html.j2`; that of the page unless given."""
    group: str = ""
    """Menu of the navigation; pages of a study are in that of the study."""


@dataclass(frozen=True)
class View:
    """One record on its page."""

    item: Recorded
    title: str
    """The service, and what distinguishes it from others on the page."""
    headline: str
    older: int
    """Number of earlier repetitions, which are not shown."""
    warnings: Sequence[str] = ()
    name_first: bool = False
    """As `RecordKind.name_first`."""

    @property
    def anchor(self) -> str:
        """Id of its section."""
        return self.item.anchor

    @property
    def record(self) -> Any:  # noqa: ANN401 - of any study
        """The whole record."""
        return self.item.record

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.item.status == "PASS"

    @property
    def outcome(self) -> str:
        """How a test ended that has not passed; empty for one that has."""
        return {"PASS": "", "SKIP": "skipped"}.get(self.item.status, "failed")

    @property
    def simulated(self) -> bool:
        """Whether the results are simulated."""
        return bool(self.record.simulated)

    @property
    def oversubscribed(self) -> bool:
        """Whether data threads shared cores because there were too few."""
        plan = self.record.plan
        return plan is not None and plan.cores.oversubscribed

    @property
    def command(self) -> str | None:
        """Command that runs the test again; None if it is not recorded."""
        rerun = self.record.rerun
        # A chain is predicted from tests of the same suite that come before it.
        name = None if self.record.kind == "chain" else self.record.test_name
        return None if rerun is None else shlex.join(rerun_command(rerun, name))

    @property
    def noise(self) -> tuple[NoiseView, ...]:
        """Noise floor of the data CPUs, the longest interruptions first."""
        return noise_floor(self.record.plan, self.record.noise)

    @property
    def facts(self) -> tuple[str, ...]:
        """Testbed, drivers, and start of the test."""
        record = self.record
        drivers = ", ".join(f"{role} {name}" for role, name in sorted(record.drivers.items()))
        started = record.started_at[:16].replace("T", " ")
        parts = (f"testbed {record.testbed}", drivers, f"{started} UTC")
        return tuple(part for part in parts if part)


def nothing(_content: object) -> Iterable[Never]:
    """Return what most kinds have of lines, tables, measures and call stacks."""
    return ()


def never(_content: object) -> bool:
    """No record."""
    return False


def of_spec(content: Any) -> object:  # noqa: ANN401 - of any study
    """The specification is the identity of the subject."""
    return content.spec.model_dump_json()


@dataclass(frozen=True)
class QueriedTables:
    """Tables of a record that are columns of a dataset, and views of it, for queries without reading the record."""

    columns: Mapping[str, Sequence[str]]
    """Names of the first columns by table, of those of `RecordKind.tables`; they are numbers unless named below."""
    texts: Sequence[str] = ()
    counts: Sequence[str] = ()
    flags: Sequence[str] = ()
    prefix: str = ""
    """Of the names of the views."""

    def view(self, table: str) -> str:
        """Return the name of the view of a table."""
        return f"{self.prefix}{table.lower().removeprefix('s_')}"


@dataclass(frozen=True)
class RecordKind:
    """Declaration of a kind of records. Functions take the content of a record, and are not called without one."""

    kind: str
    name: str
    """Name in headings: `Chain study`."""
    content: Callable[[Any], Any]
    """Returns what a record has measured; None without a result."""
    title: Callable[[Any], str]
    """The subject: `firewall, 64B, 1c`."""
    headline: Callable[[Any], str | None]
    """The result in one sentence; None where nothing was measured after all."""
    identity: Callable[[Any], object] = of_spec
    """Identity of the subject: a later record with the same identity is a repetition."""
    lines: Callable[[Any], Iterable[str]] = nothing
    """Details for `show --why`."""
    warnings: Callable[[Any], Iterable[str]] = nothing
    """Further warnings."""
    measures: tuple[Measure, ...] = ()
    """Quantities that are compared and followed over time."""
    measured: Callable[[Any], Iterable[MeasuredSubject]] = nothing
    """Their values."""
    tables: Callable[[Any], Iterable[tuple[str, Sequence[tuple[object, ...]]]]] = nothing
    """Of a record, name and rows of each table, the heads first: CSV files."""
    queried: QueriedTables | None = None
    """None without such tables."""
    stacks: "Callable[[Any], Iterable[CellStacks]]" = nothing
    """Call stacks that a record has beside their reference."""
    name_first: Callable[[Any], bool] = never
    """Whether the headline begins with a name, which keeps its case at the beginning of a sentence."""

    def view(self, item: Recorded, older: int) -> View:
        """Return a record on its page, which replaces a number of older ones."""
        found = self.content(item.record)
        if found is None or (headline := self.headline(found)) is None:
            headline = f"nothing was measured: {item.message or 'the test ended before its first load'}"
        title = item.record.test_name if found is None else self.title(found)
        name_first = found is not None and self.name_first(found)
        warnings = dict.fromkeys((*item.record.warnings, *(() if found is None else self.warnings(found))))
        return View(item, title, headline, older, tuple(warnings), name_first)

    def identity_of(self, record: Record) -> object:
        """Return the identity of a record's subject; None without a result."""
        found = self.content(record)
        return None if found is None else self.identity(found)

    def lines_of(self, record: Record) -> Iterable[str]:
        """Return the details of a record."""
        found = self.content(record)
        return () if found is None else self.lines(found)

    def rows_of(self, item: Recorded) -> Iterator[MeasuredRow]:
        """Yield a record's quantities as rows of tests."""
        if (found := self.content(item.record)) is not None:
            yield from (measured_row(item, each, self.measures) for each in self.measured(found))


@dataclass(frozen=True)
class Study:
    """Declaration of a study for reports and the command line.

    Its folder has a module `study` with one of these as `STUDY`; templates, styles and scripts are in its folder
    `templates`, and each of its modules `<name>_command` is a command.
    """

    order: int
    """Position among the studies, in the navigation and in lists."""
    pages: tuple[Page[Any], ...] = ()
    group: str = "Studies"
    """Menu of its pages in the navigation."""
    kinds: tuple[RecordKind, ...] = ()
    explanations: Mapping[str, Sequence[Explanation]] = field(default_factory=dict)
    """By heading of the page of help."""
    preview: Callable[[str, Mapping[str, str]], StudyCost] | None = None
    """Cost of a test of its suite, given the name of its specification, and the keys that it sets."""
