"""`twin`: whether two testbeds give the same figures, and the facts by which they differ."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import exp, inf, log, sqrt
from pathlib import Path
from statistics import fmean, variance
from typing import TYPE_CHECKING, Annotated

import typer
from scipy.stats import t as student

from csit_utils.analysis.comparisons.comparability import Difference, environment_differences
from csit_utils.commands.results.inputs import opened
from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.rows import TestRow
from csit_utils.report.units import percent, rate
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.bounds import HIGHEST_PPS
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.quantities import counted
from resources.libraries.python.recording.writer import check_folder
from resources.libraries.python.studies.density.planning.selection import parse_selection

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

MARGIN = 0.02
"""Difference below which figures count as the same."""
ERROR = 0.05
MIN_ROUNDS = 3
_MAX_LOG = 700.0
"""Logarithm of about the largest number."""


class TwinVerdict(StrEnum):
    """Outcome over all cells."""

    SAME = "same"
    DIFFERENT = "different"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class CellChange:
    """Change of a cell from A to B, as a share of A."""

    cell: str
    a_pps: float
    """Geometric mean, as the next."""
    b_pps: float
    change: float
    low: float
    high: float
    """Bounds of the change at the level of all cells; infinite with too few figures."""

    @property
    def differs(self) -> bool:
        """Whether the interval excludes equality."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class TwinComparison:
    """All cells, with the verdict."""

    verdict: TwinVerdict
    cells: tuple[CellChange, ...]


def paired(cells: Mapping[str, Sequence[tuple[float, float]]]) -> TwinComparison:
    """Compare figures of A and B in pps that were measured in alternate rounds."""
    changes = []
    for cell, rounds in cells.items():
        a, b = ([log(pair[side]) for pair in rounds] for side in (0, 1))
        shifts = [after - before for before, after in zip(a, b, strict=True)]
        error = sqrt(variance(shifts) / len(shifts)) if len(shifts) > 1 else inf
        changes.append(_change(cell, a, b, error, len(shifts) - 1, len(cells)))
    return _verdict(changes)


