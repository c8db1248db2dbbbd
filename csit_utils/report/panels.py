"""Figures of several stacked panels with a common horizontal axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from csit_utils.report.figures import Json

_PANEL_PX = 210
"""Height of a panel."""
_GAP = 0.06
"""Gap between two panels, as a share of the figure's height."""


@dataclass(frozen=True)
class Panel:
    """One quantity over the common axis."""

    axis: Json
    """Its vertical axis, as Plotly takes it."""
    traces: Sequence[Json]
    """Traces, named by their line in all panels; those without a value are omitted."""


def stacked(panels: Sequence[Panel], across: Json) -> Json:
    """Return a variant of a figure, the first panel on top; empty panels are omitted.

    Args:
        panels: Each with its traces.
        across: The common horizontal axis.
    """
    found = [(panel, drawn) for panel in panels if (drawn := [trace for trace in panel.traces if has_values(trace)])]
    layout: Json = {"height": 100 + _PANEL_PX * max(1, len(found))}
    data: list[Json] = []
    listed: set[str] = set()
    share = (1 + _GAP) / max(1, len(found))
    for number, (panel, traces) in enumerate(found):
        suffix = str(number + 1) if number else ""
        top = 1 - number * share
        layout[f"yaxis{suffix}"] = {**panel.axis, "domain": [round(max(0.0, top - share + _GAP), 4), round(top, 4)]}
        for trace in traces:
            # One entry in the legend stands for the line in all panels.
            legend = {"legendgroup": trace["name"], "showlegend": trace["name"] not in listed}
            listed.add(trace["name"])
            data.append({**trace, **({"yaxis": f"y{suffix}"} if suffix else {}), **legend})
    bottom = str(len(found)) if len(found) > 1 else ""
    return {"data": data, "layout": {**layout, "xaxis": {**across, "anchor": f"y{bottom}"}}}


def has_values(trace: Json) -> bool:
    """Whether a trace has a value."""
    return any(value is not None for value in trace["y"])
