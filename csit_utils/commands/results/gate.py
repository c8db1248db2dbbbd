"""`gate`: an exit status for a CI pipeline."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from xml.etree.ElementTree import Element, SubElement, tostring

import typer

from csit_utils.bisection.spec import write_steps
from csit_utils.commands.results.inputs import MAX_TESTS
from csit_utils.commands.results.selections import COMPARED, DATA, MAX_COMPARED, SIDE_HELP, DatasetReader
from csit_utils.commands.tables import print_sentence
from csit_utils.report.units import amount, percent
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.quantities import counted
from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    from csit_utils.analysis.cells import CellMetric
    from csit_utils.analysis.comparisons.comparison import Change, Decision
    from csit_utils.analysis.grouping import Series
    from csit_utils.dataset.rows import TestRow

_SHOWN = 10
"""Reasons that are listed."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def gate(
    baseline: Annotated[
        str, typer.Argument(help=f"{SIDE_HELP} Or before=N: the last N runs in --data before CANDIDATE on its testbed.")
    ],
    candidate: Annotated[str, typer.Argument(help="Files, folders or a selection, as for BASELINE.")],
    data: DATA = None,
    tolerance: Annotated[str, typer.Option(metavar="SHARE", help="Tolerated change for the worse, such as 2%.")] = "0%",
    require: Annotated[int, typer.Option(min=0, help="Minimum number of cells with a result on both sides.")] = 1,
    junit: Annotated[Path | None, typer.Option(help="Also write a JUnit XML file, for Jenkins and others.")] = None,
    steps: Annotated[
        Path | None,
        typer.Option(help="Also write the cells that fell since the last run of BASELINE, for ./csit bisect --step."),
    ] = None,
    max_tests: MAX_TESTS = MAX_COMPARED,
) -> None:
    """Fail if a cell of CANDIDATE regressed against BASELINE.

    A cell fails if it is significantly worse, by more than the tolerance. Exit status: 0 no regression, 1 a
    regression or too few judged cells (--require), 2 invalid input. A single baseline run is judged by the spread of
    changes over its matrix; several nights as baseline reveal smaller changes. Cells without a figure on either side
    cannot be judged: they are counted, with the reason. Of a cell with an acknowledged step (./csit acknowledge), the
    baseline has only the runs since then.

    \b
    Examples:
    ./csit gate baseline/ results/output.xml --tolerance 2% --junit gate.xml
    ./csit gate 'night=2026-11-01..2026-11-14' night=2026-11-15 --require 50
    ./csit gate before=14 results/output.xml --data history --require 0
    """  # noqa: D301 - \b keeps the lines of the examples apart
    allowed, count = parse_tolerance(tolerance), parse_before(baseline)
    from csit_utils.analysis.comparisons.comparison import compare, decide  # noqa: PLC0415 - scipy costs time of every --help

    with DatasetReader(data, COMPARED, max_tests) as reader:
        after = reader.rows(candidate)
        before = reader.rows(baseline) if count is None else reader.before(baseline, after, count)
        known = reader.acknowledged()
        found = decide(compare(before, after, acknowledged=known), after, allowed, known)
        if junit is not None:
            write_whole(junit, junit_xml(found))
        if steps is not None:
            write_steps(steps, [_called(each) for each in found.fallen if _is_new(each)])
        lines, fell = _report(found, tolerance, require), len(found.fallen)
        for line in (*lines[:fell], *_why(found, reader), *lines[fell:]):
            print_sentence(line)
        if reader.report_problems():
            raise typer.Exit(2)
        if not found.judged:
            print_sentence("warning: no cell was judged; this gate says nothing about the candidate", err=True)
        if found.fallen or found.judged < require:
            raise typer.Exit(1)


def _why(found: "Decision", reader: DatasetReader) -> Iterator[str]:
    """Yield the functions that have grown in cells that fell, where their call stacks were sampled."""
    from csit_utils.report.stack_sides import cells_with_stacks, grown  # noqa: PLC0415 - as above

    named = set()
    for fallen in found.fallen:
        before, after = ([figure.row for figure in side.figures] for side in (fallen.a, fallen.b))
        for cell in cells_with_stacks(before, after, reader.record):
            if cell.name not in named:
                named.add(cell.name)
                yield from (f"why\t{cell.name}\t{sentence}" for sentence in grown(cell))


