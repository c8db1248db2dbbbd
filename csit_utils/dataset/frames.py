"""Tables for pandas and for CSV files, made from flat rows."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pandas as pd

from csit_utils.dataset.flatten import (
    cost_rows,
    flow_rows,
    hop_rows,
    instance_rows,
    latency_rows,
    rows_of_tests,
    thread_rows,
    trial_rows,
)
from csit_utils.dataset.items import Dataset
from csit_utils.dataset.rows import (
    LISTS,
    CostRow,
    FlowRow,
    HopRow,
    InstanceRow,
    LatencyRow,
    TestRow,
    ThreadRow,
    TrialRow,
)
from resources.libraries.python.csv_tables import harmless
from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def _frame(
    kind: "type[DataclassInstance]", rows: "Iterable[DataclassInstance]", without: Collection[str] = ()
) -> pd.DataFrame:
    names = [column.name for column in fields(kind) if column.name not in without]
    frame = pd.DataFrame((asdict(row) for row in rows), columns=names)
    hints = get_type_hints(kind)
    return frame.astype({name: _dtype(hints[name]) for name in frame.columns})


def _dtype(hint: object) -> str:
    """Nullable types: an unknown count stays unknown instead of turning its column into floats with NaN."""
    kinds = set(get_args(hint) or (hint,)) - {type(None)}
    return {str: "string", int: "Int64", float: "float64", bool: "boolean"}[kinds.pop()]


def frame_of_tests(dataset: Dataset) -> pd.DataFrame:
    """One row per test, without the columns that are tables."""
    return _frame(TestRow, rows_of_tests(dataset), LISTS)


def frame_of_latency(dataset: Dataset) -> pd.DataFrame:
    """One row per test, load, instance and direction."""
    return _frame(LatencyRow, latency_rows(dataset))


def frame_of_trials(dataset: Dataset) -> pd.DataFrame:
    """One row per test and trial."""
    return _frame(TrialRow, trial_rows(dataset))


def frame_of_flows(dataset: Dataset) -> pd.DataFrame:
    """One row per test, trial, instance and direction."""
    return _frame(FlowRow, flow_rows(dataset))


def frame_of_instances(dataset: Dataset) -> pd.DataFrame:
    """One row per test, throughput figure, instance and direction."""
    return _frame(InstanceRow, instance_rows(dataset))


def frame_of_hops(dataset: Dataset) -> pd.DataFrame:
    """One row per test, instance, direction and pair of hops between which packets were lost."""
    return _frame(HopRow, hop_rows(dataset))


def frame_of_threads(dataset: Dataset) -> pd.DataFrame:
    """One row per test and data thread."""
    return _frame(ThreadRow, thread_rows(dataset))


def frame_of_costs(dataset: Dataset) -> pd.DataFrame:
    """One row per test, thread and node that has a cost."""
    return _frame(CostRow, cost_rows(dataset))


def write_csv(dataset: Dataset, directory: Path) -> tuple[Path, ...]:
    """Write tests, latency, trials, flows, instances, hops, threads and costs, a .csv each, with raw numbers.

    Histograms are left out.

    Returns:
        The files.

    Raises:
        CsitError: One cannot be written.
    """
    frames = {
        "tests": frame_of_tests(dataset),
        "latency": frame_of_latency(dataset).drop(columns="histogram"),
        "trials": frame_of_trials(dataset),
        "flows": frame_of_flows(dataset),
        "instances": frame_of_instances(dataset),
        "hops": frame_of_hops(dataset),
        "threads": frame_of_threads(dataset),
        "costs": frame_of_costs(dataset),
    }
    options: dict[str, Any] = {"index": False, "lineterminator": "\n"}
    for name, frame in frames.items():
        texts = frame.select_dtypes(exclude=["number", "bool"])
        safe: dict[str, Any] = {str(column): texts[column].map(harmless) for column in texts}
        write_whole(directory / f"{name}.csv", frame.assign(**safe).to_csv(None, **options))
    return tuple(directory / f"{name}.csv" for name in frames)
