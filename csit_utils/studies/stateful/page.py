"""Page of stateful density: connections by the number of instances, trials of the searches, checks of RFC 9693."""

from collections.abc import Iterator

from csit_utils.report.record_blocks import Column, Plot, Row, Sentences, Table
from csit_utils.report.record_page import record_page
from csit_utils.report.units import count, digits3
from resources.libraries.python.studies.stateful.analysis import DEVIATIONS
from resources.libraries.python.studies.stateful.model.record import Phase, StatefulDensity

_RATE = "rate_lower_cps"
_CHECKED = {"cell": "cell", "subject": "subject", "text": "finding", "met": "met"}


def _setup(found: StatefulDensity) -> Iterator[str]:
    spec = found.spec
    yield (
        f"{spec.kind}, {spec.frame.name}; one UDP packet for each new connection, from the initiator's side; tables "
        f"are emptied before every trial and counted after it. Tables are filled at {100 * spec.share:.0f} % of the "
        "rate for tear-downs and capacity."
    )


def _by_instances(found: StatefulDensity) -> Iterator[Row]:
    for cell in sorted(found.cells, key=lambda cell: (cell.nodes, cell.instances)):
        for share, parts in (("in sum", 1), ("per instance", cell.instances)):
            yield {
                "share": share,
                "nodes": f"{cell.nodes} NF{'s' * (cell.nodes > 1)} per instance",
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


def _checks(found: StatefulDensity) -> Iterator[Row]:
    for cell in found.cells:
        for check in cell.checks:
            met = "yes" if check.met else "no"
            yield {"cell": cell.name, "subject": check.subject, "text": check.text, "met": met, "failed": not check.met}
    for subject, text in DEVIATIONS:
        yield {"cell": "all", "subject": subject, "text": text, "met": "differs"}


def _remarks(found: StatefulDensity) -> Iterator[str]:
    failed = sum(not check.met for cell in found.cells for check in cell.checks)
    yield f"Requirements of RFC 9693: {f'{failed} not met' if failed else 'all met'}"
    for cell in found.cells:
        rate = cell.rate
        emptied = f", between which tables were emptied in {digits3(rate.emptying_s)} s" * bool(rate.emptying_s)
        buckets = next(iter(cell.tables.values())).buckets
        with_buckets = f", with {count(buckets)} buckets" if buckets else ""
        yield (
            f"{cell.name}: the search took {digits3(rate.search_s)} s with {rate.trials} trials of "
            f"{digits3(rate.sending_s)} s in total{emptied}; the deletion of empty tables took "
            f"{digits3(1000 * cell.empty_s)} ms{with_buckets}"
        )
        if rate.remark:
            yield f"{cell.name}, rate: {rate.remark}"
        if cell.capacity and cell.capacity.remark:
            yield f"{cell.name}, capacity: {cell.capacity.remark}"
        yield from (f"{cell.name}: {note}" for note in cell.notes)
    yield from (f"{name} was skipped: {reason}" for name, reason in found.skipped.items())


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
                Column(_RATE, "connections/s", count, explain=("connection-rate", "the connection establishment rate")),
                Column("rate_upper_cps", "failed at", count),
                Column("rate_instance_cps", "fewest of an instance", count),
                Column("tear_down_cps", "tear-downs/s", count, explain=("tear-down-rate", "the tear-down rate")),
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
