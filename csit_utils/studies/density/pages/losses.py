"""Where packets are lost beyond the limit, over the matrix, and how busy those data threads are."""

from collections.abc import Mapping
from dataclasses import dataclass

from csit_utils.analysis.grouping import System
from csit_utils.dataset.rows import HopRow, TestRow, ThreadRow
from csit_utils.report.figures import Figure
from csit_utils.report.report_context import ReportContents
from csit_utils.report.series_blocks import blocks_of
from csit_utils.report.study import Page
from csit_utils.studies.density.analysis.losses import OwnerShare, shares
from csit_utils.studies.density.analysis.placing import layouts
from csit_utils.studies.density.cell_maps import CellMaps
from csit_utils.studies.density.loss_maps import NOT_LOCATED, bars_figure, loss_maps

_LISTED = 300
_GROUPS = (("Losses beyond the bounds of the search", "NDRPDR"), ("Losses in trials of MRR", "MRR"))


@dataclass(frozen=True)
class LossBlock:
    """Comparable tests."""

    system: System
    heading: str
    maps: CellMaps
    figure: Figure | None


@dataclass(frozen=True)
class LossLine:
    """A line of the table."""

    row: TestRow
    cell: str
    sizes: str
    owners: tuple[OwnerShare, ...]


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = _found(shown)
    blocks: list[LossBlock] = []
    lines: list[LossLine] = []
    for group, (title, test_type) in enumerate(_GROUPS):
        mrr = test_type == "MRR"

        def has(row: TestRow, mrr: bool = mrr) -> bool:
            return row.anchor in found and (row.test_type == "MRR") == mrr

        placed = layouts(shown.latest, has, shown.contents.refused, NOT_LOCATED, test_type)
        for number, (heading, own) in enumerate(blocks_of(placed), 1):
            maps = loss_maps(f"losses-{number}-{group}", title, own, found)
            if maps is None:
                continue
            figure = bars_figure(f"loss-bars-{number}-{group}", f"{title}, {heading}", own, found)
            blocks.append(LossBlock(own[0].series.system, heading, maps, figure))
            lines += [
                LossLine(
                    test,
                    f"{layout.series.service_type} {place[0]}x{place[1]}",
                    f"{layout.series.nf_name}, {layout.series.vswitch_name}, {layout.series.frame}",
                    tuple(found[test.anchor]),
                )
                for layout in own
                for place, test in layout.found()
                if found[test.anchor]
            ]
    if not blocks:
        return None
    figures = [each for block in blocks for each in (block.maps.figure, block.figure) if each is not None]
    return {"blocks": blocks, "lines": lines[:_LISTED], "more": max(0, len(lines) - _LISTED), "figures": figures}


def _found(shown: ReportContents) -> dict[str, list[OwnerShare]]:
    """Of every test that looked for losses."""
    hops: dict[str, list[HopRow]] = {}
    for hop in shown.contents.hops(shown.latest_anchors):
        hops.setdefault(hop.anchor, []).append(hop)
    threads: dict[str, list[ThreadRow]] = {}
    for thread in shown.contents.threads(shown.latest_anchors):
        threads.setdefault(thread.anchor, []).append(thread)
    return {anchor: shares(own, threads.get(anchor, ())) for anchor, own in hops.items()}


PAGE = Page("losses", "Losses", _build)
