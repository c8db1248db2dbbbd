"""Tables of a study of stateful density, and which requirements of RFC 9693 the results of a cell meet."""

from collections.abc import Iterator, Sequence

from resources.libraries.python.csv_tables import Row, Tables
from resources.libraries.python.quantities import DECIMAL, scaled
from resources.libraries.python.studies.stateful.model import (
    CellConnections,
    Check,
    ConnectionTrial,
    EstablishmentRate,
    Phase,
    StatefulDensity,
    StatefulRecord,
    StatefulSpec,
    TearDown,
)

CELLS = (
    "kind", "instances", "nodes", "rate_lower_cps", "rate_upper_cps", "rate_instance_cps", "rate_complete",
    "tear_down_cps", "empty_s", "capacity_entries", "capacity_refused_at", "table_limit", "valid", "trials", "search_s",
    "sending_s", "emptying_s",
)  # fmt: skip
INSTANCES = ("kind", "instances", "nodes", "instance", "rate_cps", "capacity_entries")
TEAR_DOWNS = ("kind", "instances", "nodes", "repetition", "table", "entries", "seconds", "tear_down_cps")
TRIALS = (
    "kind", "instances", "nodes", "trial", "phase", "load_cps", "duration_s", "instance", "sent", "arrived", "entries",
    "failed", "dropped", "evicted", "counts",
)  # fmt: skip
"""`failed`, `dropped` and `evicted` are sums over all tables."""


def stateful_tables(record: StatefulRecord) -> Tables:
    """Name and rows of each table, the first row with the names of the columns."""
    found = record.stateful
    if found is None or not found.cells:
        return ()
    tables: dict[str, list[Row]] = {
        "stateful": [CELLS],
        "stateful_instances": [INSTANCES],
        "stateful_tear_downs": [TEAR_DOWNS],
        "stateful_trials": [TRIALS],
    }
    for cell in found.cells:
        head = (str(found.spec.kind), cell.instances, cell.nodes)
        tables["stateful"].append((*head, *_figures(cell)))
        tables["stateful_instances"] += [
            (*head, number, rate_cps, cell.capacity.entries if cell.capacity else None)
            for number, rate_cps in enumerate(cell.rate.by_instance_cps, 1)
        ]
        tables["stateful_tear_downs"] += [(*head, *row) for row in _tear_downs(cell)]
        tables["stateful_trials"] += [(*head, *row) for row in _trials(cell)]
    return tuple(tables.items())


def _figures(cell: CellConnections) -> Row:
    rate, capacity = cell.rate, cell.capacity
    return (
        rate.lower_cps,
        rate.upper_cps,
        min(rate.by_instance_cps),
        rate.complete,
        cell.tear_down_cps,
        cell.empty_s,
        capacity.entries if capacity else None,
        capacity.refused_at if capacity else None,
        next(iter(cell.tables.values())).limit,
        cell.is_valid,
        rate.trials,
        rate.search_s,
        rate.sending_s,
        rate.emptying_s,
    )


def _tear_downs(cell: CellConnections) -> Iterator[Row]:
    for number, each in enumerate(cell.tear_downs, 1):
        for table, entries, seconds in zip(cell.tables, each.entries, each.seconds, strict=True):
            yield number, table, entries, seconds, entries / seconds if seconds > 0 else None


def _trials(cell: CellConnections) -> Iterator[Row]:
    for number, trial in enumerate(cell.trials, 1):
        for instance, each in enumerate(trial.instances, 1):
            yield (
                number,
                str(trial.phase),
                trial.load_cps,
                trial.duration_s,
                instance,
                each.sent,
                each.arrived,
                each.entries,
                trial.failed,
                trial.dropped,
                trial.evicted,
                trial.counts,
            )


RATE, TEAR_DOWN, CAPACITY = (
    "maximum connection establishment rate",
    "connection tear-down rate",
    "connection tracking table capacity",
)
TABLES = "connection tracking table entries"
"""Subjects of RFC 9693, by name."""


