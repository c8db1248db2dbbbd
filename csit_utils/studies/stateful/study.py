"""Studies of stateful density in reports: connection rates, tear-downs and table capacity of NATs and firewalls."""

from collections.abc import Iterator

from csit_utils.dataset.measures import Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.dataset.rows import frame_text
from csit_utils.report.record_blocks import Column, Plot, Row, Sentences, Table
from csit_utils.report.record_page import record_page
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.report.units import count, seconds
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import DECIMAL, counted, scaled
from resources.libraries.python.studies.stateful.analysis import (
    CELLS,
    DEVIATIONS,
    INSTANCES,
    TRIALS,
    headline,
    remarks,
    sentences,
    stateful_tables,
)
from resources.libraries.python.studies.stateful.model import CellConnections, Phase, StatefulDensity, StatefulSpec
from resources.libraries.python.studies.stateful.planning import cost

_RATE = "rate_lower_cps"
_CHECKED = {"cell": "cell", "subject": "subject", "text": "finding", "met": "met"}


def _per_s(value: float) -> str:
    """`15.8 M/s`."""
    return scaled(value, DECIMAL, "/s")


def _setup(found: StatefulDensity) -> Iterator[str]:
    spec = found.spec
    yield (
        f"{spec.kind}, {spec.frame.name}; one UDP packet for each new connection, from the initiator's side; tables "
        f"are emptied before every trial and counted after it. Tables are filled at {100 * spec.share:.0f} % of the "
        "rate for tear-downs and capacity."
    )


def _by_instances(found: StatefulDensity) -> Iterator[Row]:
    for cell in sorted(found.cells, key=lambda cell: (cell.nodes, cell.instances)):
        for share, parts in (("total", 1), ("per instance", cell.instances)):
            yield {
                "share": share,
                "nodes": f"{counted(cell.nodes, 'NF')} per instance",
                "instances": cell.instances,
                _RATE: cell.rate.lower_cps / parts,
                "tear_down_cps": None if cell.tear_down_cps is None else cell.tear_down_cps / parts,
                "entries": cell.capacity.entries * cell.instances / parts if cell.capacity else None,
            }


def _search(found: StatefulDensity) -> Iterator[Row]:
    for cell in found.cells:
        for trial in cell.trials:
            if trial.phase is Phase.RATE:
                sent = sum(row.sent for row in trial.instances)
                yield {
                    "cell": cell.name,
                    "outcome": "all established" if trial.complete else "some failed",
                    "load_cps": trial.load_cps,
                    "established": sum(row.established for row in trial.instances) / max(1, sent),
                }


def _search_times(found: StatefulDensity) -> Iterator[Row]:
    for cell in found.cells:
        buckets = next(iter(cell.tables.values())).buckets
        times = cell.rate.model_dump(include={"trials", "search_s", "sending_s", "emptying_s"})
        yield {**times, "cell": cell.name, "empty_s": cell.empty_s, "buckets": buckets or None}


def _checks(found: StatefulDensity) -> Iterator[Row]:
    """Yield the requirements that all cells meet once, with the finding in the first, and others for each cell."""
    for of_cells in zip(*(cell.checks for cell in found.cells), strict=True):
        rows = list(zip((cell.name for cell in found.cells), of_cells, strict=True))
        if len(rows) > 1 and all(check.met for check in of_cells):
            alike = len({check.text for check in of_cells}) == 1
            text = of_cells[0].text if alike else f"{rows[0][0]}: {of_cells[0].text}"
            yield {"cell": f"all {len(rows)}", "subject": of_cells[0].subject, "text": text, "met": "yes"}
            continue
        for name, check in rows:
            met = "yes" if check.met else "no"
            yield {"cell": name, "subject": check.subject, "text": check.text, "met": met, "failed": not check.met}
    for subject, text in DEVIATIONS:
        yield {"cell": "all", "subject": subject, "text": text, "met": "differs"}


def _remarks(found: StatefulDensity) -> Iterator[str]:
    failed = sum(not check.met for cell in found.cells for check in cell.checks)
    checked = f"{failed} not met" if failed else "all that were checked are met"
    yield f"Requirements of RFC 9693: {checked}; {len(DEVIATIONS)} are done differently"
    yield from remarks(found)


PAGE = record_page(
    "stateful",
    "Stateful density",
    "stateful",
    (
        Sentences(_setup, paragraph=True),
        Plot(
            "density",
            "Connections by the number of instances",
            _by_instances,
            x=Column("instances", "service instances", options={"dtick": 1}),
            y=(
                Column(_RATE, "new connections/s"),
                Column("tear_down_cps", "tear-downs/s"),
                Column("entries", "entries"),
            ),
            colour="nodes",
            choose=("share",),
        ),
        Plot(
            "search",
            "Trials of the establishment rate",
            _search,
            x=Column("load_cps", "offered rate, new connections/s"),
            y=Column("established", "established, %", scale=100, options={"rangemode": "normal"}),
            colour="outcome",
            choose=("cell",),
            mark="markers",
        ),
        Table(
            "stateful",
            "stateful",
            (
                Column("instances", write=count),
                Column("nodes", "NFs", count),
                Column(
                    _RATE, "new connections", _per_s, explain=("connection-rate", "the connection establishment rate")
                ),
                Column("rate_upper_cps", "failed at", _per_s),
                Column("rate_instance_cps", "fewest of an instance", _per_s),
                Column("tear_down_cps", "tear-downs", _per_s, explain=("tear-down-rate", "the tear-down rate")),
                Column(
                    "capacity_entries",
                    "entries of a table",
                    count,
                    explain=("table-capacity", "the capacity of a table"),
                ),
                Column("table_limit", "limit of a table", count),
                Column("valid", "valid", lambda valid: "yes" if valid else "no", text=True),
            ),
            classes="tight",
        ),
        Table(
            "search-times",
            _search_times,
            (
                Column("cell", text=True),
                Column("trials", write=count),
                Column("search_s", "search", seconds),
                Column("sending_s", "of it sending", seconds),
                Column("emptying_s", "of it emptying tables", seconds),
                Column("empty_s", "deletion of empty tables", seconds),
                Column("buckets", "buckets of a table", count),
            ),
            folded="Time of the search, and of emptying tables",
            classes="tight",
        ),
        Table(
            "checks",
            _checks,
            tuple(Column(name, title, text=True) for name, title in _CHECKED.items()),
            folded="Requirements of RFC 9693",
            mark={"failed": "worst"},
            classes="explanation",
        ),
        Sentences(_remarks),
    ),
)


