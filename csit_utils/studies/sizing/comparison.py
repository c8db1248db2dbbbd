"""Sizings side by side: the same sizes with and without core pinning, under other traffic, or of another service."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import PurePath

from csit_utils.report.figures import Figure, Json
from csit_utils.report.study import View
from resources.libraries.python.studies.sizing.model.spec import Offered, Sizing

_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon", "cross", "pentagon")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_SIZE = "size"

_Ways = dict[str, tuple[str, Callable[[Offered], float | None]]]


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
    return [_figure(f"sizings-{number}", _named(own)) for number, own in enumerate(groups.values(), 1) if len(own) > 1]


def _named(own: Sequence[tuple[View, Sizing]]) -> list[_Own]:
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
            "data": list(_lines(own, sizes, value, axis)),
            "layout": {
                "xaxis": {"title": {"text": escape(f"offered load, {unit}")}, "rangemode": "tozero"},
                "yaxis": {"title": {"text": escape(axis)}, "rangemode": "tozero"},
            },
        }
        for way, (axis, value) in ways.items()
    }
    what = ", ".join(dict.fromkeys(each.sizing.deployment.vnf_name for each in own))
    title = f"{what} on {own[0].view.record.testbed}: indicator against offered load, sizings side by side"
    simulated = own[0].view.record.simulated
    return Figure(identity, title, simulated, (tuple(variants),), variants, ("sizing", _SIZE))


def _value(name: str, row: Offered) -> float | None:
    return row.figures.get(name)


def _lines(
    own: Sequence[_Own], sizes: Sequence[str], value_of: Callable[[Offered], float | None], axis: str
) -> Iterator[Json]:
    """A colour for each size, a dash for each sizing."""
    for number, each in enumerate(own):
        for size in each.sizing.sizes:
            rows = [(row.load, value) for row in size.offered if (value := value_of(row)) is not None]
            if rows:
                name = escape(f"{size.name}, {each.name}")
                yield {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": name,
                    "x": [load for load, _ in rows],
                    "y": [float(f"{value:.5g}") for _, value in rows],
                    "hovertemplate": f"{name}<br>offered %{{x:g}}: %{{y:.4~g}} ({escape(axis)})<extra></extra>",
                    "line": {"width": 2, "dash": _DASHES[number % len(_DASHES)]},
                    "marker": {"size": 7, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
                    "meta": {"colour": sizes.index(size.name), "facets": {"sizing": each.name, _SIZE: size.name}},
                }
