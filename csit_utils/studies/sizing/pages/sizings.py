"""Sizings: capacity of each deployment size, and the search steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from csit_utils.dataset.papers import PublishedFigure
from csit_utils.report.characterizations import keys_of_page
from csit_utils.report.figures import Figure
from csit_utils.report.published import sections
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.sizing.comparison import sizing_comparisons
from csit_utils.studies.sizing.figures import sizing_figures
from csit_utils.studies.sizing.reported_values import option_figures
from csit_utils.studies.sizing.words import capacity_words
from resources.libraries.python.studies.sizing.model.record import SizingRecord
from resources.libraries.python.studies.sizing.model.spec import DeploymentSpec, Sized
from resources.libraries.python.studies.sizing.model.workload import WorkloadSpec


@dataclass(frozen=True)
class SizeView:
    """A line of the table of sizes."""

    size: Sized
    capacity: str
    best: bool

    @property
    def per_vcpu(self) -> float | None:
        """Capacity over vCPUs."""
        return None if self.size.capacity is None else self.size.capacity / self.size.vcpus


@dataclass(frozen=True)
class SizingView:
    """A sizing on the page."""

    view: View
    how: str
    figures: tuple[Figure, ...]
    sizes: tuple[SizeView, ...]


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    found = [view for view in shown.characterizations if view.record.kind == "sizing"]
    if not found:
        return None
    made = [_sizing(view, len(found)) for view in found]
    compared, over_options = sizing_comparisons(found), option_figures(found)
    papers = sections(shown.papers, "sizing", found, _capacity)
    plots = {"compared": compared, "over_options": over_options}
    return {**keys_of_page("sizings", found, made, papers, [*compared, *over_options]), **plots}


def _sizing(view: View, sizings: int) -> SizingView:
    sizing = view.record.sizing
    figures = tuple(sizing_figures(view.anchor, view.record, sizings))
    if sizing is None:
        return SizingView(view, "", figures, ())
    unit = sizing.workload.unit
    sizes = tuple(SizeView(size, capacity_words(size, unit), size.name == sizing.best) for size in sizing.sizes)
    return SizingView(view, _how(sizing.deployment, sizing.workload), figures, sizes)


def _how(deployment: DeploymentSpec, workload: WorkloadSpec) -> str:
    """Deployment and workload as a sentence."""
    parts = ", ".join(component.name for component in deployment.components)
    way = f"{deployment.mode} mode" + (f", scaling {deployment.scaling}" if deployment.mode == "directed" else "")
    budget = f", at most {deployment.resources.vcpus:g} vCPUs" if deployment.resources.vcpus else ""
    loads = f"{workload.range.min:g} to {workload.range.max:g} {workload.unit} by {workload.increase:g}"
    repeats = f", each {workload.repeat} times" if workload.repeat > 1 else ""
    pinning = "on" if deployment.servers.core_pinning else "off"
    return (
        f"Components {parts}; {way}{budget}; core pinning {pinning}. Offered: {loads}{repeats}, "
        f"{workload.duration_s:g} s each. A load is carried where the indicator is at least "
        f"{100 * workload.threshold:g} % of it."
    )


def _capacity(record: SizingRecord, figure: PublishedFigure) -> float | None:
    """Of the same size under calls of the same kind."""
    sizing = record.sizing
    if sizing is None:
        return None
    calls = {PurePath(sizing.workload.generator).stem, *(each.chosen for each in sizing.workload.options.values())}
    if figure.condition not in calls:
        return None
    return next((size.capacity for size in sizing.sizes if size.name == figure.match), None)


PAGE = Page("sizings", "Sizing", _build)
"""Shown where there is a sizing."""
