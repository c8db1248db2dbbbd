"""Sizings in reports: capacity of each deployment size, indicator and use by load, sizings side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from statistics import fmean

from csit_utils.dataset.measures import OF_WORKLOAD, Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.dataset.reference import PublishedFigure
from csit_utils.report.record_blocks import Block, Column, Drawing, Plot, RecordTables, Row, Sentences, Table
from csit_utils.report.record_page import Overview, record_page
from csit_utils.report.study import QueriedTables, RecordKind, Study, View
from csit_utils.report.units import percent, seconds
from csit_utils.studies.sizing.trace_figure import traces_figure
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.model.service.load import load_sizing
from resources.libraries.python.model.service.spec import Sizing, vcpus_text
from resources.libraries.python.paths import specification_file
from resources.libraries.python.quantities import grouped
from resources.libraries.python.studies.sizing.analysis import (
    SIZING_COLUMNS,
    best_size,
    capacity_words,
    headline,
    sizing_rows,
)
from resources.libraries.python.studies.sizing.model import SizingRecord
from resources.libraries.python.studies.sizing.planning import SizingCost, cost

_FEW = 8
"""Largest number of sizes whose lines can be distinguished."""
_INDICATOR = "performance indicator"


def _short(value: float) -> str:
    return f"{value:.4g}"


def _setup(sizing: Sizing) -> Iterator[str]:
    deployment, workload = sizing.deployment, sizing.workload
    scaling = f", scaling {deployment.scaling}" if deployment.mode != "custom" else ""
    budget = f", at most {deployment.resources.vcpus:g} vCPUs" if deployment.resources.vcpus else ""
    repeats = f", each {workload.repeat} times" if workload.repeat > 1 else ""
    flavors = ", ".join(
        f"{name} ({vcpus_text(flavor.vcpus)}, {flavor.memory_mb:,} MB)" for name, flavor in deployment.flavors.items()
    )
    yield (
        f"Components {', '.join(component.name for component in deployment.components)}; flavors {flavors}; "
        f"{deployment.mode} mode"
        f"{scaling}{budget}; core pinning {'on' if deployment.servers.core_pinning else 'off'}. Offered: "
        f"{grouped(workload.range.min)} to {grouped(workload.range.max)} {workload.unit} by "
        f"{grouped(workload.increase)}{repeats}, "
        f"{workload.duration_s:g} s each. A load is carried where the indicator is at least "
        f"{100 * workload.threshold:g} % of it."
    )


def _sizes(sizing: Sizing) -> Iterator[Row]:
    for size in sizing.sizes:
        row: dict[str, object] = size.model_dump(
            include={"name", "vcpus", "memory_mb", "capacity", "overload_from", "deploy_s", "failed"}
        )
        best = size.name == sizing.best
        remarks = ("best" * best, "measured before, by the run that was resumed" * size.carried_over, size.failed)
        for at in size.capacities:
            estimate = f" ({at.estimate_in_words})" if at.estimate else ""
            row[f"at_{at.threshold:g}"] = at.carried
            row[f"at_{at.threshold:g}_words"] = None if at.carried is None else f"{grouped(at.carried)}{estimate}"
        yield {
            **row,
            "size": size.text,
            "tick": size.text.replace(", ", "\n"),
            "quantity": "capacity",
            "at_least": size.at_top,
            "shown": capacity_words(size, sizing.workload.unit),
            "per_vcpu": None if size.capacity is None else size.capacity / size.vcpus,
            "bottleneck": size.bottleneck or ("none is near its limit" if size.near_limit is False else None),
            "loads": len(size.offered),
            "best": best,
            "remarks": ", ".join(filter(None, remarks)),
        }


def _offered(sizing: Sizing) -> Iterator[Row]:
    """Indicator of every load, after the lines of the full load and of the threshold."""
    threshold = sizing.workload.threshold
    top = max((row.load for size in sizing.sizes for row in size.offered), default=0.0)
    for name, slope in (("indicator = offered load", 1.0), (f"threshold, {100 * threshold:g} %", threshold)):
        yield from ({"size": name, "load": load, "mean": slope * load, "reference": True} for load in (0.0, top))
    for size in sizing.sizes:
        for row in size.offered:
            spread = "" if row.stdev is None else f", standard deviation {row.stdev:.3g} of {len(row.indicators)}"
            yield {
                "size": size.text,
                "vcpus": f"{size.vcpus:g}",
                "load": row.load,
                "mean": row.mean,
                "low": row.mean - row.stdev if row.stdev else None,
                "high": row.mean + row.stdev if row.stdev else None,
                "stdev": row.stdev,
                "ratio": row.ratio,
                "point": f"{percent(row.ratio)} of the load{spread}",
                "indicators": " ".join(map(_short, row.indicators)),
                "use": ", ".join(f"{instance} {percent(use.cpu)}" for instance, use in row.use.items()),
                **{f"figure_{name}": value for name, value in row.figures.items()},
            }


def _loads(sizing: Sizing) -> Iterator[Row]:
    return (row for row in _offered(sizing) if "reference" not in row)


def _use(sizing: Sizing) -> Iterator[Row]:
    """Mean resource use of the instances of each component at each load."""
    for size in sizing.sizes:
        for row in size.offered:
            used = row.by_component()
            for name in (component.name for component in sizing.deployment.components if component.name in used):
                part = size.size.components[name]
                means: dict[str, float | None] = {}
                for what in ("cpu", "memory", "network_bps"):
                    known = [value for use in used[name] if (value := getattr(use, what)) is not None]
                    means[what] = fmean(known) if known else None
                flavor = f"{part.instances} x {part.flavor}"
                yield {"size": size.text, "component": name, "flavor": flavor, "load": row.load, **means}


def _overheads(sizing: Sizing) -> Iterator[Row]:
    words = {size.name: size.text for size in sizing.sizes}
    for row in sizing.overheads:
        yield {
            **row.model_dump(exclude={"components", "scaling"}),
            "base": words.get(row.base, row.base),
            "size": words.get(row.size, row.size),
            "scaling": f"scaling {row.scaling}",
            "step": "\nto\n".join(words.get(each, each) for each in (row.base, row.size)).replace(", ", "\n"),
            "components": ", ".join(row.components),
            "change": f"{row.vcpus_ratio:g} x vCPUs, {row.capacity_ratio:.2f} x capacity",
        }


def _times(value: float) -> str:
    return f"{value:.3g} x"


def _blocks(sizing: Sizing) -> Iterable[Block]:
    unit, name = sizing.workload.unit, sizing.deployment.vnf_name
    components = len(sizing.deployment.components)
    load = Column("load", f"offered load, {unit}")
    indicator = Column("mean", f"{_INDICATOR}, {unit}", ends=("low", "high"))
    figures = tuple(Column(f"figure_{each}", each, _short, choice=each) for each in sizing.figure_names)
    many = {"vCPUs": "vcpus"} if sum(bool(size.offered) for size in sizing.sizes) > _FEW else None
    thresholds = sizing.workload.all_thresholds[1:]
    capacities = (Column("capacity", f"capacity, {unit}"), Column("per_vcpu", f"capacity per vCPU, {unit}"))
    return (
        Sentences(_setup, paragraph=True),
        Table(
            "sizes",
            _sizes,
            (
                Column("size", "size: instances and flavor of each component", text=True),
                Column("vcpus", "vCPUs", _short),
                Column("memory_mb", "memory", lambda value: f"{value:,} MB"),
                Column("capacity", words="shown"),
                *(Column(f"at_{each:g}", f"at {percent(each)}", words=f"at_{each:g}_words") for each in thresholds),
                Column("per_vcpu", "capacity per vCPU", _short),
                Column("bottleneck", "busiest at the capacity", text=True),
                Column("overload_from", "oscillates from", _short),
                Column("loads", write=str),
                Column("deploy_s", "deployed in", seconds),
                Column("remarks", text=True),
                Column("name", "name in files", text=True),
            ),
            mark={"failed": "bad", "best": "worst best"},
            classes="loose",
        ),
        Sentences(lambda found: found.steps, "Search steps", numbered=True),
        Sentences(lambda found: found.notes, "Observations"),
        Table(
            "overheads",
            _overheads,
            (
                Column("scaling", text=True),
                Column("base", "from", text=True),
                Column("size", "to", text=True),
                Column("components", text=True),
                Column("vcpus_ratio", "vCPUs", _times),
                Column("capacity_ratio", "capacity", _times),
                Column("overhead_ratio", "overhead", percent, ends=("low", "high")),
            ),
            "Overhead of scaling",
            classes="loose",
        ),
        Plot(
            "indicator",
            f"{name}: indicator against offered load",
            _offered,
            load,
            indicator,
            colour="size",
            first_colour=components,
            facets=many,
            hover=("point",),
            reference="reference",
        ),
        Plot(
            "reported",
            f"{name}: values reported by the generator script against offered load",
            _loads,
            load,
            figures,
            colour="size",
            first_colour=components,
        ),
        Plot(
            "capacity",
            f"{name}: capacity of each size",
            _sizes,
            Column("tick", "size, in the order of measurement", text=True),
            capacities,
            colour="quantity",
            mark="bars",
            hover=("shown",),
            hollow="at_least",
            layout={"meta": {"width": 100 + 120 * len(sizing.sizes)}},
        ),
        Plot(
            "overhead",
            f"{name}: overhead of scaling, with 95 % intervals",
            _overheads,
            Column("step", text=True),
            Column("overhead_ratio", "overhead, % of the vCPUs", scale=100, ends=("low", "high")),
            colour="scaling",
            mark="bars",
            hover=("change",),
        ),
        Plot(
            "use",
            f"{name}: resource use by component",
            _use,
            load,
            (
                Column("cpu", "CPU, % of the flavor's", scale=100),
                Column("memory", "memory, % of the flavor's", scale=100),
                Column("network_bps", "network, Mbit/s sent and received", scale=1e-6),
            ),
            colour="component",
            choose=("size",),
            hover=("flavor",),
        ),
        Drawing(traces_figure),
        Plot(
            "oscillation",
            f"{name}: standard deviation of repetitions",
            _loads,
            load,
            Column("stdev", f"standard deviation, {unit}"),
            colour="size",
            first_colour=components,
            facets=many,
        ),
        Table(
            "sizing",
            _loads,
            (
                Column("size", text=True),
                Column("load", "load", _short),
                Column("mean", "indicator", _short, explain=("indicator", "the performance indicator")),
                Column("stdev", write=_short),
                Column("ratio", "of the load", percent),
                Column("indicators", "of each repetition", text=True),
                *figures,
                Column("use", "CPU of each instance", text=True),
            ),
            folded="Every load of every size",
            filter=True,
        ),
    )


def _summary(found: Sequence[View]) -> Iterator[Row]:
    for view in found:
        if (sizing := view.record.sizing) is not None:
            best = sizing.named().get(sizing.best)
            scaling = f", {sizing.deployment.scaling}" if sizing.deployment.mode != "custom" else ""
            planned = f" of {sizing.planned}" if sizing.planned else ""
            yield {
                "service": view,
                "mode": f"{sizing.deployment.mode}{scaling}",
                "pinning": "on" if sizing.deployment.servers.core_pinning else "off",
                "sizes": f"{len(sizing.sizes)}{planned}",
                "best": best and best.text,
                "vcpus": best and best.vcpus,
                "capacity": best and best.capacity,
                "shown": best and capacity_words(best, sizing.workload.unit),
                "stopped": sizing.stopped,
            }


_SUMMARY = Table(
    "sizings",
    _summary,
    (
        Column("service", text=True, link=True),
        Column("mode", text=True),
        Column("pinning", "core pinning", text=True),
        Column("sizes", text=True),
        Column("best", "best size", text=True),
        Column("vcpus", "vCPUs", _short),
        Column("capacity", words="shown"),
        Column("stopped", "ended", text=True),
    ),
    classes="loose",
)


def _overview(found: Sequence[View]) -> Iterator[tuple[RecordTables, Block]]:
    yield RecordTables("overview", any(view.simulated for view in found), found), _SUMMARY
    groups: dict[tuple[object, ...], list[tuple[View, Sizing]]] = {}
    for view in found:
        sizing = view.record.sizing
        if sizing is not None and any(size.offered for size in sizing.sizes):
            key = (view.record.testbed, view.simulated, sizing.workload.unit)
            groups.setdefault(key, []).append((view, sizing))
    several = (own for own in groups.values() if len(own) > 1)
    for number, own in enumerate(several, 1):
        yield RecordTables("sizings", own[0][0].simulated, own), _side_by_side(number, own)
    for number, (option, series) in enumerate(_series(found), 1):
        yield RecordTables("sizings-option", series[0][1].simulated, series), _over_option(number, option, series)


def _side_by_side(number: int, own: Sequence[tuple[View, Sizing]]) -> Plot:
    """Sizings of one testbed whose loads have the same unit: a colour for each size, a dash for each sizing."""
    view, first = own[0]
    unit = first.workload.unit
    what = ", ".join(dict.fromkeys(sizing.deployment.vnf_name for _, sizing in own))
    return Plot(
        f"{number}",
        f"{what} on {view.record.testbed}: indicator against offered load, sizings side by side",
        _named_rows,
        Column("load", f"offered load, {unit}"),
        (
            Column("mean", f"{_INDICATOR}, {unit}", choice="indicator"),
            Column("ratio", "indicator, % of the offered load", scale=100, choice="share of the load"),
            *_figures(sizing for _, sizing in own),
        ),
        colour="size",
        first_colour=len(first.deployment.components),
        dash="sizing",
        facets={"sizing": "sizing", "size": "size"},
    )


def _figures(sizings: Iterable[Sizing]) -> tuple[Column, ...]:
    names = dict.fromkeys(name for sizing in sizings for name in sizing.figure_names)
    return tuple(Column(f"figure_{name}", name, choice=name) for name in names)


def _named_rows(own: Sequence[tuple[View, Sizing]]) -> Iterator[Row]:
    """Named by what differs among them: service, core pinning, traffic; by their tests where that is not enough."""
    aspects = [_aspects(sizing) for _, sizing in own]
    keys = dict.fromkeys(key for row in aspects for key in row)
    differing = [key for key in keys if len({row.get(key) for row in aspects}) > 1]
    names = [", ".join(row[key] for key in differing if key in row) for row in aspects]
    if len(set(names)) < len(names):
        names = [view.record.test_name for view, _ in own]
    for (_, sizing), name in zip(own, names, strict=True):
        yield from ({**row, "sizing": name} for row in _loads(sizing))


def _aspects(sizing: Sizing) -> dict[tuple[str, ...], str]:
    deployment, workload = sizing.deployment, sizing.workload
    return {
        ("service",): deployment.vnf_name,
        ("pinning",): "pinned" if deployment.servers.core_pinning else "not pinned",
        **{("service", name): f"{name} {option.chosen}" for name, option in deployment.options.items()},
        ("traffic",): PurePath(workload.generator).stem,
        **{("traffic", name): f"{name} {option.chosen}" for name, option in workload.options.items()},
    }


_Series = Sequence[tuple[float, View]]
"""Sizings that differ in one numeric option of the workload only, by its value, lowest first."""


def _series(found: Sequence[View]) -> Iterator[tuple[str, _Series]]:
    groups: dict[tuple[object, ...], dict[float, View]] = {}
    for view in found:
        sizing = view.record.sizing
        for name, option in sizing.workload.options.items() if sizing is not None and sizing.figure_names else ():
            if (value := _number(option.chosen)) is not None:
                options = {key: each for key, each in sizing.workload.options.items() if key != name}
                rest = sizing.workload.model_copy(update={"options": options})
                key = (name, view.record.testbed, view.simulated, repr(sizing.deployment), repr(rest))
                groups.setdefault(key, {}).setdefault(value, view)  # the first of several of one value
    for (name, *_), views in groups.items():
        if len(views) > 1:
            yield str(name), sorted(views.items(), key=lambda pair: pair[0])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _over_option(number: int, option: str, series: _Series) -> Plot:
    view = series[0][1]
    sizing: Sizing = view.record.sizing
    chosen = ", ".join([each.chosen for each in sizing.deployment.options.values()])
    where = f"{sizing.deployment.vnf_name} on {view.record.testbed}"
    return Plot(
        f"{number}",
        f"{where}: values reported by the generator script against {option}{f', {chosen}' * bool(chosen)}",
        partial(_option_rows, sizing.workload.unit),
        Column("value", f"{option}, option of the workload"),
        (
            *_figures(each.record.sizing for _, each in series),
            Column("mean", f"{_INDICATOR}, {sizing.workload.unit}", choice="indicator"),
        ),
        colour="size",
        first_colour=len(sizing.deployment.components),
        choose=("offered",),
    )


def _option_rows(unit: str, series: _Series) -> Iterator[Row]:
    rows = [{**row, "value": value} for value, view in series for row in _loads(view.record.sizing)]
    for row in sorted(rows, key=lambda row: -row["load"]):
        yield {**row, "offered": f"{row['load']:g} {unit}"}


def _capacity(record: SizingRecord, figure: PublishedFigure) -> float | None:
    """Return the capacity of the same size under calls of the same kind."""
    sizing = record.sizing
    if sizing is None:
        return None
    calls = {PurePath(sizing.workload.generator).stem, *(each.chosen for each in sizing.workload.options.values())}
    if figure.condition not in calls:
        return None
    return next((size.capacity for size in sizing.sizes if size.name == figure.match), None)


PAGE = record_page(
    "sizings",
    "Sizing",
    "sizing",
    _blocks,
    overview=Overview("Capacity by deployment size", ("size-capacity", "the capacity of a size"), _overview),
    published=_capacity,
)


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
        ("capacity",),
    ),
)
CAPACITY = Measure("capacity", OF_WORKLOAD)
"""Highest load that a deployment size carries."""


def _measured(sizing: Sizing) -> Iterator[MeasuredSubject]:
    for size in sizing.sizes:
        step = sizing.workload.increase
        found = size.capacity
        values: tuple[MeasuredValue, ...] = ()
        if found is not None:
            lowest, highest = found, None if size.at_top else found + step
            for at in size.capacities[:1]:
                if at.low is not None and at.high is not None:
                    lowest, highest = min(found, at.low), max(found, at.high)
            values = (MeasuredValue(CAPACITY, found, lowest, highest),)
        yield MeasuredSubject(
            values,
            sizing.deployment.vnf_name,
            Dimensions(1, len(size.size.components)),
            size.name,
            sizing.workload.unit,
            sizing.workload.generator,
        )


def _identity(sizing: Sizing) -> object:
    return sizing.deployment.model_dump_json(), sizing.workload.model_dump_json()


def _preview(name: str, keys: Mapping[str, str]) -> SizingCost:
    asked = load_sizing(specification_file(name), keys)
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
            measures=(CAPACITY,),
            measured=_measured,
            tables=lambda record: () if record.sizing is None else (("sizing", sizing_rows(record.sizing)),),
            queried=QueriedTables(
                {"sizing": SIZING_COLUMNS},
                texts=("size", "bottleneck", "failed"),
                counts=("vcpus", "memory_mb", "capacity_is_at_least", "near_limit"),
            ),
            name_first=lambda sizing: best_size(sizing) is not None,
        ),
    ),
    explanations={"Sizing": EXPLANATIONS},
    preview=_preview,
)
