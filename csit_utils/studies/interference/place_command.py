"""`place`: interference of co-located network functions, and advised placements."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csit_utils.commands.results.inputs import INPUTS, opened, report_problems, without
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.items import Recorded
from csit_utils.report.units import rate
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.interference.analysis.findings import lowest, pairs
from resources.libraries.python.studies.interference.analysis.sentences import (
    advice_in_words,
    cell_in_words,
    most_sensitive,
    percent,
    summary_in_words,
)
from resources.libraries.python.studies.interference.analysis.study import advised
from resources.libraries.python.studies.interference.analysis.tables import MatrixSlice, by_frame_and_load, matrices
from resources.libraries.python.studies.interference.model import (
    Interference,
    InterferenceRecord,
    Normalized,
    PairsFindings,
    Resource,
)

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

_HEADS = ("target", "beside", "normalized", "degradation", "sensitivity of target", "runs")
_LEFT = ("target", "beside")
_SWEEP_HEADS = ("frame", "load, one way", "degradation", "most sensitive", "lowest normalized")


def place(
    inputs: INPUTS,
    server: Annotated[
        list[str] | None,
        typer.Option(help="NFs already on a server, joined by plus signs; `-` for an empty server.", metavar="NF+NF"),
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option(metavar="NF", help="NF to place; default: all that are on no server.")
    ] = None,
    study: Annotated[str, typer.Option(metavar="NAME", help="Name of the study, if there are several.")] = "",
    frame: Annotated[str, typer.Option(help="Frame size, if the study has several.")] = "",
    sweep: Annotated[bool, typer.Option("--sweep", help="Show degradation by frame size and load instead.")] = False,
    guaranteed: Annotated[
        bool, typer.Option("--guaranteed", help="Show the matrix measured with guaranteed network I/O.")
    ] = False,
    guaranteed_cpu: Annotated[
        bool, typer.Option("--guaranteed-cpu", help="Show the matrix measured with guaranteed CPU time.")
    ] = False,
    form: FORMAT = TableForm.TABLE,
) -> None:
    """Advise on placement by measured interference.

    The table shows each network function beside each other one: throughput over its baseline, with the 95 % confidence
    interval. Sensitivity is the mean loss of a row; the most sensitive NF, and those that cannot be distinguished from
    it, are red. The capacity of a placement is the sum of normalized throughputs. Three and more co-located NFs without
    a measurement are predicted from pairs; the advice states the error of that, and `verify: 3` in a specification
    measures the best placements.

    \b
    All on two servers:
      ./csit place results
    One more on servers in use:
      ./csit place results --server gateway+nat --server monitor --add proxy
    On three empty servers:
      ./csit place results --server - --server - --server -
    Effect of packet size and load:
      ./csit place results --sweep
    """  # noqa: D301 - \b keeps the lines of the examples apart
    found = opened(inputs).contents()
    studies = _chosen(found, inputs, study, frame)
    if sweep:
        points = by_frame_and_load([each for _, each in studies])
        print_table(_SWEEP_HEADS, [_point(point) for point in points], form, ("frame", "most sensitive"))
        report_problems(found.problems)
        return
    # The latest: a repeated measurement replaces the earlier one.
    item, measured = max(studies, key=lambda row: row[0].record.started_at)
    if server or add:
        measured = advised(measured, _servers(server or ["-", "-"]), tuple(add or ()))
    if guaranteed and guaranteed_cpu:
        raise ConfigError("--guaranteed and --guaranteed-cpu: choose one of them")
    chosen = Resource.NETWORK if guaranteed else Resource.CPU if guaranteed_cpu else None
    matrix, findings = dict(matrices(measured))[chosen], measured.findings
    if chosen and not matrix:
        raise ConfigError(f"{measured.spec.name} was not measured with guaranteed {chosen.words}")
    heading = f"{measured.spec.name}{' (simulated)' if item.record.simulated else ''}:"
    for sentence in (heading, *advice_in_words(measured), *summary_in_words(measured)):
        print_sentence(sentence, err=form is not TableForm.TABLE)
    print_table(_HEADS, [_line(row, findings) for row in matrix], form, _LEFT)
    if form is TableForm.JSON:
        print_table((), list(_advice(measured)), form)
    report_problems(found.problems)


def _chosen(contents: "Stored", inputs: Sequence[Path], name: str, frame: str) -> list[tuple[Recorded, Interference]]:
    """Return all studies of one name and, if given, one frame size."""
    found = [
        (item, item.record.interference)
        for item in contents.characterizations
        if isinstance(item.record, InterferenceRecord) and item.record.interference
    ]
    if not found:
        raise without(inputs, contents.problems, "contains no interference study")
    names = dict.fromkeys(each.spec.name for _, each in found)
    if name and name not in names:
        raise ConfigError(f"--study {name}: no such study; choose from {', '.join(sorted(names))}")
    if not name and len(names) > 1:
        raise ConfigError(f"the results have {len(names)} studies; choose one by --study: {', '.join(names)}")
    found = [row for row in found if not name or row[1].spec.name == name]
    frames = dict.fromkeys(each.spec.frame.name for _, each in found)
    if frame and frame not in frames:
        raise ConfigError(f"--frame {frame}: not measured; choose from {', '.join(frames)}")
    return [row for row in found if not frame or row[1].spec.frame.name == frame]


def _servers(texts: Sequence[str]) -> list[tuple[str, ...]]:
    return [() if text == "-" else tuple(name.strip() for name in text.split("+") if name.strip()) for text in texts]


def _line(row: Normalized, findings: PairsFindings | None) -> TableLine:
    """With the mean loss of its target, without a guarantee."""
    means = findings.sensitivity if findings else ()
    mean = next((each for each in means if each.name == row.target), None)
    texts = (
        row.target,
        " + ".join(row.against),
        cell_in_words(row),
        f"{100 * (1 - row.mean):.1f} %",
        "" if mean is None else percent(mean.lost),
        str(row.samples),
    )
    raw = {
        "object": "pair",
        **row.model_dump(mode="json"),
        "sensitivity": mean.lost.value if mean else None,
        "sensitivity_low": mean.lost.low if mean else None,
        "sensitivity_high": mean.lost.high if mean else None,
        "sensitivity_ranks": mean.ranks if mean else None,
    }
    ends = lowest(means)
    style = "red" if len(ends) < len(means) and row.target in {each.name for each in ends} else ""
    return TableLine(texts, raw, style)


def _point(point: MatrixSlice) -> TableLine:
    findings, least = point.findings, min(row.mean for row in pairs(point.matrix))
    names = most_sensitive(findings) if findings else ()
    lost = findings.degradation if findings else None
    texts = (
        point.frame.name,
        rate(point.load_pps),
        "" if lost is None else percent(lost),
        ", ".join(names) or "-",
        f"{least:.3f}",
    )
    raw = {
        "object": "point",
        "frame": point.frame.name,
        "load_pps": point.load_pps,
        "degradation": lost.value if lost else None,
        "degradation_low": lost.low if lost else None,
        "degradation_high": lost.high if lost else None,
        "most_sensitive": list(names),
        "lowest": least,
    }
    return TableLine(texts, raw)


def _advice(measured: Interference) -> Iterator[TableLine]:
    for advice in measured.advice:
        yield TableLine((), {"object": "advice", **advice.model_dump(mode="json")})
