"""Tables of a study of stateful density: a line for each cell, instance, tear-down and trial."""

from collections.abc import Iterator

from resources.libraries.python.studies.stateful.model.record import CellConnections, StatefulRecord

Row = tuple[object, ...]
CELLS = (
    "kind", "instances", "nodes", "rate_lower_cps", "rate_upper_cps", "rate_complete", "tear_down_cps", "empty_s",
    "capacity_entries", "capacity_refused_at", "valid", "trials", "search_s", "sending_s",
    "emptying_s", "tcp_lower_cps", "tcp_upper_cps", "tcp_alone_cps", "tcp_limited_by_peer",
)  # fmt: skip
INSTANCES = ("kind", "instances", "nodes", "instance", "rate_cps", "capacity_entries")
TEAR_DOWNS = ("kind", "instances", "nodes", "repetition", "table", "entries", "seconds", "tear_down_cps")
TRIALS = (
    "kind", "instances", "nodes", "trial", "phase", "load_cps", "duration_s", "instance", "sent", "arrived", "entries",
    "failed", "dropped", "evicted", "counts",
)  # fmt: skip
"""`failed`, `dropped` and `evicted` are sums over all tables."""


def stateful_tables(record: StatefulRecord) -> tuple[tuple[str, list[Row]], ...]:
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
    rate, capacity, tcp = cell.rate, cell.capacity, cell.tcp
    return (
        rate.lower_cps,
        rate.upper_cps,
        rate.complete,
        cell.tear_down_cps,
        cell.empty_s,
        capacity.entries if capacity else None,
        capacity.refused_at if capacity else None,
        cell.is_valid,
        rate.trials,
        rate.search_s,
        rate.sending_s,
        rate.emptying_s,
        tcp.rate.lower_cps if tcp else None,
        tcp.rate.upper_cps if tcp else None,
        tcp.alone.lower_cps if tcp and tcp.alone else None,
        tcp.limited_by_peer if tcp else None,
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
