"""Queries of a history of any size, for DuckDB and for Spark.

They are Ibis expressions over the table of tests, the same for both engines. A figure is one metric of
one test; rates are in packets per second, aggregates of all instances and both directions.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import ibis
from ibis import Deferred, _
from ibis.expr.types import Table

from csit_utils.dataset.store.columns import TESTS as TEST_COLUMNS
from csit_utils.dataset.store.layout import TESTS, Layout
from resources.libraries.python.model.bounds import MOST_QUERY_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METRICS = {"NDR": "ndr_lower_pps", "PDR": "pdr_lower_pps", "SOAK": "soak_lower_pps", "MRR": "mrr_pps", "ORR": "orr_pps"}
"""Columns by name of the metric."""
CELL = (
    "origin", "simulated", "testbed", "service_type", "nf_chains", "nf_nodes", "nf_size", "vs_dtc", "frame", "goals",
)  # fmt: skip
"""Columns that must be equal in comparable figures."""
_RUN = ("run", "label")


def on_duckdb(layout: Layout) -> Table:
    """Return the tests of a dataset as a table of DuckDB in this process.

    Raises:
        ConfigError: The dataset is damaged.
    """
    if not (paths := _paths(layout)):
        return _no_tests()
    # It would take four fifths of the memory, and write what does not fit in it into the present folder.
    connection = ibis.duckdb.connect(memory_limit=f"{MOST_QUERY_BYTES}B", temp_directory="")
    connection.con.execute("SET allowed_paths = ?", [paths])
    connection.con.execute("SET enable_external_access = false; SET lock_configuration = true")
    return _unique(connection.read_parquet(paths, hive_partitioning=False, union_by_name=True))


def on_spark(layout: Layout, session: "SparkSession") -> Table:
    """Return the tests of a dataset as a table of a Spark cluster that has access to its folder.

    Raises:
        ConfigError: The dataset is damaged.
    """
    if not (paths := _paths(layout)):
        return _no_tests()
    frame = session.read.option("mergeSchema", "true").parquet(*paths)
    frame.createOrReplaceTempView(TESTS)
    return _unique(ibis.pyspark.connect(session).table(TESTS))


def _paths(layout: Layout) -> list[str]:
    return [str(layout.path(TESTS, part)) for each in layout.imports() for part in each.parts]


def _no_tests() -> Table:
    """The empty table of a dataset without density tests."""
    return ibis.memtable(TEST_COLUMNS.empty_table())


def _unique(tests: Table) -> Table:
    """Count a test imported from different files once."""
    order = ibis.window(group_by="anchor", order_by=["run", "source"])
    return tests.mutate(_copy=ibis.row_number().over(order)).filter(_["_copy"] == 0).drop("_copy")


def figures(tests: Table) -> Table:
    """Return one row per test and metric: the cell, the run, `started_at`, `anchor`, `metric`, `value_pps`."""
    keys = [*CELL, *_RUN, "started_at", "anchor"]
    every = [
        tests.filter(tests[column].notnull()).select(*keys, metric=ibis.literal(name), value_pps=tests[column])
        for name, column in METRICS.items()
    ]
    return ibis.union(*every)


def by_cell_and_run(tests: Table) -> Table:
    """Return per cell, metric and run: `count`, `mean_pps`, `stdev_pps` (None for one figure), `min_pps`, `max_pps`."""
    return figures(tests).group_by([*CELL, *_RUN, "metric"]).aggregate(**_figures_of(_.value_pps))


_FIGURES = ("count", "mean_pps", "stdev_pps", "min_pps", "max_pps")


def _figures_of(value: Deferred) -> dict[str, Any]:
    return {
        "count": value.count(),
        "mean_pps": value.mean(),
        # The deviation of one figure is NaN in Spark and NULL in DuckDB: unknown.
        "stdev_pps": ibis.ifelse(value.count() > 1, value.std(how="sample"), ibis.null(float)),
        "min_pps": value.min(),
        "max_pps": value.max(),
    }


def latest_runs(tests: Table) -> Table:
    """Return the latest run of each testbed by its first test: `origin`, `testbed`, `run`, `label`, `started_at`."""
    runs = (
        tests.filter(_.recorded, _.started_at.notnull())  # tests without a record have no testbed
        .group_by(["origin", "testbed", *_RUN])
        .aggregate(started_at=_.started_at.min())
    )
    order = ibis.window(group_by=["origin", "testbed"], order_by=[ibis.desc("started_at"), "run"])
    return runs.mutate(_place=ibis.row_number().over(order)).filter(_["_place"] == 0).drop("_place")


def trend(tests: Table, cell: Mapping[str, Any], metric: str) -> Table:
    """Return the figures of one metric in the order of time.

    Args:
        tests: All tests.
        cell: Values of some or all columns of `CELL`.
        metric: One of `METRICS`.
    """
    chosen = figures(tests).filter(_.metric == metric, *(_[name] == value for name, value in cell.items()))
    return chosen.order_by(["started_at", "anchor"])


def failures(tests: Table) -> Table:
    """Return tests that did not pass by testbed, status, message, verdicts: `count`, times `first` and `last`."""
    return (
        tests.filter(_.status != "PASS")
        .group_by(["testbed", "status", "message", "verdicts"])
        .aggregate(count=_.count(), first=_.started_at.min(), last=_.started_at.max())
    )


def comparison(tests: Table, before: Collection[str], after: Collection[str]) -> Table:
    """Compare two selections of runs per cell and metric; their testbeds may differ.

    Args:
        tests: All tests.
        before: Runs.
        after: Runs to compare with them.

    Returns:
        Count, mean, deviation, minimum and maximum of each, with suffixes `_before` and `_after`, for cells in both.
    """
    keys = [*(name for name in CELL if name != "testbed"), "metric"]
    rows = figures(tests)
    sides = [
        rows.filter(_.run.isin(list(runs))).group_by(keys).aggregate(**_figures_of(_.value_pps))
        for runs in (before, after)
    ]
    names = [
        side.rename({f"{name}_{when}": name for name in _FIGURES})
        for side, when in zip(sides, ("before", "after"), strict=True)
    ]
    return names[0].inner_join(names[1], keys)
