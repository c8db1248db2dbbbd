"""Sizings side by side: the same sizes with and without core pinning, under other traffic, or of another service."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePath

from csit_utils.report.characterized import View
from csit_utils.report.figures import Figure, Json
from resources.libraries.python.model.sizing import Offered, Sizing

_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "star", "hexagon", "cross", "pentagon")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_SIZE = "size"

_Ways = Mapping[str, tuple[str, Callable[[Offered], float]]]


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
    differing = [number for number in range(len(aspects[0])) if len({row[number] for row in aspects}) > 1]
    names = [", ".join(row[number] for number in differing) for row in aspects]
    if len(set(names)) < len(names):
        names = [view.record.test_name for view, _ in own]
    return [_Own(view, sizing, name) for (view, sizing), name in zip(own, names, strict=True)]


def _aspects(sizing: Sizing) -> tuple[str, str, str, str, str]:
    pinning = "pinned" if sizing.deployment.servers.core_pinning else "not pinned"
    service, traffic = (
        " ".join(f"{name} {option.chosen}" for name, option in options.items())
        for options in (sizing.deployment.options, sizing.workload.options)
    )
    return sizing.deployment.vnf_name, pinning, service, PurePath(sizing.workload.generator).stem, traffic


def _figure(identity: str, own: Sequence[_Own]) -> Figure:
    unit = own[0].sizing.workload.unit
    ways: _Ways = {
        "indicator": (f"performance indicator, {unit}", lambda row: row.mean),
        "share of the load": ("indicator, % of the offered load", lambda row: 100 * row.ratio),
    }
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


def _lines(own: Sequence[_Own], sizes: Sequence[str], value: Callable[[Offered], float], axis: str) -> Iterator[Json]:
    """A colour for each size, a dash for each sizing."""
    for number, each in enumerate(own):
        for size in each.sizing.sizes:
            if size.offered:
                name = escape(f"{size.name}, {each.name}")
                yield {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": name,
                    "x": [row.load for row in size.offered],
                    "y": [float(f"{value(row):.5g}") for row in size.offered],
                    "hovertemplate": f"{name}<br>offered %{{x:g}}: %{{y:.4~g}} ({escape(axis)})<extra></extra>",
                    "line": {"width": 2, "dash": _DASHES[number % len(_DASHES)]},
                    "marker": {"size": 7, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
                    "meta": {"colour": sizes.index(size.name), "facets": {"sizing": each.name, _SIZE: size.name}},
                }