EXPLANATIONS = (
    Explanation(
        "connection-rate",
        "Connection establishment rate",
        "How many new connections per second NATs and firewalls take, per service instance and in total.",
        "Connections per second, of all instances together; the share of each instance is beside it.",
        "Maximum connection establishment rate of RFC 9693: each packet is a UDP datagram with a 5-tuple "
        "that no earlier one of the trial had, from the initiator's side only. A rate counts where every packet "
        "arrives and every table has an entry for it (validation, by the tables themselves instead of "
        "packets from the responder). It is searched as NDR is. Tables are emptied, and verified to be empty, before "
        "each trial.",
        "A packet that opens a connection costs more than one that follows: this rate is far below NDR of the same "
        "cell. UDP only, as in the RFC. Where a trial at a higher rate would fill the table, the rate is a lower "
        "bound.",
        ("new-connections",),
    ),
    Explanation(
        "tear-down-rate",
        "Connection tear-down rate",
        "How many entries of connection tables are deleted per second, of all tables together.",
        "Entries per second.",
        "Connection tear-down rate of RFC 9693: tables are filled below the establishment rate, all "
        "entries of all tables are deleted, one table after another because the kernel has one lock for all, "
        "and their number is divided by the time from the first request to the last "
        "answer. After each deletion the tables are verified to be empty.",
        "The time of a deletion includes a walk through the hash table: compare with that of an empty table. With few "
        "entries the walk dominates.",
        ("tear-downs",),
    ),
    Explanation(
        "table-capacity",
        "Connection table capacity",
        "How many connections each table holds while all instances fill theirs at the same time.",
        "Entries of one table.",
        "Connection tracking table capacity of RFC 9693: tables are filled below the establishment rate "
        "with more and more connections, then the number is bisected. It is the number of entries that tables held "
        "when they had refused and evicted none. A number of which one table refuses some is tried once more.",
        "A full table that evicts old entries lets all packets pass: only its entries show that it is full. Network "
        "functions of one kernel share one hash table, whose buckets are below the table of cells.",
    ),
)


RATE = Measure("new-connections", "cps")
"""Maximum connection establishment rate of a cell, aggregate."""
TEAR_DOWN = Measure("tear-downs", "cps")
"""Entries deleted per second, of all tables."""
CAPACITY = Measure("table-capacity", "entries")
"""Entries of each table of a cell."""


def _title(found: StatefulDensity) -> str:
    return f"{found.spec.name}: {found.spec.kind}, {found.spec.frame.name}"


def _measured(found: StatefulDensity) -> Iterator[MeasuredSubject]:
    for cell in found.cells:
        yield MeasuredSubject(
            tuple(_values(cell)) if cell.is_valid else (),
            found.spec.name,
            Dimensions(cell.instances, cell.nodes),
            str(found.spec.size),
            frame_text(found.spec.frame),
            f"{found.spec.kind}, {found.spec.search}",
        )


def _values(cell: CellConnections) -> Iterator[MeasuredValue]:
    yield MeasuredValue(RATE, cell.rate.lower_cps, cell.rate.lower_cps, cell.rate.upper_cps)
    rates = [rate for each in cell.tear_downs if (rate := each.rate_cps) is not None]
    if cell.tear_down_cps is not None and rates:
        yield MeasuredValue(TEAR_DOWN, cell.tear_down_cps, min(rates), max(rates))
    if cell.capacity is not None:
        entries, refused = cell.capacity.entries, cell.capacity.refused_at
        yield MeasuredValue(CAPACITY, entries, entries, refused)


STUDY = Study(
    order=57,
    pages=(PAGE,),
    kinds=(
        RecordKind(
            "stateful",
            "Stateful density",
            lambda record: record.stateful,
            _title,
            headline,
            lines=sentences,
            measures=(RATE, TEAR_DOWN, CAPACITY),
            measured=_measured,
            tables=stateful_tables,
            queried=QueriedTables(
                {"stateful": CELLS, "stateful_instances": INSTANCES, "stateful_trials": TRIALS},
                texts=("kind", "phase"),
                counts=(
                    *("instances", "nodes", "instance", "capacity_entries", "capacity_refused_at", "table_limit"),
                    *("trial", "trials", "sent", "arrived", "entries", "failed", "dropped", "evicted"),
                ),
                flags=("rate_complete", "valid", "counts"),
            ),
        ),
    ),
    explanations={"Stateful density": EXPLANATIONS},
    preview=lambda name, keys: cost(load_yaml(specification_file(name), StatefulSpec, keys)),
)
