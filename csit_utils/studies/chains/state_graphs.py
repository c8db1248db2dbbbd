"""Graphs of state transitions of the VNFs of suspects, made by hand."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from math import cos, pi, sin, sqrt

from csit_utils.report.figures import Figure, Json, one_choice, scatter
from csit_utils.report.units import digits3, seconds
from resources.libraries.python.model.measurements.features import Edge, StateGraph
from resources.libraries.python.studies.chains.model import ChainStudy, Suspect
from resources.libraries.python.studies.chains.model.spec import Member

MAX_SHOWN = 6
"""Suspects with plots."""
_EXIT = "kvm_exit:"
_MAX_EDGES = 24
"""Maximum number of edges of a picture, those with the most time; more are unreadable."""
_MAX_PX = 9.0
_MIN_PX = 1.2
_BEND = 0.18
"""Curvature relative to the distance of two events, so that both directions are distinguishable."""
_STEPS = 4


def choice_of(rank: int, suspect: Suspect) -> str:
    """Label of a suspect in a list: `1. nat > gateway`."""
    return f"{rank}. {suspect.chain.name}"


def graphs_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """State transitions of each VNF of the first suspects, at the largest volume that was traced."""
    variants: Json = {}
    for rank, suspect in enumerate(study.suspects[:MAX_SHOWN], 1):
        for graph in graphs_of(study, suspect):
            if graph.edges:
                variants[f"{choice_of(rank, suspect)}: {graph.owner}"] = _picture(graph)
    return one_choice(f"{anchor}-graphs", "State transitions", variants, simulated=simulated)


def graphs_of(study: ChainStudy, suspect: Suspect) -> Sequence[StateGraph]:
    """State transitions of the VNFs of a suspect at the largest volume that was traced."""
    runs = [run for run in study.runs if run.chain == suspect.chain and run.graphs]
    return max(runs, key=lambda run: run.workload.volume_bps).graphs if runs else ()


def _picture(graph: StateGraph) -> Json:
    edges = sorted(graph.edges, key=lambda edge: (-edge.seconds, -edge.count))[:_MAX_EDGES]
    names = _walk(edges)
    places = {name: _on_circle(number, len(names)) for number, name in enumerate(names)}
    most = max(edge.seconds for edge in edges) or 1.0
    lines = [_arrow(edge, places, edge.seconds / most, graph) for edge in reversed(edges)]
    vertices = scatter(
        "events",
        [places[name] for name in names],
        0,
        hover="%{hovertext}",
        mode="markers+text",
        showlegend=False,
        text=[_label(name) for name in names],
        textposition=[_side(places[name]) for name in names],
        hovertext=[_vertex_words(name, graph) for name in names],
        cliponaxis=False,
        marker={"size": 12},
    )
    hidden = {"visible": False, "fixedrange": True}
    # Room for labels: beside the circle they are as wide as a third of the picture.
    layout: Json = {
        "xaxis": {**hidden, "range": [-1.8, 1.8]},
        "yaxis": {**hidden, "range": [-1.35, 1.35], "scaleanchor": "x"},
        "height": 470,
        "meta": {"width": 430},
        "annotations": [
            {
                "text": escape(_note(graph, len(edges))),
                "showarrow": False,
                "font": {"color": "dim", "size": 11},
                "xanchor": "left",
                "yanchor": "top",
            }
            | {"x": 0, "y": 0, "xref": "paper", "yref": "paper", "align": "left"}
        ],
    }
    return {"data": [*lines, vertices], "layout": layout}


def _note(graph: StateGraph, shown: int) -> str:
    left = len(graph.edges) - shown
    some = f"the {shown} transitions with the most time, {left} more are in transitions.csv; " if left else ""
    lost = f", {graph.lost:,} lost" if graph.lost else ""
    return f"{some}{graph.events:,} events in {seconds(graph.traced_s)}{lost}"


def _walk(edges: Sequence[Edge]) -> list[str]:
    """Events in the order in which they follow each other most often: the usual way is along the circle."""
    often = sorted(edges, key=lambda edge: -edge.count)
    left = list(dict.fromkeys(name for edge in edges for name in (edge.before, edge.after)))
    walk: list[str] = []
    while left:
        walk.append(left.pop(0))
        while found := next((edge.after for edge in often if edge.before == walk[-1] and edge.after in left), None):
            left.remove(found)
            walk.append(found)
    return walk


def _on_circle(number: int, of: int) -> tuple[float, float]:
    angle = pi / 2 - 2 * pi * number / of
    return round(cos(angle), 3), round(sin(angle), 3)


def _label(name: str) -> str:
    """In two lines: the event, and its data."""
    return "<br>".join(map(escape, name.removeprefix("sched_").split(":", 1)))


def _side(place: tuple[float, float]) -> str:
    """Away from the circle."""
    if abs(place[0]) < 0.2:
        return "top center" if place[1] > 0 else "bottom center"
    return f"middle {'right' if place[0] > 0 else 'left'}"


def _arrow(edge: Edge, places: dict[str, tuple[float, float]], share: float, graph: StateGraph) -> Json:
    """A curve from event to event; a loop inside the circle where both are one."""
    rate = edge.count / graph.traced_s if graph.traced_s else 0.0
    width = round(_MIN_PX + (_MAX_PX - _MIN_PX) * sqrt(share), 1)
    words = f"{escape(edge.before)} → {escape(edge.after)}<br>{digits3(rate)} times a second"
    ends = [0] * (_STEPS // 2)
    return scatter(
        "transition",
        _way(places[edge.before], places[edge.after]),
        2,
        hover=f"{words}, {seconds(edge.seconds)} in all",
        showlegend=False,
        line={"width": width, "shape": "spline"},
        marker={"size": [*ends, round(8 + 1.7 * width), *ends], "symbol": "arrow", "angleref": "previous"}
        | {"opacity": 1, "line": {"width": 0}},
        opacity=0.75,
    )


def _way(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Points of a quadratic Bézier curve (of a circle where both ends are one)."""
    (x0, y0), (x1, y1) = start, end
    if start == end:
        turns = [2 * pi * step / _STEPS for step in range(_STEPS + 1)]
        return [
            (
                round(x0 - 0.13 * (x0 * (1 - cos(t)) + y0 * sin(t)), 3),
                round(y0 - 0.13 * (y0 * (1 - cos(t)) - x0 * sin(t)), 3),
            )
            for t in turns
        ]
    x, y = (x0 + x1) / 2 + _BEND * (y1 - y0), (y0 + y1) / 2 - _BEND * (x1 - x0)
    steps = [step / _STEPS for step in range(_STEPS + 1)]
    return [
        (
            round((1 - t) ** 2 * x0 + 2 * t * (1 - t) * x + t * t * x1, 3),
            round((1 - t) ** 2 * y0 + 2 * t * (1 - t) * y + t * t * y1, 3),
        )
        for t in steps
    ]


def _vertex_words(name: str, graph: StateGraph) -> str:
    count = sum(edge.count for edge in graph.edges if edge.before == name)
    rate = count / graph.traced_s if graph.traced_s else 0.0
    return f"{escape(name)}<br>{digits3(rate)} times a second"


def graphs_alone(study: ChainStudy) -> Mapping[Member, StateGraph]:
    """Return the transitions of VNFs alone at the largest volume that was traced."""
    runs = [run for run in study.runs if len(run.chain.members) == 1 and run.graphs and run.failed is None]
    found: dict[Member, StateGraph] = {}
    for run in sorted(runs, key=lambda run: run.workload.volume_bps):
        (member,) = run.chain.members
        found[member] = next((graph for graph in run.graphs if graph.owner == member.name), run.graphs[0])
    return found


def rates_of(graph: StateGraph) -> Mapping[str, float]:
    """Events by how often they come in a second: each begins one transition. Of KVM, exits only."""
    counts: Counter[str] = Counter()
    for edge in graph.edges:
        if graph.source != "kvm" or edge.before.startswith(_EXIT):
            counts[edge.before.removeprefix(_EXIT)] += edge.count
    return {name: count / graph.traced_s for name, count in counts.items()} if graph.traced_s else {}
