"""`bench`: benchmarks of this project on this machine, each as a ratio to a peer in the same run."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from csit_utils.commands.tables import TableForm, TableLine, print_table
from csit_utils.report.units import digits3
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported


@dataclass(frozen=True)
class BenchmarkEntry:
    """A benchmark. Its module is imported when it runs, because each has its own requirements."""

    name: str
    module: str
    function: str
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its function with `--quick`."""
    traffic: bool = False
    """Whether it sends packets or deploys cells on this machine, so that nothing may run beside it."""


MEASURES = (
    BenchmarkEntry("generator_pps", "csit_utils.bench.traffic.generator", "measure_pps", {"rounds": 1}, traffic=True),
    BenchmarkEntry(
        "generator_gap_p99", "csit_utils.bench.traffic.generator", "measure_gap_p99", {"rounds": 1}, traffic=True
    ),
    BenchmarkEntry(
        "generator_rate_error",
        "csit_utils.bench.traffic.generator",
        "measure_rate_error",
        {"trial_s": 0.2},
        traffic=True,
    ),
    BenchmarkEntry("counting_cost", "csit_utils.bench.traffic.counting_cost", "measure", {"rounds": 1}, traffic=True),
    BenchmarkEntry("receive_cost", "csit_utils.bench.traffic.receive_cost", "measure", {"rounds": 1}, traffic=True),
    BenchmarkEntry("search_time", "csit_utils.bench.search.search_time", "measure", {"seeds": 4}),
    BenchmarkEntry("search_matrix", "csit_utils.bench.search.matrix", "measure", {"seeds": 1}),
    BenchmarkEntry("search_priors", "csit_utils.bench.search.priors", "measure", {"seeds": 2, "others": False}),
    BenchmarkEntry("bisect", "csit_utils.bench.bisection", "measure", {"bisections": 4}),
    BenchmarkEntry("studies", "csit_utils.bench.studies.known_truth", "measure", {"studies": 1}),
    BenchmarkEntry("trial_overhead", "csit_utils.bench.overhead", "measure", {"most_s": 1.0}, traffic=True),
    BenchmarkEntry("trial_overhead_lab", "csit_utils.bench.overhead", "measure_lab", {"most_s": 1.0}, traffic=True),
    BenchmarkEntry(
        "dataset_import",
        "csit_utils.bench.results.dataset_import",
        "measure",
        {"rounds": 1, "cells": "1x1", "tests": 20, "nights": 3},
    ),
    BenchmarkEntry(
        "report_time", "csit_utils.bench.results.report_time", "measure", {"cells": "1x1", "tests": 20, "nights": 1}
    ),
    BenchmarkEntry("watching_cost", "csit_utils.bench.traffic.watching_cost", "measure", {"rounds": 1}, traffic=True),
    BenchmarkEntry("deploy_10x10", "csit_utils.bench.deploy", "measure", {"rounds": 1, "side": 3}, traffic=True),
)


def bench(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per benchmark and line.")] = False,
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

    Subjects are generator, search, overhead, studies, bisection, import, report and deployment. Each figure is a ratio
    to a peer or to a goal, measured in the same run. A benchmark whose requirements are not met (root, trafgen,
    MLRsearch) is skipped, with the reason. Exit status 1: a benchmark failed.

    \b
    Examples:
    ./csit bench --only search_time --json
    """  # noqa: D301 - \b keeps the lines of the examples apart
    names = [measure.name for measure in MEASURES]
    unknown = [name for name in only or () if name not in names]
    if unknown:
        raise ConfigError(f"no benchmark '{unknown[0]}'; choose from {', '.join(names)}")
    chosen = [row for row in MEASURES if (not only or row.name in only) and traffic in (None, row.traffic)]
    if not chosen:
        raise ConfigError(
            f"no benchmark is left: {', '.join(only or ())} {'sends no' if traffic else 'sends'} packets; leave out "
            f"--{'' if traffic else 'no-'}traffic"
        )
    rows = []
    for measure in chosen:
        row = _run(measure, quick)
        rows.append(row)
        if as_json:
            typer.echo(json.dumps({key: value for key, value in row.items() if key != "table"}))
    if not as_json:
        _print(rows)
    bad = {"failed", "skipped"} if no_skips else {"failed"}
    if any(bad & row.keys() for row in rows):
        raise typer.Exit(1)


def _run(measure: BenchmarkEntry, quick: bool) -> dict[str, Any]:
    """Return the figures of a benchmark, or the reason under `skipped` or `failed`."""
    try:
        found: Mapping[str, Any] = getattr(importlib.import_module(measure.module), measure.function)(
            **(measure.quick if quick else {})
        )
    except Unsupported as error:
        return {"name": measure.name, "skipped": str(error)}
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("csit_utils", "resources"):
            return {"name": measure.name, "failed": f"no module {error.name}"}
        return {"name": measure.name, "skipped": f"the Python package {error.name} is not installed"}
    except (CsitError, OSError) as error:
        return {"name": measure.name, "failed": str(error)}
    return {**found, "name": measure.name, **({"quick": True} if quick else {})}


_HEADS = ("benchmark", "ours", "peer", "ratio", "unit", "note")


def _print(rows: list[dict[str, Any]]) -> None:
    lines = []
    for row in rows:
        reason = next((f"{word}: {row[word]}" for word in ("failed", "skipped") if word in row), None)
        rough = "quick, rough; " if row.get("quick") else ""
        note = rough + " ".join((reason or str(row.get("note") or row.get("detail") or "")).split())
        ours, peer, ratio, unit = (_text(row.get(key)) for key in ("ours", "peer", "ratio", "unit"))
        lines.append(TableLine((row["name"], ours, peer, ratio, unit, note), {}))
    print_table(_HEADS, lines, TableForm.TERMINAL, ("benchmark", "unit", "note"))
    for row in rows:
        heads, details = row.get("table", ((), ()))
        if details:
            typer.echo()
            print_table(
                heads, [TableLine(tuple(map(_text, detail)), {}) for detail in details], TableForm.TERMINAL, heads[:1]
            )


def _text(value: object) -> str:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return digits3(value)
    return "" if value is None else str(value)
