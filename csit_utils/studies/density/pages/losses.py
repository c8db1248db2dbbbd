"""Where packets are lost beyond the limit, over the matrix, and how busy those data threads are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from csit_utils.analysis.grouping import Series, series_names
from csit_utils.dataset.rows import HopRow, TestRow, ThreadRow
from csit_utils.report.cell_maps import CellMaps, MapSquare, Scale
from csit_utils.report.figures import OUTLINED, Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row, Table
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import percent
from csit_utils.studies.density.analysis.density import Place, SeriesLayout
from csit_utils.studies.density.analysis.losses import LINK, OwnerShare, order, shares
from csit_utils.studies.density.latency_maps import CELL_COLUMNS, MatrixBlock, blocks_of_type, cell_columns, matrix_map

_LISTED = 300
_GROUPS = (("Losses beyond the bounds of the search", "NDRPDR"), ("Losses in trials of MRR", "MRR"))
_ALL = 0.999
"""Share of the losses of each cell from which a series that loses at one place takes a sentence instead of a map."""
NOT_LOCATED = "no test of this cell located losses"
_LOSES_MOST = "loses most"

Found = Mapping[str, Sequence[OwnerShare]]
"""By anchor of the test, the owner that lost most first; empty where nothing was lost."""


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = _found(shown)
    blocks: list[MatrixBlock] = []
    lines: list[tuple[TestRow, str, str, Sequence[OwnerShare]]] = []
    alone: list[tuple[bool, str, str]] = []
    for group, (title, test_type) in enumerate(_GROUPS):
        for number, heading, own in blocks_of_type(shown, found, NOT_LOCATED, test_type):
            system = own[0].series.system
            called = series_names([layout.series for layout in own])
            places = {layout.series: _only_place(layout, found) for layout in own}
            for place in dict.fromkeys(filter(None, places.values())):
                alike = [layout for layout in own if places[layout.series] == place]
                cells = sum(bool(found[test.anchor]) for layout in alike for _, test in layout.found())
                of = ", ".join(called[layout.series] for layout in alike)
                alone.append((system.simulated, place, f"{title}, {heading}: {cells} cells of {of}"))
            varied = [layout for layout in own if places[layout.series] is None]
            if varied:
                maps = loss_maps(f"losses-{number}-{group}", varied, called, found)
                figure = bars_figure(
                    f"loss-bars-{number}-{group}", "Share of the losses of each cell", varied, called, found
                )
                blocks.append(MatrixBlock(system, f"{title}: {heading}", (maps,), (figure,) if figure else ()))
            named = (each for layout in own for each in layout.named())
            lines += [(*each, owners) for each in named if (owners := found[each[0].anchor])]
    if not lines:
        return None
    return {
        "blocks": blocks,
        "alone": alone,
        "place": {place for _, place, _ in alone},
        "mixed": shown.simulated and shown.measured,
        "limit": 100 * _ALL,
        "table_of_losses": _LOSSES.draw(RecordTables("all", shown.simulated, lines[:_LISTED])),
        "tests": len(lines),
        "more": max(0, len(lines) - _LISTED),
        "figures": [each for block in blocks for each in block.figures],
    }


def _rows(lines: Iterable[tuple[TestRow, str, str, Sequence[OwnerShare]]]) -> Iterator[Row]:
    for row, cell, sizes, (first, *others) in lines:
        yield {
            **cell_columns(row, cell, sizes),
            "test": row.test_type,
            "loses most": first.owner,
            "share": first.share,
            "busy": first.busy,
            "others": ", ".join(
                f"{each.owner} {percent(each.share)}{'' if each.busy is None else f' (ran {percent(each.busy)})'}"
                for each in others[:3]
            ),
        }


_LOSSES = Table(
    "losses",
    _rows,
    (
        *CELL_COLUMNS,
        Column("test", text=True),
        Column("loses most", text=True),
        Column("share", write=percent, bar=True),
        Column(
            "busy",
            "its CPU time",
            percent,
            about="Share of the time of sending in which its busiest data thread ran; threads that poll always run",
        ),
        Column("others", text=True),
    ),
    filter=True,
    rows_are="tests",
)


def _only_place(layout: SeriesLayout, found: Found) -> str | None:
    """The owner of nearly all losses of every cell of a series; empty without a loss, None where cells differ."""
    most = [found[test.anchor][0] for _, test in layout.found() if found[test.anchor]]
    places = {each.owner if each.share >= _ALL else None for each in most} or {""}
    return places.pop() if len(places) == 1 else None


def _found(shown: ReportContents) -> dict[str, list[OwnerShare]]:
    """Return losses by owner of every test that located them."""
    hops: dict[str, list[HopRow]] = {}
    threads: dict[str, list[ThreadRow]] = {}
    for row in shown.contents.rows(HopRow, ThreadRow, anchors=shown.latest_anchors):
        if isinstance(row, HopRow):
            hops.setdefault(row.anchor, []).append(row)
        elif isinstance(row, ThreadRow):
            threads.setdefault(row.anchor, []).append(row)
    return {anchor: shares(own, threads.get(anchor, ())) for anchor, own in hops.items()}


PAGE = Page("losses", "Losses", _build)


def owners_of(layouts: Sequence[SeriesLayout], found: Found) -> list[str]:
    """All owners that lost anything, along the path."""
    return order(each.owner for layout in layouts for _, test in layout.found() for each in found[test.anchor])


def loss_maps(identity: str, layouts: Sequence[SeriesLayout], called: Mapping[Series, str], found: Found) -> CellMaps:
    """Shares of losses over the matrix, by owner.

    `layouts`: cells that may be compared, with tests that looked for losses.
    """
    owners = owners_of(layouts, found)

    def square(where: str, _place: Place, row: TestRow, choice: tuple[str, ...]) -> MapSquare:
        return _square(where, found[row.anchor], choice[0])

    return CellMaps(
        identity,
        "Losses by owner",
        layouts[0].series.system.simulated,
        ((_LOSES_MOST, *owners),),
        (_LOSES_MOST,),
        tuple(matrix_map(each, called[each.series], NOT_LOCATED, "not located", square) for each in layouts),
        lambda choice: Scale(0.0, 1.0, categories=choice[0] == _LOSES_MOST),
        percent,
        ("loss-by-hop", "loss by hop"),
    )


def _square(where: str, owners: Sequence[OwnerShare], choice: str) -> MapSquare:
    if not owners:
        return MapSquare("no loss", f"{where}: no loss", state="not-run")
    tip = "\n".join([where, *map(owner_line, owners)])
    if choice == _LOSES_MOST:
        first = owners[0]
        return MapSquare(first.owner, tip, first.share, percent(first.share), category=_colour(first.owner))
    share = next((each.share for each in owners if each.owner == choice), 0.0)
    return MapSquare(percent(share), tip, share)


def _colour(owner: str) -> int:
    """The same for an owner in all maps and plots."""
    if owner.startswith("NF "):
        return 1 + (int(owner[3:]) - 1) % 5
    return {LINK: 6, "generator": 7}.get(owner, 0)


def owner_line(owner: OwnerShare) -> str:
    """Losses of an owner, as a line."""
    busy = f", its busiest data thread ran {percent(owner.busy)} of the time" if owner.busy is not None else ""
    return f"{owner.owner}: {percent(owner.share)}, {owner.lost:,} packets{busy}"


def bars_figure(
    identity: str, title: str, layouts: Sequence[SeriesLayout], called: Mapping[Series, str], found: Found
) -> Figure | None:
    """Shares of losses by owner, a stacked bar per cell; a series is chosen. None where all lose at one place."""
    if all(own[0].share >= _ALL for layout in layouts for _, test in layout.found() if (own := found[test.anchor])):
        return None
    owners = owners_of(layouts, found)
    rows = [
        {
            "series": called[layout.series],
            "cell": f"{place[0]}x{place[1]}",
            "owner": each.owner,
            "share": each.share,
            "text": owner_line(each),
        }
        for layout in layouts
        for place, test in layout.found()
        for each in sorted(found[test.anchor], key=lambda each: owners.index(each.owner))
    ]
    plot = Plot(
        identity.removeprefix("loss-bars-"),
        title,
        "losses",
        Column("cell", "cell: service instances x NFs per instance", text=True),
        Column("share", "share of the located losses, %", scale=100, options={"range": [0, 100]}),
        colour="owner",
        choose=("series",),
        mark="stack",
        hover=("text",),
        style={"marker": OUTLINED},
        lines={owner: {"meta": {"colour": _colour(owner)}} for owner in owners},
        layout={"bargap": 0.25},
    )
    return plot.draw(RecordTables("loss-bars", layouts[0].series.system.simulated, None, {"losses": rows}))