def checks(
    spec: StatefulSpec, rate: EstablishmentRate, trials: Sequence[ConnectionTrial], tear_downs: Sequence[TearDown]
) -> tuple[Check, ...]:
    """Check the results of a cell."""
    at = [each for each in trials if each.phase is Phase.RATE and each.counts and each.load_cps == rate.lower_cps]
    whole = [each for each in at if each.complete]
    longest_s = max((each.duration_s for each in trials), default=0.0)
    asked = max((row.sent for each in trials if each.phase is Phase.TEAR_DOWN for row in each.instances), default=0)
    filled = [each for each in tear_downs if all(entries == asked for entries in each.entries)]
    fastest_cps = max(
        (each.load_cps for each in trials if each.phase in (Phase.TEAR_DOWN, Phase.CAPACITY)), default=0.0
    )
    return (
        Check(subject=TABLES, met=True, text=f"all tables were empty before each of {len(trials)} trials, as counted"),
        Check(
            subject=TABLES,
            met=longest_s < spec.timeout_s,
            text=f"the longest trial took {longest_s:.1f} s, and entries expire after {spec.timeout_s} s",
        ),
        Check(
            subject=RATE,
            met=bool(at) and len(whole) == len(at),
            text=f"{len(whole)} of {len(at)} trials at the rate established every connection: each packet arrived, and "
            "each table had an entry for it",
        ),
        Check(
            subject=TEAR_DOWN,
            met=bool(tear_downs) and len(filled) == len(tear_downs),
            text=f"{len(filled)} of {len(tear_downs)} tear-downs began with {asked:,} entries of each table; none was "
            "left after any",
        ),
        Check(
            subject=f"{TEAR_DOWN}, {CAPACITY}",
            met=fastest_cps < rate.lower_cps,
            text=f"tables were filled at {fastest_cps:,.0f} connections/s or less, the maximum is "
            f"{rate.lower_cps:,.0f}",
        ),
    )


DEVIATIONS = (
    (
        "port numbers",
        "5-tuples are all different, as required; they are enumerated in order, not pseudorandomly, over up to 254 "
        "source addresses instead of one pair of addresses",
    ),
    (
        "validation of connections",
        "connections are validated by the number of entries in each table and by the packets that arrived, not by "
        "packets from the responder for each entry",
    ),
    ("test phase 2", "not run: throughput and latency through established connections are not measured"),
    (
        CAPACITY,
        "the search begins at the configured limit of the table instead of a safe low number, and counts the entries "
        "that tables held when they had refused none, even where other connections were lost before any table",
    ),
    (
        "report",
        "each rate and each capacity is the result of one search, whose trials are listed; tear-downs are repeated and "
        "summed up. Median and percentiles of repetitions follow from several runs",
    ),
)
"""Subject of RFC 9693, and where the method differs."""


def headline(found: StatefulDensity) -> str | None:
    """Return the result in one sentence."""
    if not found.cells:
        return None
    best = max(found.cells, key=lambda cell: cell.rate.lower_cps)
    return f"most new connections with {best.name}: {in_words(best)}"


def sentences(found: StatefulDensity) -> Iterator[str]:
    """Result of each cell, and remarks."""
    yield from (f"{cell.name}: {in_words(cell)}" for cell in found.cells)
    yield from remarks(found)


def remarks(found: StatefulDensity) -> Iterator[str]:
    """What bounds rates and capacities beside the system, and why cells were skipped."""
    for cell in found.cells:
        if cell.rate.remark:
            yield f"{cell.name}, rate: {cell.rate.remark}"
        if cell.capacity and cell.capacity.remark:
            yield f"{cell.name}, capacity: {cell.capacity.remark}"
        yield from (f"{cell.name}: {note}" for note in cell.notes)
    yield from (f"{name} was skipped: {reason}" for name, reason in found.skipped.items())


def in_words(cell: CellConnections) -> str:
    """Results of a cell in one line."""
    parts = [f"{scaled(cell.rate.lower_cps, DECIMAL)} new connections/s"]
    if cell.tear_down_cps is not None:
        parts.append(f"{scaled(cell.tear_down_cps, DECIMAL)} tear-downs/s")
    if cell.capacity is not None:
        parts.append(f"tables of {'at least ' if cell.capacity.refused_at is None else ''}{cell.capacity.entries:,}")
    if not cell.is_valid:
        parts.append("not valid: " + "; ".join(check.text for check in cell.checks if not check.met))
    return ", ".join(parts)
