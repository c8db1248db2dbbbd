"""`bench`: what this software promises, measured on this machine against a peer in the same run."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from csit_utils.commands.tables import Form, TableLine, print_table
from csit_utils.report.units import digits3
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported


@dataclass(frozen=True)
class BenchmarkEntry:
    """Where a measure is found. It is imported when it runs: each has needs of its own."""

    name: str
    module: str
    function: str
    quick: Mapping[str, Any] = field(default_factory=dict)
    """What its function is given when only its working is to be shown."""


MEASURES = (
    BenchmarkEntry("generator_pps", "csit_utils.bench.generator", "measure_pps", {"rounds": 1}),
    BenchmarkEntry("generator_gap_p99", "csit_utils.bench.gaps", "measure_gap_p99", {"rounds": 1}),
    BenchmarkEntry("generator_rate_error", "csit_utils.bench.generator", "measure_rate_error", {"trial_s": 0.2}),
    BenchmarkEntry("search_time", "csit_utils.bench.search", "measure", {"seeds": 4}),
    BenchmarkEntry("trend_false_alarms", "csit_utils.bench.detection", "measure", {"series": 20}),
    BenchmarkEntry("studies", "csit_utils.bench.studies", "measure", {"studies": 1}),
    BenchmarkEntry("trial_overhead", "csit_utils.bench.overhead", "measure", {"most_s": 1.0}),
    BenchmarkEntry("trial_overhead_lab", "csit_utils.bench.overhead", "measure_lab", {"most_s": 1.0}),
    BenchmarkEntry(
        "dataset_import",
        "csit_utils.bench.dataset_import",
        "measure",
        {"rounds": 1, "cells": "1x1", "tests": 20, "nights": 3},
    ),
    BenchmarkEntry("page_open", "csit_utils.bench.page_open", "measure", {"rounds": 1, "nights": 4, "cells": "1x1"}),
    BenchmarkEntry("trace_parse", "csit_utils.bench.trace_parse", "measure", {"rounds": 1, "trial_s": 0.1}),
    BenchmarkEntry("watching_cost", "csit_utils.bench.watching_cost", "measure", {"rounds": 1}),
    BenchmarkEntry("deploy_10x10", "csit_utils.bench.deploy", "measure", {"rounds": 1, "side": 3}),
)


def bench(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per measure and line.")] = False,
    no_skips: Annotated[bool, typer.Option("--no-skips", help="A measure that is skipped counts as failed.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Show only that each measure works; figures are rough.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Run this measure only; may be given again.")] = None,
) -> None:
    """Measure generator, search, overhead and deployment, each as a ratio to a peer in the same run.

    A measure whose needs are not met here (root, trafgen, MLRsearch) says so and is skipped. Status 1: one failed.

    Example: ./csit bench --only search_time --json
    """
    names = [measure.name for measure in MEASURES]
    unknown = [name for name in only or () if name not in names]
    if unknown:
        raise ConfigError(f"there is no measure '{unknown[0]}'; there are {', '.join(names)}")
    rows = []
    for measure in MEASURES:
        if only and measure.name not in only:
            continue
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
    """A measure's figures; or why there are none under `skipped` or `failed`."""
    try:
        found: Mapping[str, Any] = getattr(importlib.import_module(measure.module), measure.function)(
            **(measure.quick if quick else {})
        )
    except Unsupported as error:
        return {"name": measure.name, "skipped": str(error)}
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("csit_utils", "resources"):
            return {"name": measure.name, "failed": f"there is no {error.name}"}
        return {"name": measure.name, "skipped": f"needs the Python module {error.name}, which is not installed"}
    except (CsitError, OSError) as error:
        return {"name": measure.name, "failed": str(error)}
    return {**found, "name": measure.name, **({"quick": True} if quick else {})}


_HEADS = ("measure", "ours", "peer", "ratio", "unit", "note")


def _print(rows: list[dict[str, Any]]) -> None:
    lines = []
    for row in rows:
        reason = next((f"{word}: {row[word]}" for word in ("failed", "skipped") if word in row), None)
        rough = "quick, so rough; " if row.get("quick") else ""
        note = rough + " ".join((reason or str(row.get("note") or row.get("detail") or "")).split())
        ours, peer, ratio, unit = (_text(row.get(key)) for key in ("ours", "peer", "ratio", "unit"))
        lines.append(TableLine((row["name"], ours, peer, ratio, unit, note), {}))
    print_table(_HEADS, lines, Form.TERMINAL, ("measure", "unit", "note"))
    for row in rows:
        heads, details = row.get("table", ((), ()))
        if details:
            typer.echo()
            print_table(
                heads, [TableLine(tuple(map(_text, detail)), {}) for detail in details], Form.TERMINAL, heads[:1]
            )


def _text(value: object) -> str:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return digits3(value)
    return "" if value is None else str(value)
