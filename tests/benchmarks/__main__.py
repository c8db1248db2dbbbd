"""`./csit bench`: benchmarks on this machine, each as a ratio to a peer in the same run, or to a goal."""

import importlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_table
from csit_utils.report.units import digits3
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported


@dataclass(frozen=True)
class BenchmarkEntry:
    """A benchmark. Its module is imported when it runs, because each has its own requirements.

    Where these are not met it raises Unsupported, and another CsitError where it fails.
    """

    module: str
    function: str = "measure"
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its function with `--quick`."""
    traffic: bool = False
    """Whether it sends packets or deploys cells on this machine, so that nothing may run beside it."""


BENCHMARKS: Mapping[str, BenchmarkEntry] = {
    "generator_pps": BenchmarkEntry("generator", "measure_pps", {"rounds": 1}, traffic=True),
    "generator_gap_p99": BenchmarkEntry("generator", "measure_gap_p99", {"rounds": 1}, traffic=True),
    "generator_rate_error": BenchmarkEntry("generator", "measure_rate_error", {"trial_s": 0.2}, traffic=True),
    "generator_emulated": BenchmarkEntry("emulated_generator", quick={"rounds": 1}, traffic=True),
    "search_time": BenchmarkEntry("search_time", quick={"seeds": 4}),
    "trial_overhead": BenchmarkEntry("overhead", quick={"most_s": 1.0}, traffic=True),
    "trial_overhead_lab": BenchmarkEntry("overhead", "measure_lab", {"most_s": 1.0}, traffic=True),
    "reading_costs": BenchmarkEntry("overhead", "measure_reading", traffic=True),
    "dataset_import": BenchmarkEntry(
        "results", "measure_import", {"rounds": 1, "cells": "1x1", "tests": 20, "nights": 3}
    ),
    "report_time": BenchmarkEntry("results", "measure_report", {"cells": "1x1", "tests": 20, "nights": 1}),
    "watching_cost": BenchmarkEntry("watching", quick={"rounds": 1}, traffic=True),
    "deploy_10x10": BenchmarkEntry("deploy", quick={"rounds": 1, "side": 3}, traffic=True),
}
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def bench(
    form: TABLE_OR_JSON = TableForm.TABLE,
    no_skips: Annotated[bool, typer.Option("--no-skips", help="Count a skipped benchmark as failed.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only check that each benchmark works; figures are rough.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Run only this benchmark.")] = None,
    traffic: Annotated[
        bool | None,
        typer.Option(
            "--traffic/--no-traffic",
            help="Run only benchmarks that send packets or deploy cells, or only the others.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run benchmarks of this tool against peers.

    Subjects are generator, search, overhead of trials, import, report, watching and deployment. Each figure is a ratio
    to a peer or to a goal, measured in the same run. A benchmark whose requirements are not met (root, trafgen,
    MLRsearch) is skipped, with the reason. Exit status 1: a benchmark failed.

    \b
    Example:
    ./csit bench --only search_time --format json
    """  # noqa: D301 - \b keeps the lines of the example apart
    if unknown := [name for name in only or () if name not in BENCHMARKS]:
        raise ConfigError(f"no benchmark '{unknown[0]}'; choose from {', '.join(BENCHMARKS)}")
    chosen = {
        name: entry
        for name, entry in BENCHMARKS.items()
        if (not only or name in only) and traffic in (None, entry.traffic)
    }
    if not chosen:
        raise ConfigError(
            f"no benchmark is left: {', '.join(only or ())} {'sends no' if traffic else 'sends'} packets; leave out "
            f"--{'' if traffic else 'no-'}traffic"
        )
    rows = []
    for name, entry in chosen.items():
        rows.append({"name": name, **_run(entry, quick)})
        if form is TableForm.JSON:
            typer.echo(json.dumps({key: value for key, value in rows[-1].items() if key != "table"}))
    if form is TableForm.TABLE:
        _print(rows)
    bad = {"failed", "skipped"} if no_skips else {"failed"}
    if any(bad & row.keys() for row in rows):
        raise typer.Exit(1)


def _run(entry: BenchmarkEntry, quick: bool) -> dict[str, Any]:
    """Return the figures of a benchmark, or the reason under `skipped` or `failed`."""
    try:
        module = importlib.import_module(f"tests.benchmarks.{entry.module}")
        found: Mapping[str, Any] = getattr(module, entry.function)(**(entry.quick if quick else {}))
    except Unsupported as error:
        return {"skipped": str(error)}
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("csit_utils", "resources", "tests"):
            return {"failed": f"no module {error.name}"}
        return {"skipped": f"the Python package {error.name} is not installed"}
    except (CsitError, OSError) as error:
        return {"failed": str(error)}
    return {**found, **({"quick": True} if quick else {})}


def _print(rows: list[dict[str, Any]]) -> None:
    lines = []
    for row in rows:
        reason = next((f"{word}: {row[word]}" for word in ("failed", "skipped") if word in row), None)
        note = " ".join(("quick, rough; " * row.get("quick", False) + (reason or row["note"])).split())
        lines.append((*map(row.get, ("name", "ours", "peer", "ratio", "unit")), note))
    _print_table(("benchmark", "ours", "peer", "ratio", "unit", "note"), lines, "benchmark", "unit", "note")
    for heads, details in (row["table"] for row in rows if "table" in row):
        typer.echo()
        _print_table(heads, details, heads[0])


def _print_table(heads: tuple[str, ...], rows: Iterable[Iterable[object]], *left: str) -> None:
    lines = [TableLine(tuple(map(_text, row)), {}) for row in rows]
    print_table(heads, lines, TableForm.TABLE, left)


def _text(value: object) -> str:
    return digits3(value) if isinstance(value, float | int) else str(value or "")


if __name__ == "__main__":
    try:
        app(prog_name="csit bench")
    except CsitError as error:
        sys.exit(f"csit: {error}")
