"""Page of chain studies: chains, suspects and reasons."""

from collections.abc import Mapping
from dataclasses import dataclass

from csit_utils.dataset.papers import PublishedFigure
from csit_utils.report.characterizations import keys_of_page
from csit_utils.report.figures import Figure
from csit_utils.report.published import sections
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.chains.behaviour_figures import chains_figure, classes_figure, sizes_words, workload_words
from csit_utils.studies.chains.event_figures import events_figure, extra_cpu_figure, steps_figure
from csit_utils.studies.chains.series_figures import series_figure
from csit_utils.studies.chains.transition_figures import graphs_figure
from csit_utils.studies.chains.volume_figures import distances_figure, resources_figure, throughput_figure
from resources.libraries.python.studies.chains.analysis.features import feature
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainsRecord, FeatureDeviation, Suspect

MOST_CHANGED = 12
"""Changed features of a suspect, the furthest first."""
MOST_TOLD = 20
"""Suspects with reasons and changed features; others are in the table, and in the CSV files."""


@dataclass(frozen=True)
class ChangedFeature:
    """A feature of a VNF that is not as when the VNF was alone."""

    row: FeatureDeviation
    meaning: str
    unit: str

    @property
    def ratio(self) -> float | None:
        """Change against the VNF alone; None from nothing."""
        return self.row.here / self.row.alone - 1 if self.row.alone else None


@dataclass(frozen=True)
class Suspected:
    """A suspect on the page."""

    id: str
    """Of its reasons and evidence, for links."""
    rank: int
    suspect: Suspect
    changed: tuple[ChangedFeature, ...]

    @property
    def told(self) -> bool:
        """Whether its reasons and evidence are on the page."""
        return self.rank <= MOST_TOLD and bool(self.suspect.reasons or self.changed)


@dataclass(frozen=True)
class StudiedChains:
    """A study on the page."""

    view: View
    chains: Figure | None
    compared: tuple[Figure, ...]
    """Throughput, distances and resources against the volume; samples over time."""
    traced: tuple[Figure, ...]
    """Of what was traced: workflow classes, events and state transitions."""
    suspects: tuple[Suspected, ...]
    runs: tuple[ChainRun, ...]
    failed: tuple[ChainRun, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All that the page's script needs."""
        return (*([self.chains] if self.chains else []), *self.compared, *self.traced)


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = [view for view in shown.characterizations if view.record.kind == "chains"]
    if not found:
        return None
    words = {"workload_words": workload_words, "sizes_words": sizes_words}
    papers = sections(shown.papers, "chains", found, _highest_throughput)
    return {**keys_of_page("studies", found, [_studied(view) for view in found], papers), **words}


def _studied(view: View) -> StudiedChains:
    study = view.record.chain_study
    if study is None:
        return StudiedChains(view, None, (), (), (), (), ())
    over = (throughput_figure, distances_figure, resources_figure, extra_cpu_figure, series_figure, steps_figure)
    compared = (make(view.anchor, study, simulated=view.simulated) for make in over)
    of_traces = (classes_figure, events_figure, graphs_figure)
    traced = (make(view.anchor, study, simulated=view.simulated) for make in of_traces)
    return StudiedChains(
        view,
        chains_figure(view.anchor, study, simulated=view.simulated),
        tuple(figure for figure in compared if figure is not None),
        tuple(figure for figure in traced if figure is not None),
        tuple(
            Suspected(f"{view.anchor}-suspect-{rank}", rank, suspect, _changed(suspect))
            for rank, suspect in enumerate(study.suspects, 1)
        ),
        tuple(run for run in study.runs if run.failed is None),
        tuple(run for run in study.runs if run.failed is not None),
    )


def _changed(suspect: Suspect) -> tuple[ChangedFeature, ...]:
    rows = sorted(suspect.deviations, key=lambda row: -abs(row.here - row.alone) / (row.alone_stdev or 1e-12))
    known = ((row, feature(row.feature)) for row in rows[:MOST_CHANGED])
    return tuple(ChangedFeature(row, one.meaning, one.unit) for row, one in known)


def _highest_throughput(record: ChainsRecord, figure: PublishedFigure) -> float | None:
    """Of a VNF of the same kind and mode alone, Mbit/s."""
    study = record.chain_study
    if study is None:
        return None
    names = {vnf.name for vnf in study.spec.vnfs if f"{vnf.kind} {vnf.mode}" == figure.match}
    rates = [
        run.throughput_bps
        for run in study.runs
        if len(run.chain.members) == 1 and run.chain.order[0] in names and run.throughput_bps is not None
    ]
    return max(rates) / 1e6 if rates else None


PAGE = Page("chain_study", "Chain study", _build)
"""Shown where there is a study of chains."""
