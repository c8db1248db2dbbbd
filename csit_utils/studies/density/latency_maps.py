"""Heat maps of a density matrix and, of latency, over the instances of one cell."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from csit_utils.analysis.grouping import Series, System, blocks_of, series_names
from csit_utils.dataset.rows import MRR, LatencyRow, TestRow
from csit_utils.report.cell_maps import CellMap, CellMaps, MapSquare, Scale, scale_of
from csit_utils.report.figures import Figure
from csit_utils.report.links import test_href
from csit_utils.report.record_blocks import Column, Row
from csit_utils.report.report_context import ReportContents
from csit_utils.report.units import latency, rate
from csit_utils.studies.density.analysis.density import CellState, Place, SeriesLayout, layouts
from csit_utils.studies.density.analysis.latency_cells import (
    BOTH,
    LatencyFigure,
    Quantile,
    UnknownReason,
    figure,
    loads_of,
)

_CORNER = ("NFs per service instance", "instances")


def matrix_map(
    layout: SeriesLayout,
    name: str,
    missing: str,
    word: str,
    shown: Callable[[str, Place, TestRow, tuple[str, ...]], MapSquare],
) -> CellMap:
    """The map of one matrix.

    `missing`: text for cells whose tests passed without the quantity.
    `word`: the same in the cell itself.
    `shown`: a cell with a test that has it, from the cell's name and place, the test, and what the reader chose.
    """

    def square(line: int, column: int, choice: tuple[str, ...]) -> MapSquare:
        place = layout.chains[line], layout.nodes[column]
        where = f"{layout.series.service_type} {place[0]}x{place[1]}"
        cell = layout.cells[place]
        if cell.state is not CellState.VALUE or cell.row is None:
            passed = cell.state is CellState.NOT_RUN and cell.reason == missing
            state = cell.state.replace(" ", "-")
            return MapSquare(word if passed else cell.state, f"{where}: {cell.reason}", state=state)
        return shown(where, place, cell.row, choice)

    hrefs = tuple(
        tuple(f"#{cell.row.anchor}" if (cell := layout.cells[s, n]).row else None for n in layout.nodes)
        for s in layout.chains
    )
    return CellMap(name, _CORNER, tuple(map(str, layout.nodes)), tuple(map(str, layout.chains)), hrefs, square)


CELL_COLUMNS = (
    Column("cell", text=True, href="href", badge=("simulated", "SIMULATED")),
    Column("sizes and frame", text=True),
    Column("testbed", text=True),
)


def cell_columns(row: TestRow, cell: str, sizes: str) -> Row:
    """Return the values of `CELL_COLUMNS` for a test."""
    simulated = "On the simulated testbed, and not measured" if row.simulated else ""
    return {
        "cell": cell,
        "href": test_href(row),
        "simulated": simulated,
        "sizes and frame": sizes,
        "testbed": row.testbed,
    }


@dataclass(frozen=True)
class MatrixBlock:
    """What a page shows of comparable tests: one system, frame size and profile."""

    system: System
    heading: str
    maps: tuple[CellMaps, ...]
    plots: tuple[Figure, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All that the page's script needs."""
        return (*(maps.figure for maps in self.maps), *self.plots)


def blocks_of_type(
    shown: ReportContents, found: Container[str], missing: str, test_type: str
) -> Iterator[tuple[int, str, list[SeriesLayout]]]:
    """Yield the layouts of comparable tests with their number and heading: MRR tests, or all others.

    `found`: anchors of tests that have what is shown.
    `missing`, `test_type`: as for `layouts`.
    """

    def has(row: TestRow) -> bool:
        return row.anchor in found and (row.test_type == MRR) == (test_type == MRR)

    placed = layouts(shown.latest, has, shown.contents.refused, missing, test_type)
    for number, (heading, own) in enumerate(blocks_of(placed), 1):
        yield number, heading, list(own)


DIRECTIONS = (BOTH, "forward", "reverse")
_QUANTILES = tuple(str(quantile) for quantile in Quantile)
_STATES = {UnknownReason.LOST: "lost", UnknownReason.FEW: "few", UnknownReason.NOT_MEASURED: "not-run"}
_PREFERRED = "PDR50"

NO_LATENCY = "latency was not measured in any test of this cell"


