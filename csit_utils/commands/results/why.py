"""`why`: functions that take more or less of the CPU time in B than in A, from sampled call stacks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from csit_utils.commands.results.inputs import MAX_TESTS
from csit_utils.commands.results.selections import DATA, MAX_COMPARED, SIDE_HELP, DatasetReader
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import DASH, percent
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import readable_cells
from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    from csit_utils.analysis.flames import StackDifference
    from csit_utils.report.stack_sides import CellStacks

_HEADS = ("cell", "part", "function", "A", "B", "difference", "A ns/packet", "B ns/packet", "significant")
_LEFT = ("cell", "part", "function", "significant")


def why(
    a: Annotated[str, typer.Argument(metavar="A", help=SIDE_HELP)],
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="As A. Without it, the suspects of the chain studies of file A.")
    ] = None,
    data: DATA = None,
    cell: Annotated[
        str | None, typer.Option(help="Only cells with this text in their name, such as 'CSC 2x1'.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also print functions whose difference is within the noise of sampling.")
    ] = False,
    folded: Annotated[
        Path | None,
        typer.Option(help="Also write the stacks of both sides to this file, as difffolded.pl of FlameGraph does."),
    ] = None,
    form: FORMAT = TableForm.TABLE,
    max_tests: MAX_TESTS = MAX_COMPARED,
) -> None:
    """Find functions that take more or less CPU time in B than A.

    The functions are those of vSwitch and NFs. Call stacks are sampled by -v STACKS:10.
    Shares are of the samples of the cell, in a function or what it calls. In a chain study, A is the reference of a
    suspect and B the suspect, and times per packet are compared instead. A difference is significant where it exceeds
    the noise of sampling, and, with several runs per side, the spread between runs; about 5 % of the significant ones
    are expected to be false (Benjamini-Hochberg). Exit status: 0 whatever is found, 1 if an
    input cannot be read in full.

    \b
    Examples:
    ./csit why monday/output.xml tuesday/output.xml
    ./csit why results/chains/output.xml
    ./csit why few.xml many.xml --folded both.folded
    flamegraph.pl both.folded > both.svg
    """  # noqa: D301 - \b keeps the lines of the examples apart
    with DatasetReader(data, max_tests=max_tests) as reader:
        every_cell = _suspects(reader, a) if b is None else _cells(reader, a, b)
        found = [each for each in every_cell if cell is None or readable_cells(cell).lower() in each.name.lower()]
        if not found:
            what = f"{a} has no suspect" if b is None else f"{a} and {b} have no cell"
            end = "; run its chain study with -v STACKS:10" if b is None else " in common"
            raise ConfigError(f"{what}{f' {cell}' if cell else ''} with call stacks{end}")
        lines: list[TableLine] = []
        for each in found:
            rows_of_cell = each.differences()
            chosen = [row for row in rows_of_cell if row.function and (row.significant or every)]
            lines += [_line(each, row) for row in chosen]
            several = sum(row.significant for row in rows_of_cell if row.function)
            remarks = "".join(f"; {remark}" for remark in each.remarks)
            simulated = " (simulated)" if each.simulated else ""
            print_sentence(
                f"{each.name}{simulated}: {several or 'no'} function{'s' if several != 1 else ''} beyond the noise of "
                f"{each.a.total} and {each.b.total} samples{remarks}",
                err=True,
            )
        print_table(_HEADS, lines, form, left=_LEFT)
        if folded is not None:
            write_whole(folded, "".join(text for each in found for text in _folded(each, named=len(found) > 1)))
        if reader.report_problems():
            raise typer.Exit(1)


def _cells(reader: DatasetReader, a: str, b: str) -> "Iterator[CellStacks]":
    from csit_utils.report.stack_sides import cells_with_stacks  # noqa: PLC0415 - scipy costs time of every --help

    rows_a, rows_b = reader.rows(a), reader.rows(b)
    for text, rows in ((a, rows_a), (b, rows_b)):
        if not any(row.call_stacks for row in rows):
            raise ConfigError(f"{text}: no test has call stacks; run it with -v STACKS:10")
    return cells_with_stacks(rows_a, rows_b, reader.record)


def _suspects(reader: DatasetReader, text: str) -> "Iterator[CellStacks]":
    from csit_utils.studies.registry import kind_of  # noqa: PLC0415 - as above

    for item in reader.studies(text):
        yield from kind_of(item).stacks(item.record)


def _folded(cell: "CellStacks", *, named: bool) -> Iterator[str]:
    """Yield lines of stack, samples in A and samples in B; with the name of the cell first where there are several."""
    sides = [[run.counts for run in side.runs] for side in (cell.a, cell.b)]
    for stack in sorted({stack for side in sides for run in side for stack in run}):
        counts = [sum(run.get(stack, 0) for run in side) for side in sides]
        yield f"{f'{cell.name};' if named else ''}{stack} {counts[0]} {counts[1]}\n"


def _line(cell: "CellStacks", row: "StackDifference") -> TableLine:
    texts = (
        cell.name,
        row.owner,
        row.function,
        percent(row.share_a),
        percent(row.share_b),
        percent(row.difference, signed=True) if not cell.per_packet else f"{row.difference_ns or 0.0:+.0f} ns",
        *(DASH if each is None else f"{each:.0f}" for each in (row.ns_a, row.ns_b)),
        "yes" if row.significant else "no" if row.adjusted is not None else "too few samples",
    )
    change = row.difference_ns or 0.0 if cell.per_packet else row.difference
    style = "" if not row.significant else "red" if change > 0 else "green"
    return TableLine(texts, as_object(cell, row), style)


def as_object(cell: "CellStacks", row: "StackDifference") -> Mapping[str, Any]:
    """Return a difference as a JSON object."""
    return {
        "cell": cell.name,
        "simulated": cell.simulated,
        "part": row.owner,
        "function": row.function,
        "samples_a": row.samples_a,
        "samples_b": row.samples_b,
        "share_a": row.share_a,
        "share_b": row.share_b,
        "difference": row.difference,
        "own_share_a": row.own_a,
        "own_share_b": row.own_b,
        "ns_per_packet_a": row.ns_a,
        "ns_per_packet_b": row.ns_b,
        "probability": row.probability,
        "adjusted_probability": row.adjusted,
        "significant": row.significant,
        "remarks": list(cell.remarks),
    }
