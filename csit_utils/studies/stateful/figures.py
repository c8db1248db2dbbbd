"""Figures of a study of stateful density: rates by the number of instances, and the trials of the search."""

from collections.abc import Callable

from csit_utils.report.figures import Figure, Json
from resources.libraries.python.studies.stateful.model.record import CellConnections, Phase, StatefulDensity

_Value = Callable[[CellConnections], float | None]
_QUANTITIES: dict[str, tuple[str, _Value]] = {
    "new connections": ("new connections/s", lambda cell: cell.rate.lower_cps),
    "TCP connections": ("TCP connections/s", lambda cell: cell.tcp.rate.lower_cps if cell.tcp else None),
    "tear-downs": ("tear-downs/s", lambda cell: cell.tear_down_cps),
    "capacity": ("entries", lambda cell: cell.capacity.entries * cell.instances if cell.capacity else None),
}
_PER_INSTANCE = ("in sum", "per instance")


def density(anchor: str, found: StatefulDensity, *, simulated: bool) -> Figure:
    """Each quantity by the number of instances, a line for each number of network functions of an instance."""
    nodes = sorted({cell.nodes for cell in found.cells})
    shown = [name for name, (_, value) in _QUANTITIES.items() if any(value(cell) for cell in found.cells)]
    variants: Json = {
        f"{name}|{share}": {
            "data": [_line(found, name, number, per_instance=share == _PER_INSTANCE[1]) for number in nodes],
            "layout": {
                "xaxis": {"title": {"text": "service instances"}, "rangemode": "tozero", "dtick": 1},
                "yaxis": {"title": {"text": _QUANTITIES[name][0]}, "rangemode": "tozero"},
            },
        }
        for name in shown
        for share in _PER_INSTANCE
    }
    return Figure(
        f"{anchor}-density",
        "Connections by the number of instances",
        simulated,
        (tuple(shown), _PER_INSTANCE),
        variants,
    )


def _line(found: StatefulDensity, name: str, nodes: int, *, per_instance: bool) -> Json:
    cells = sorted((cell for cell in found.cells if cell.nodes == nodes), key=lambda cell: cell.instances)
    value = _QUANTITIES[name][1]
    values = [(cell.instances, value(cell)) for cell in cells]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{nodes} NF{'s' if nodes > 1 else ''} per instance",
        "x": [instances for instances, _ in values],
        "y": [
            None if number is None else float(f"{number / (instances if per_instance else 1):.6g}")
            for instances, number in values
        ],
        "meta": {"colour": nodes - 1},
    }


def search(anchor: str, found: StatefulDensity, *, simulated: bool) -> Figure:
    """Established share of the connections by offered rate, of every trial of the search of each cell."""
    variants: Json = {
        cell.name: {
            "data": [_trials(cell, complete=True), _trials(cell, complete=False)],
            "layout": {
                "xaxis": {"title": {"text": "offered rate, new connections/s"}, "rangemode": "tozero"},
                "yaxis": {"title": {"text": "established, %"}},
            },
        }
        for cell in found.cells
    }
    names = tuple(cell.name for cell in found.cells)
    return Figure(f"{anchor}-search", "Trials of the establishment rate", simulated, (names,), variants)


def _trials(cell: CellConnections, *, complete: bool) -> Json:
    trials = [each for each in cell.trials if each.phase is Phase.RATE and each.complete is complete]
    shares = [
        sum(row.established for row in each.instances) / max(1, sum(row.sent for row in each.instances))
        for each in trials
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "all established" if complete else "some failed",
        "x": [float(f"{each.load_cps:.6g}") for each in trials],
        "y": [float(f"{100 * share:.6g}") for share in shares],
        "meta": {"colour": 0 if complete else 1},
    }
