"""Sizings in reports: capacity of each deployment size, and their records."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path, PurePath

from csit_utils.analysis.measures import OF_WORKLOAD, Measure, MeasuredRow, MeasuredValue, measured_row
from csit_utils.dataset.items import Characterized
from csit_utils.dataset.papers import PublishedFigure
from csit_utils.report.characterizations import keys_of_page
from csit_utils.report.explanations import Explanation
from csit_utils.report.figures import DASHES, SYMBOLS, Figure, Json, axes, scatter
from csit_utils.report.published_figures import sections
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, RecordKind, Study, View
from csit_utils.report.units import DASH
from csit_utils.studies.sizing.figures import sizing_figures
from csit_utils.studies.sizing.reported_values import option_figures
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.model.service.load import load_sizing
from resources.libraries.python.model.service.spec import DeploymentSpec, MeasuredSize, Offered, Sizing
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.studies.sizing.analysis import sizing_rows
from resources.libraries.python.studies.sizing.model.record import SizingRecord
from resources.libraries.python.studies.sizing.planning.cost import SizingCost, cost
from resources.libraries.python.studies.sizing.search.size_search import carried

EXPLANATIONS = (
    Explanation(
        "indicator",
        "Performance indicator",
        "The load that a service handled, as reported by its load generator.",
        "That of the workload, such as calls/s; mean and standard deviation of the repetitions.",
        "The script of the workload offers a load for a fixed time and prints one number; this is repeated as "
        "specified.",
        "It is not a packet rate. A growing standard deviation is the first sign of overload: a service that sheds "
        "load oscillates before its mean falls.",
    ),
    Explanation(
        "size-capacity",
        "Capacity of a size",
        "The highest offered load that a deployment size carries.",
        "That of the workload, such as calls/s.",
        "Loads are offered from low to high; a load is carried where the mean indicator is at least the threshold's "
        "share of it (90 % unless specified). Between the loads it is estimated from all repetitions, with a 95 % "
        "confidence interval. The size with the highest capacity is best; among those that cannot be told apart, the "
        "one with the fewest vCPUs.",
        "“At least” means that the highest load of the range was carried. The interval covers what differs between "
        "repetitions on one deployment, not what a new deployment would change. A directed search measures few sizes, "
        "so another one may be better.",
    ),
)
CAPACITY = Measure("capacity", OF_WORKLOAD)
"""Highest load that a deployment size carries."""
_SIZE = "size"

_Ways = dict[str, tuple[str, Callable[[Offered], float | None]]]
_ENDS = {"failed": "a size could not be measured", "no gain": "more vCPUs gain nothing"}


def headline(sizing: Sizing) -> str:
    """Return the result in one sentence."""
    end = _ENDS.get(sizing.stopped, sizing.stopped)
    best = best_of(sizing)
    if best is None:
        return f"no size carries the lowest load; {end}"
    among = f", the highest of {len(sizing.sizes)} sizes measured" if len(sizing.sizes) > 1 else ""
    carries = f"{best.name} carries {capacity_words(best, sizing.workload.unit)} with {best.vcpus:g} vCPUs"
    return f"{carries}{among}; {end}"


def best_of(sizing: Sizing) -> MeasuredSize | None:
    """Return the size with the highest capacity; None if no size carries the lowest load."""
    best = sizing.named().get(sizing.best or "")
    return None if best is None or best.capacity is None else best


def capacity_words(size: MeasuredSize, unit: str) -> str:
    """`600 calls/s (estimate 612, 95 % interval 605 to 619)`, `at least 1000 replies/s`."""
    if size.capacity is None:
        return f"less than {size.offered[0].load:g} {unit}" if size.offered else DASH
    return f"{'at least ' if size.at_top else ''}{carried(size, unit)}"


@dataclass(frozen=True)
class SizeView:
    """A line of the table of sizes."""

    size: MeasuredSize
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
    way = f"{deployment.mode} mode" + (f", scaling {deployment.scaling}" if deployment.mode != "custom" else "")
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
    """Return the capacity of the same size under calls of the same kind."""
    sizing = record.sizing
    if sizing is None:
        return None
    calls = {PurePath(sizing.workload.generator).stem, *(each.chosen for each in sizing.workload.options.values())}
    if figure.condition not in calls:
        return None
    return next((size.capacity for size in sizing.sizes if size.name == figure.match), None)


PAGE = Page("sizings", "Sizing", _build)
"""Shown where there is a sizing."""


@dataclass(frozen=True)
class _Own:
    """A sizing, and what sets it apart from those beside it."""

    view: View
    sizing: Sizing
    name: str


def sizing_comparisons(found: Sequence[View]) -> list[Figure]:
    """A figure for each testbed and unit of load with several sizings: the indicator of every size of all of them."""
    groups: dict[tuple[object, ...], list[tuple[View, Sizing]]] = {}
    for view in found:
        sizing = view.record.sizing
        if sizing is not None and any(size.offered for size in sizing.sizes):
            key = (view.record.testbed, view.record.simulated, sizing.workload.unit)
            groups.setdefault(key, []).append((view, sizing))
    return [
        _figure(f"sizings-{number}", _distinct(own)) for number, own in enumerate(groups.values(), 1) if len(own) > 1
    ]


def _distinct(own: Sequence[tuple[View, Sizing]]) -> list[_Own]:
    """By what differs among them: service, core pinning, traffic; by their tests' names where that is not enough."""
    aspects = [_aspects(sizing) for _, sizing in own]
    keys = dict.fromkeys(key for row in aspects for key in row)
    differing = [key for key in keys if len({row.get(key) for row in aspects}) > 1]
    names = [", ".join(row[key] for key in differing if key in row) for row in aspects]
    if len(set(names)) < len(names):
        names = [view.record.test_name for view, _ in own]
    return [_Own(view, sizing, name) for (view, sizing), name in zip(own, names, strict=True)]


