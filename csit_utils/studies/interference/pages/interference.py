"""Interference: what network functions on one server do to each other, and where to put them."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from csit_utils.dataset.papers import PublishedFigure
from csit_utils.report.characterizations import keys_of_page
from csit_utils.report.figures import Figure
from csit_utils.report.published import sections
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.density.cell_maps import CellMaps
from csit_utils.studies.interference.maps import interference_maps, means_figure
from csit_utils.studies.interference.sweeps import sweep_figure
from resources.libraries.python.studies.interference.analysis.sentences import cell_in_words
from resources.libraries.python.studies.interference.model.record import Interference, InterferenceRecord


@dataclass(frozen=True)
class MeansRow:
    """A network function in the table of means."""

    name: str
    type: str
    what: str
    """Its kind, and what it is a stand-in for."""
    loses: float | None
    others_lose: float | None


@dataclass(frozen=True)
class StudiedInterference:
    """A study on the page."""

    view: View
    maps: CellMaps | None
    plots: tuple[Figure, ...]
    lines: tuple[MeansRow, ...]
    together: tuple[tuple[str, str, str], ...]
    """Three and more co-located NFs: target, co-located NFs, normalized throughput."""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All that the page's script needs."""
        return (*([self.maps.figure] if self.maps else []), *self.plots)


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = [view for view in shown.characterizations if view.record.kind == "interference"]
    if not found:
        return None
    papers = sections(shown.papers, "interference", found, _normalized)
    return keys_of_page("studies", found, [_studied(view) for view in found], papers)


def _studied(view: View) -> StudiedInterference:
    found = view.record.interference
    if found is None:
        return StudiedInterference(view, None, (), (), ())
    means = means_figure(view.anchor, found, simulated=view.simulated)
    swept = sweep_figure(view.anchor, found, simulated=view.simulated)
    return StudiedInterference(
        view,
        interference_maps(view.anchor, found, simulated=view.simulated),
        tuple(each for each in (means, swept) if each is not None),
        _lines(found),
        tuple(
            (row.target, " and ".join(row.against), cell_in_words(row)) for row in found.matrix if len(row.against) > 1
        ),
    )


def _lines(found: Interference) -> tuple[MeansRow, ...]:
    def lost(means: Mapping[str, float], name: str) -> float | None:
        return 1 - means[name] if name in means else None

    return tuple(
        MeansRow(
            each.name,
            f"{each.type} ({each.type.name.lower()})",
            f"{each.kind}, a stand-in for {each.stand_in_for}" if each.stand_in_for else str(each.kind),
            lost(found.sensitivity, each.name),
            lost(found.aggressiveness, each.name),
        )
        for each in found.spec.contenders
    )


def _normalized(record: InterferenceRecord, figure: PublishedFigure) -> float | None:
    """Of network functions of the same type, beside all others or beside those of a type."""
    found = record.interference
    if found is None:
        return None
    target, *competitor = figure.match.split()
    rows = [row for row in found.matrix if len(row.against) == 1 and _type(found, row.target) == target]
    if competitor:
        rows = [row for row in rows if _type(found, row.against[0]) == competitor[0]]
    return fmean(row.mean for row in rows) if rows else None


def _type(found: Interference, name: str) -> str | None:
    return next((one.type.value for one in found.spec.contenders if one.name == name), None)


PAGE = Page("interference", "Interference", _build)
"""Shown where there is a study of interference."""
