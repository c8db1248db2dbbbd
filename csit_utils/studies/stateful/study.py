"""Studies of stateful density in reports: connection rates, tear-downs and table capacity of NATs and firewalls."""

from collections.abc import Callable, Iterator

from csit_utils.analysis.measures import Measure, MeasuredRow, MeasuredValue, measured_row
from csit_utils.dataset.items import Characterized
from csit_utils.dataset.rows import frame_text
from csit_utils.report.characterizations import DrawnRecord, page_of_records
from csit_utils.report.explanations import Explanation
from csit_utils.report.figures import Figure, Json, axis, scatter
from csit_utils.report.study import RecordKind, Study, View
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.studies.stateful.analysis import (
    DEVIATIONS,
    in_words,
    stateful_tables,
)
from resources.libraries.python.studies.stateful.model.record import (
    CellConnections,
    Phase,
    StatefulDensity,
)
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


def _measured(item: Characterized, found: StatefulDensity) -> Iterator[MeasuredRow]:
    for cell in found.cells:
        for value in _values(cell):
            yield measured_row(
                item,
                (value,) if cell.is_valid else (),
                test_type=value.measure.value,
                service_type=found.spec.name,
                **Dimensions(cell.instances, cell.nodes).columns,
                nf_size=str(found.spec.size),
                frame=frame_text(found.spec.frame),
                goals=f"{found.spec.kind}, {found.spec.search}",
            )


def _values(cell: CellConnections) -> Iterator[MeasuredValue]:
    yield MeasuredValue(RATE, cell.rate.lower_cps, cell.rate.lower_cps, cell.rate.upper_cps)
    rates = [rate for each in cell.tear_downs if (rate := each.rate_cps) is not None]
    if cell.tear_down_cps is not None and rates:
        yield MeasuredValue(TEAR_DOWN, cell.tear_down_cps, min(rates), max(rates))
    if cell.capacity is not None:
        entries, refused = cell.capacity.entries, cell.capacity.refused_at
        yield MeasuredValue(CAPACITY, entries, entries, refused)


_Value = Callable[[CellConnections], float | None]
_QUANTITIES: dict[str, tuple[str, _Value]] = {
    "new connections": ("new connections/s", lambda cell: cell.rate.lower_cps),
    "tear-downs": ("tear-downs/s", lambda cell: cell.tear_down_cps),
    "capacity": ("entries", lambda cell: cell.capacity.entries * cell.instances if cell.capacity else None),
}
_PER_INSTANCE = ("in sum", "per instance")


def density(anchor: str, found: StatefulDensity, *, simulated: bool) -> Figure:
    """Each quantity by the number of instances, a line for each number of network functions of an instance."""
    nodes = sorted({cell.nodes for cell in found.cells})
    shown = [name for name, (_, value) in _QUANTITIES.items() if any(value(cell) for cell in found.cells)]
    variants: Json = {
        f"{name}|{share}": {
            "data": [_line(found, name, number, per_instance=share == _PER_INSTANCE[1]) for number in nodes],
            "layout": {"xaxis": axis("service instances", dtick=1), "yaxis": axis(_QUANTITIES[name][0])},
        }
        for name in shown
        for share in _PER_INSTANCE
    }
    return Figure(
        f"{anchor}-density",
        "Connections by the number of instances",
        simulated,
        (tuple(shown), _PER_INSTANCE),
        variants,
    )


def _line(found: StatefulDensity, quantity: str, nodes: int, *, per_instance: bool) -> Json:
    cells = sorted((cell for cell in found.cells if cell.nodes == nodes), key=lambda cell: cell.instances)
    value = _QUANTITIES[quantity][1]
    values = [(cell.instances, value(cell)) for cell in cells]
    name = f"{nodes} NF{'s' if nodes > 1 else ''} per instance"
    return scatter(
        name,
        [
            (instances, None if number is None else number / (instances if per_instance else 1))
            for instances, number in values
        ],
        nodes - 1,
    )


def search(anchor: str, found: StatefulDensity, *, simulated: bool) -> Figure:
    """Established share of the connections by offered rate, of every trial of the search of each cell."""
    variants: Json = {
        cell.name: {
            "data": [_trials(cell, complete=True), _trials(cell, complete=False)],
            "layout": {
                "xaxis": axis("offered rate, new connections/s"),
                "yaxis": {"title": {"text": "established, %"}},
            },
        }
        for cell in found.cells
    }
    return Figure(f"{anchor}-search", "Trials of the establishment rate", simulated, (tuple(variants),), variants)


def _trials(cell: CellConnections, *, complete: bool) -> Json:
    trials = [each for each in cell.trials if each.phase is Phase.RATE and each.complete is complete]
    shares = [
        sum(row.established for row in each.instances) / max(1, sum(row.sent for row in each.instances))
        for each in trials
    ]
    return scatter(
        "all established" if complete else "some failed",
        [(each.load_cps, 100 * share) for each, share in zip(trials, shares, strict=True)],
        0 if complete else 1,
        mode="markers",
    )


def _drawn(view: View) -> DrawnRecord:
    found: StatefulDensity | None = view.record.stateful
    if found is None or not found.cells:
        return DrawnRecord(view)
    return DrawnRecord(
        view, plots=tuple(draw(view.anchor, found, simulated=view.simulated) for draw in (density, search))
    )


STUDY = Study(
    order=57,
    pages=(
        page_of_records(
            "stateful",
            "Stateful density",
            "stateful",
            "densities",
            _drawn,
            deviations=DEVIATIONS,
        ),
    ),
    kinds=(
        RecordKind(
            "stateful",
            "Stateful density",
            lambda record: record.stateful,
            _title,
            headline,
            lines=_lines,
            measured=_measured,
            tables=stateful_tables,
        ),
    ),
    measures=(RATE, TEAR_DOWN, CAPACITY),
    explanations=EXPLANATIONS,
    preview=lambda path, keys: cost(load_stateful(path, keys)),
)