def unpaired(cells: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> TwinComparison:
    """Compare figures of A and B in pps that were measured at other times; one of the sides may have a single one.

    Both sides are taken to spread alike.
    """
    changes = []
    for cell, sides in cells.items():
        a, b = ([log(pps) for pps in side] for side in sides)
        freedom = len(a) + len(b) - 2
        squares = sum((len(side) - 1) * variance(side) for side in (a, b) if len(side) > 1)
        error = sqrt(squares / freedom * (1 / len(a) + 1 / len(b))) if freedom > 0 else inf
        changes.append(_change(cell, a, b, error, freedom, len(cells)))
    return _verdict(changes)


def _change(cell: str, a: Sequence[float], b: Sequence[float], error: float, freedom: int, cells: int) -> CellChange:
    shift = fmean(b) - fmean(a)
    reach = error * float(student.ppf(1 - ERROR / 2 / cells, freedom)) if freedom > 0 else inf
    low, high = (exp(min(shift + side * reach, _MAX_LOG)) - 1 if reach < inf else side * inf for side in (-1, 1))
    return CellChange(cell, exp(fmean(a)), exp(fmean(b)), exp(shift) - 1, low, high)


def _verdict(changes: Sequence[CellChange]) -> TwinComparison:
    if all(each.low > -MARGIN and each.high < MARGIN for each in changes):
        verdict = TwinVerdict.SAME
    elif any(each.differs for each in changes):
        verdict = TwinVerdict.DIFFERENT
    else:
        verdict = TwinVerdict.CANNOT_TELL
    return TwinComparison(verdict, tuple(changes))


_SPACE_BYTES = 50_000_000
_SEARCH = "quick,mrr=3,mrr_trial=1"
_MAX_CELLS = 3
_STATUS = {TwinVerdict.DIFFERENT: 3, TwinVerdict.CANNOT_TELL: 4}
_HEADS = ("cell", "A", "B", "change", "interval")
_LEFT = ("cell",)


def twin(
    a: Annotated[Path, typer.Argument(help="Topology file.", metavar="A")],
    b: Annotated[Path, typer.Argument(help="Another one, the same one, or results of an earlier run.", metavar="B")],
    minutes: Annotated[float, typer.Option(min=0.1, max=1440, metavar="MINUTES", help="Time to measure.")] = 15,
    cells: Annotated[
        str, typer.Option(help="Up to three cells of CSC, instances x NFs of each; of a stored run its largest.")
    ] = "1x1,1x2,2x1",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the runs; default: results/twin-<time>."),
    ] = None,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Tell whether two testbeds measure the same.

    Measures MRR of three cells on A and B in alternate rounds, each cell deployed anew, until the time is over. Says
    "same" where all changes are within 2 %, "different" where one is not zero, each wrong in at most 5 % of cases, and
    lists the facts that differ, from the largest known effect to the smallest. With results in place of B, A is
    measured and compared with them.

    Exit status: 0 same; 1 failed; 2 invalid input; 3 different; 4 cannot tell.

    \b
    Examples:
    ./csit twin topologies/lab-1.yaml topologies/lab-2.yaml --minutes 15
    ./csit twin topologies/lab-1.yaml results/last-month/output.xml
    """  # noqa: D301 - \b keeps the lines of the examples apart
    load_topology(a)
    stored = None if b.suffix in (".yaml", ".yml") else opened([b]).contents(of_density=True)
    if stored is None:
        load_topology(b)
    points = parse_selection(cells=cells).points if stored is None else _cells_of(stored, b)
    asked = [str(Dimensions(*each)) for each in points]
    if not 1 <= len(asked) <= _MAX_CELLS:
        raise ConfigError(f"--cells {cells}: {len(asked)} cells; from 1 to {_MAX_CELLS} can be compared")
    folder = output or PROJECT / "results" / f"twin-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    check_folder(folder, _SPACE_BYTES)
    sides = {"A": a} if stored is not None else {"A": a, "B": b}
    rounds = tuple(_measured(sides, asked, 60 * minutes, folder))
    runs = {side: opened([output_of(each[side]) for each in rounds]).contents(of_density=True) for side in sides}
    runs |= {} if stored is None else {"B": stored}
    figures = {side: _figures(found) for side, found in runs.items()}
    found = _compared(figures, by_pairs=stored is None)
    facts = _fact_differences(runs["A"], runs["B"])
    simulated = any(row.simulated for each in runs.values() for row in each.tests)
    if form is TableForm.JSON:
        typer.echo(json.dumps(_as_object(found, facts, len(rounds), simulated=simulated)))
    else:
        _print(found, facts, len(rounds), simulated=simulated)
        typer.echo(f"runs: {folder}")
    if found.verdict in _STATUS:
        raise typer.Exit(_STATUS[found.verdict])


def _measured(
    sides: Mapping[str, Path], cells: Sequence[str], seconds: float, folder: Path
) -> Iterator[dict[str, Path]]:
    """Measure rounds until the time is over, at least `MIN_ROUNDS`; yield the folder of each side's run.

    Raises:
        CsitError: A run failed.
    """
    from csit_utils.commands.runs.robot import console_on_stderr, run_suites  # noqa: PLC0415 - Robot costs time of every --help

    begin, number = time.monotonic(), 0
    while number < MIN_ROUNDS or (time.monotonic() - begin) * (number + 1) / number <= seconds:
        number += 1
        # A B, B A, A B: what drifts over time is on both sides alike.
        order = list(sides) if number % 2 else list(sides)[::-1]
        made = {side: folder / f"{number}-{side}" for side in sides}
        for side in order:
            about = max(MIN_ROUNDS, int(seconds * (number - 1) / (time.monotonic() - begin))) if number > 1 else None
            of_all = f" of about {about}" if about else ""
            typer.echo(f"round {number}{of_all}: {side}, {sides[side]}", err=True)
            chosen = {"TOPOLOGY": sides[side], "CELLS": ",".join(cells), "NF_SIZES": "1c", "SEARCH": _SEARCH}
            variables = [word for name, value in chosen.items() for word in ("-v", f"{name}:{value}")]
            suite = PROJECT / "tests" / "density" / "csc-mrr.robot"
            with console_on_stderr():
                status = run_suites(["--console", "none", "-d", str(made[side]), *variables, str(suite)])
            if status:
                why = "; ".join(row.message for row in opened([output_of(made[side])]).contents().tests if row.message)
                raise CsitError(f"{made[side]}: the run on {sides[side]} failed: {why}")
        yield made


def _cells_of(stored: "Stored", path: Path) -> list[tuple[int, int]]:
    """Return the largest cells of CSC of a stored run that have MRR.

    Raises:
        ConfigError: There are none.
    """
    cells = {(row.nf_chains or 0, row.nf_nodes or 0) for row, _ in _rates(stored)}
    found = sorted(cells, key=lambda cell: cell[0] * cell[1])
    if not found:
        raise ConfigError(f"{path}: no result of MRR of CSC cells with NF-1c, which A could be compared with")
    return found[-_MAX_CELLS:]


def _figures(contents: "Stored") -> dict[str, list[float]]:
    """Return MRR in pps by cell, in the order of measurement."""
    found: dict[str, list[float]] = {}
    for row, mrr_pps in sorted(_rates(contents), key=lambda each: each[0].started_at or ""):
        found.setdefault(f"CSC {row.nf_chains}x{row.nf_nodes} {row.frame}", []).append(mrr_pps)
    return found


def _rates(contents: "Stored") -> Iterator[tuple[TestRow, float]]:
    """Yield tests of CSC that have MRR with it; a stored run may state any number."""
    for row in contents.tests:
        if row.service_type == "CSC" and row.nf_size == "1c" and 0 < (row.mrr_pps or 0) <= HIGHEST_PPS:
            yield row, row.mrr_pps or 0


def _compared(figures: Mapping[str, Mapping[str, list[float]]], *, by_pairs: bool) -> TwinComparison:
    a, b = figures["A"], figures["B"]
    cells = [cell for cell in a if cell in b and (not by_pairs or len(a[cell]) == len(b[cell]))]
    if not cells:
        raise CsitError("no cell has all figures on both sides")
    if by_pairs:
        return paired({cell: list(zip(a[cell], b[cell], strict=True)) for cell in cells})
    return unpaired({cell: (a[cell], b[cell]) for cell in cells})


def _fact_differences(a: "Stored", b: "Stored") -> tuple[Difference, ...]:
    """Return differences between the environments of the last runs of both sides."""
    last = [max(each.tests, key=lambda row: row.started_at or "").environment for each in (a, b)]
    one, other = a.environments.get(last[0] or ""), b.environments.get(last[1] or "")
    return environment_differences(one, other) if one is not None and other is not None else ()


def _as_object(
    found: TwinComparison, facts: Sequence[Difference], rounds: int, *, simulated: bool
) -> dict[str, object]:
    return {
        "verdict": found.verdict.value,
        "simulated": simulated,
        "rounds": rounds,
        "margin": MARGIN,
        "cells": [asdict(each) for each in found.cells],
        "facts": [{"fact": each.path, "a": each.a, "b": each.b, "changes": each.effect or None} for each in facts],
    }


def _print(found: TwinComparison, facts: Sequence[Difference], rounds: int, *, simulated: bool) -> None:
    word = " (simulated)" if simulated else ""
    mean = fmean(each.change for each in found.cells)
    cells = counted(len(found.cells), "cell")
    print_sentence(f"{found.verdict}{word}: from A to B {percent(mean)} in the mean of {cells}")
    lines = [
        TableLine(
            (each.cell, rate(each.a_pps), rate(each.b_pps), percent(each.change), f"{percent(each.low)} … "
             f"{percent(each.high)}"), {}, "" if each.differs else "dim",
        )
        for each in found.cells
    ]  # fmt: skip
    print_table(_HEADS, lines, TableForm.TABLE, _LEFT)
    print_sentence(f"{rounds} rounds; intervals hold together in 95 % of cases")
    if not facts:
        print_sentence("no recorded fact differs")
        return
    rows = [TableLine((each.path, each.a or "-", each.b or "-", each.effect or "not known"), {}) for each in facts]
    heads = ("fact", "A", "B", "known to change")
    print_table(heads, rows, TableForm.TABLE, heads)