def _called(fallen: "Change") -> tuple["CellMetric", float, "TestRow", "TestRow"]:
    from csit_utils.analysis.cells import CellMetric  # noqa: PLC0415 - as above

    cell = CellMetric(fallen.a.series, fallen.dimensions, fallen.metric)
    return cell, fallen.change, fallen.a.figures[-1].row, fallen.b.figures[0].row


def _is_new(fallen: "Change") -> bool:
    """Return whether the last run of the baseline was nearer to the baseline's level than to the candidate's."""
    last = fallen.a.figures[-1].value_pps
    return abs(last - fallen.a.mean_pps) < abs(last - fallen.b.mean_pps)


def parse_before(text: str) -> int | None:
    """Return the number of runs of `before=14`; None for another kind of baseline.

    Raises:
        ConfigError: Not a number from 1 to 9999.
    """
    key, equals, value = text.partition("=")
    if key.strip() != "before" or not equals:
        return None
    if not re.fullmatch(r"[1-9]\d{0,3}", value.strip()):
        raise ConfigError(f"{text}: expected before=N with N at least 1, such as before=14")
    return int(value)


def parse_tolerance(text: str) -> float:
    """Return a tolerance as a share in [0, 1), from `2%` or `0.02`.

    Raises:
        ConfigError: The text has another form, or its value is out of range.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value < 1:
        raise ConfigError(f"--tolerance '{text}': expected a share below 100 %, such as 2% or 0.02")
    return value


def _report(found: "Decision", tolerance: str, require: int) -> Sequence[str]:
    lines = [
        f"fell\t{each.name}\t{percent(each.change, signed=True)}\t"
        f"{percent(each.low, signed=True)} to {percent(each.high, signed=True)}"
        for each in found.fallen
    ]
    reasons: dict[str, list[str]] = {}
    for unjudged in found.unjudged:
        reasons.setdefault(unjudged.reason, []).append(unjudged.name)
    lines += [
        f"not judged\t{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}\t{reason}"
        for reason, names in list(reasons.items())[:_SHOWN]
    ]
    short = f", {require} required" if found.judged < require else ""
    judged = counted(found.judged, "cell")
    lines.append(
        f"{judged} judged{short}: {len(found.fallen)} with a significant regression above {tolerance}, "
        f"{len(found.kept)} without; {len(found.unjudged)} could not be judged"
    )
    return lines


def junit_xml(found: "Decision") -> bytes:
    """Return JUnit XML with one test case per cell, in classes by testbed and service.

    Failed if it regressed, an error if the candidate's test failed, else skipped if it could not be judged.
    """
    cases = len(found.fallen) + len(found.kept) + len(found.unjudged)
    errors = sum(each.failed for each in found.unjudged)
    suite = Element(
        "testsuite", name="gate", tests=str(cases), failures=str(len(found.fallen)), errors=str(errors),
        skipped=str(len(found.unjudged) - errors),
    )  # fmt: skip
    for change in found.fallen:
        SubElement(
            _case(suite, change.b.series, change.name), "failure", type="regression", message=_clean(_words(change))
        )
    for change in found.kept:
        _case(suite, change.b.series, change.name)
    for unjudged in found.unjudged:
        kind = "error" if unjudged.failed else "skipped"
        SubElement(_case(suite, unjudged.series, unjudged.name), kind, message=_clean(unjudged.reason))
    return bytes(tostring(suite, encoding="utf-8", xml_declaration=True))


def _case(suite: Element, series: "Series", name: str) -> Element:
    group = f"{series.system.testbed}.{series.service_type}"
    return SubElement(suite, "testcase", classname=_clean(group), name=_clean(name))


def _words(change: "Change") -> str:
    interval = f"{percent(change.low, signed=True)} to {percent(change.high, signed=True)}"
    return (
        f"{amount(change.metric, change.a.series, change.a.mean_pps)} changed to "
        f"{amount(change.metric, change.b.series, change.b.mean_pps)}: {percent(change.change, signed=True)}, "
        f"95 % interval {interval}; {change.a.runs} and {change.b.runs} runs"
    )


def _clean(text: str) -> str:
    """Remove characters that XML does not permit."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