def _aspects(sizing: Sizing) -> dict[tuple[str, ...], str]:
    deployment, workload = sizing.deployment, sizing.workload
    return {
        ("service",): deployment.vnf_name,
        ("pinning",): "pinned" if deployment.servers.core_pinning else "not pinned",
        **{("service", name): f"{name} {option.chosen}" for name, option in deployment.options.items()},
        ("traffic",): PurePath(workload.generator).stem,
        **{("traffic", name): f"{name} {option.chosen}" for name, option in workload.options.items()},
    }


def _figure(identity: str, own: Sequence[_Own]) -> Figure:
    unit = own[0].sizing.workload.unit
    ways: _Ways = {
        "indicator": (f"performance indicator, {unit}", lambda row: row.mean),
        "share of the load": ("indicator, % of the offered load", lambda row: 100 * row.ratio),
    }
    for name in dict.fromkeys(name for each in own for name in each.sizing.figure_names):
        ways[escape(name)] = (name, partial(_value, name))
    sizes = list(dict.fromkeys(size.name for each in own for size in each.sizing.sizes if size.offered))
    variants = {
        way: {
            "data": list(_size_traces(own, sizes, value, axis)),
            "layout": axes(f"offered load, {unit}", axis),
        }
        for way, (axis, value) in ways.items()
    }
    what = ", ".join(dict.fromkeys(each.sizing.deployment.vnf_name for each in own))
    title = f"{what} on {own[0].view.record.testbed}: indicator against offered load, sizings side by side"
    simulated = own[0].view.record.simulated
    return Figure(identity, title, simulated, (tuple(variants),), variants, ("sizing", _SIZE))


def _value(name: str, row: Offered) -> float | None:
    return row.figures.get(name)


def _size_traces(
    own: Sequence[_Own], sizes: Sequence[str], value_of: Callable[[Offered], float | None], axis: str
) -> Iterator[Json]:
    """A colour for each size, a dash for each sizing."""
    for number, each in enumerate(own):
        for size in each.sizing.sizes:
            rows = [(row.load, value) for row in size.offered if (value := value_of(row)) is not None]
            if rows:
                name = f"{size.name}, {each.name}"
                yield scatter(
                    name,
                    rows,
                    sizes.index(size.name),
                    hover=f"{escape(name)}<br>offered %{{x:g}}: %{{y:.4~g}} ({escape(axis)})",
                    facets={"sizing": each.name, _SIZE: size.name},
                    line={"width": 2, "dash": DASHES[number % len(DASHES)]},
                    marker={"size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)]},
                )


def measured(item: Characterized, sizing: Sizing) -> Iterator[MeasuredRow]:
    """Yield a row for each size; those of a failed test have no capacity."""
    for size in sizing.sizes:
        step = sizing.workload.increase
        found = size.capacity
        measures: tuple[MeasuredValue, ...] = ()
        if found is not None:
            lowest, highest = found, None if size.at_top else found + step
            for at in size.capacities[:1]:
                if at.low is not None and at.high is not None:
                    lowest, highest = min(found, at.low), max(found, at.high)
            measures = (MeasuredValue(CAPACITY, found, lowest, highest),)
        yield measured_row(
            item,
            measures,
            test_type=CAPACITY.value,
            service_type=sizing.deployment.vnf_name,
            **Dimensions(1, len(size.size.components)).columns,
            nf_size=size.name,
            frame=sizing.workload.unit,
            goals=sizing.workload.generator,
        )


def _identity(sizing: Sizing) -> object:
    return sizing.deployment.model_dump_json(), sizing.workload.model_dump_json()


def _preview(path: Path, keys: Mapping[str, str]) -> SizingCost:
    asked = load_sizing(path, keys)
    return cost(asked.deployment, asked.workload)


STUDY = Study(
    order=30,
    pages=(PAGE,),
    kinds=(
        RecordKind(
            "sizing",
            "Sizing",
            lambda record: record.sizing,
            lambda sizing: str(sizing.deployment.vnf_name),
            headline,
            _identity,
            lambda sizing: (*sizing.steps, *sizing.notes),
            measured=measured,
            tables=lambda record: () if record.sizing is None else (("sizing", sizing_rows(record.sizing)),),
            name_first=lambda sizing: best_of(sizing) is not None,
        ),
    ),
    measures=(CAPACITY,),
    explanations=EXPLANATIONS,
    preview=_preview,
)
