"""Studies of stateful density in reports: connection rates, tear-downs and table capacity of NATs and firewalls."""

from collections.abc import Iterator

from csit_utils.dataset.measures import Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.dataset.rows import frame_text
from csit_utils.report.study import RecordKind, Study
from csit_utils.studies.stateful.page import PAGE
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.studies.stateful.analysis import in_words, stateful_tables
from resources.libraries.python.studies.stateful.model.record import CellConnections, StatefulDensity
from resources.libraries.python.studies.stateful.model.spec import load_stateful
from resources.libraries.python.studies.stateful.planning import cost

EXPLANATIONS = (
    Explanation(
        "connection-rate",
        "Connection establishment rate",
        "How many new connections per second NATs and firewalls take, per service instance and in sum.",
        "Connections per second, of all instances together; the share of each instance is beside it.",
        "Maximum connection establishment rate of RFC 9693: each packet is a UDP datagram with a 5-tuple "
        "that no earlier one of the trial had, from the initiator's side only. A rate counts where every packet "
        "arrives and every table has an entry for it (validation, by the tables themselves instead of "
        "packets from the responder). It is searched as NDR is. Tables are emptied, and verified to be empty, before "
        "each trial.",
        "A packet that opens a connection costs more than one that follows: this rate is far below NDR of the same "
        "cell. UDP only, as in the RFC. Where a trial at a higher rate would fill the table, the rate is a lower "
        "bound.",
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


def headline(found: StatefulDensity) -> str | None:
    """Return the result in one sentence."""
    if not found.cells:
        return None
    best = max(found.cells, key=lambda cell: cell.rate.lower_cps)
    return f"most new connections with {best.name}: {in_words(best)}"


def _lines(found: StatefulDensity) -> Iterator[str]:
    yield from (f"{cell.name}: {in_words(cell)}" for cell in found.cells)
    yield from (f"{name} was skipped: {reason}" for name, reason in found.skipped.items())


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
            lines=_lines,
            measures=(RATE, TEAR_DOWN, CAPACITY),
            measured=_measured,
            tables=stateful_tables,
        ),
    ),
    explanations=EXPLANATIONS,
    preview=lambda path, keys: cost(load_stateful(path, keys)),
)