def matrix_maps(
    identity: str, layouts: Sequence[SeriesLayout], latencies: Mapping[str, Sequence[LatencyRow]]
) -> CellMaps | None:
    """Maps of series that may be compared, with one colour scale for each choice; None without any percentile.

    `layouts`: the cells of each series, with the tests that have latency.
    `latencies`: by anchor of the test.
    """
    loads = loads_of(row for layout in layouts for _, test in layout.found() for row in latencies.get(test.anchor, ()))
    found: dict[tuple[Series, Place, tuple[str, ...]], LatencyFigure | None] = {}
    for layout in layouts:
        for place, test in layout.found():
            rows = latencies.get(test.anchor, ())
            for quantile in Quantile:
                for load in loads:
                    for direction in DIRECTIONS:
                        found[layout.series, place, (quantile, load, direction)] = figure(
                            rows, quantile, load, direction
                        )
    if all(each is None or (each.value_ns is None and not _is_lost(each)) for each in found.values()):
        return None
    called = series_names([layout.series for layout in layouts])

    def square(layout: SeriesLayout, where: str, place: Place, _row: TestRow, choice: tuple[str, ...]) -> MapSquare:
        return _square(where, found[layout.series, place, choice], choice)

    return CellMaps(
        identity,
        "Latency",
        layouts[0].series.system.simulated,
        (_QUANTILES, tuple(loads), DIRECTIONS),
        (Quantile.P99, _PREFERRED if _PREFERRED in loads else loads[-1], BOTH),
        tuple(
            matrix_map(layout, called[layout.series], NO_LATENCY, "no latency", partial(square, layout))
            for layout in layouts
        ),
        cache(lambda choice: _scale(each for key, each in found.items() if key[2] == choice)),
        latency,
        ("latency-map", "latency heat maps"),
    )


def _is_lost(found: LatencyFigure) -> bool:
    return found.unknown not in {None, UnknownReason.NOT_MEASURED}


def _scale(found: Iterable[LatencyFigure | None]) -> Scale:
    values = [float(each.value_ns) for each in found if each is not None and each.value_ns]
    return scale_of(values, logarithmic=True, lower_is_better=True)


def _square(where: str, found: LatencyFigure | None, choice: tuple[str, ...]) -> MapSquare:
    quantile, load, direction = choice
    if found is None:
        return MapSquare("no latency", f"{where}: latency was not measured at {load} {direction}", state="not-run")
    of = f"instance {found.instance} {found.direction}, {load} = {rate(found.load_pps)}"
    if found.value_ns is None or found.unknown is not None:
        text = found.unknown or UnknownReason.NOT_MEASURED
        return MapSquare(text, f"{where}: {text}\n{of}\n{found.reason}", state=_STATES[text])
    lines = [f"{where} · {quantile} {latency(found.value_ns)}", of]
    if found.best_ns is not None and found.best_ns != found.value_ns:
        lines.append(f"the best instance and direction: {latency(found.best_ns)}")
    lines.append(f"{'unknown' if found.samples is None else f'{found.samples:,}'} samples each")
    number, unit = latency(found.value_ns).split(" ")
    return MapSquare(number, "\n".join(lines), float(found.value_ns), unit)


def instance_maps(identity: str, rows: Sequence[LatencyRow], *, simulated: bool) -> CellMaps | None:
    """Instances by load and direction of one test, with one colour scale per percentile; None for one instance."""
    instances = sorted({row.instance for row in rows})
    if len(instances) < 2:
        return None
    heads = [(load, direction) for load in loads_of(rows) for direction in ("forward", "reverse")]
    flows = {(row.instance, row.load, row.direction): row for row in rows}
    found = {
        (quantile, instance, *head): figure([row], quantile, *head)
        for quantile in Quantile
        for instance in instances
        for head in heads
        if (row := flows.get((instance, *head)))
    }

    def square(line: int, column: int, choice: tuple[str, ...]) -> MapSquare:
        load, direction = heads[column]
        quantile = Quantile(choice[0])
        each = found.get((quantile, instances[line], load, direction))
        return _square(f"instance {instances[line]}", each, (quantile, load, direction))

    columns = tuple(f"{load} {'→' if direction == 'forward' else '←'}" for load, direction in heads)
    lines = tuple(map(str, instances))
    nowhere = tuple((None,) * len(columns) for _ in lines)
    each_map = CellMap("by instance", ("load; → forward, ← reverse", "instance"), columns, lines, nowhere, square)
    return CellMaps(
        identity,
        "Latency by instance",
        simulated,
        (_QUANTILES,),
        (Quantile.P99,),
        (each_map,),
        cache(lambda choice: _scale(each for key, each in found.items() if key[0] == choice[0])),
        latency,
        ("latency-map", "latency heat maps"),
    )
