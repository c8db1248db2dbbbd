"""Delay and loss of each part of suspect chains, beside what the VNFs alone predict."""

from collections.abc import Sequence
from html import escape
from operator import attrgetter

from csit_utils.report.figures import Figure, Json, bars, categories, one_choice
from csit_utils.studies.chains.behaviour_figures import MAX_SHOWN, choice_of, workload_words
from resources.libraries.python.model.measurements.features import VSWITCH
from resources.libraries.python.studies.chains.analysis.features import LOSS
from resources.libraries.python.studies.chains.analysis.prediction import DELAY, PartComparison, compare_parts
from resources.libraries.python.studies.chains.model.record import ChainStudy, Suspect
from resources.libraries.python.studies.chains.model.spec import Workload

_QUANTITIES = {DELAY: ("delay without load", "µs", 1e6), LOSS: ("loss", "% of packets", 100.0)}
"""Name, unit, and factor of the unit."""
_PX_PER_PART = 130


def parts_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """Return measured and predicted bars of each part, a choice for each suspect and quantity."""
    chosen = {
        rank: (suspect, workload)
        for rank, suspect in enumerate(study.suspects[:MAX_SHOWN], 1)
        if (workload := _workload_of(suspect)) is not None
    }
    runs = (*study.path, *study.runs, *study.repeated)
    found = compare_parts(runs, {(suspect.chain, workload) for suspect, workload in chosen.values()})
    variants: Json = {}
    for rank, (suspect, workload) in chosen.items():
        places = {owner: place for place, owner in enumerate((*suspect.chain.order, VSWITCH))}
        for feature, (name, unit, factor) in _QUANTITIES.items():
            rows = [row for row in found.get((suspect.chain, workload), []) if row.feature == feature]
            rows.sort(key=lambda row: places[row.owner])
            if any(row.measured or row.expected for row in rows):
                variants[f"{choice_of(rank, suspect)}: {name}"] = {
                    "data": [_bars("measured", rows, 0, factor, unit), _bars("predicted", rows, 1, factor, unit)],
                    "layout": categories(
                        f"{name}, {unit}",
                        xaxis={"type": "category", "title": {"text": escape(workload_words(workload))}},
                        barmode="group",
                        meta={"width": 90 + _PX_PER_PART * len(rows)},
                    ),
                }
    title = "Delay and loss of the parts of suspects, measured and predicted"
    return one_choice(f"{anchor}-parts", title, variants, simulated=simulated)


def _workload_of(suspect: Suspect) -> Workload | None:
    """The workload under which a suspect stands out most."""
    strongest = max(suspect.worse, key=attrgetter("strength"), default=None)
    shown = strongest or (suspect.distances[0] if suspect.distances else None)
    return None if shown is None else shown.workload


def _bars(name: str, rows: Sequence[PartComparison], colour: int, factor: float, unit: str) -> Json:
    """Measured bars have the interval of their difference from the prediction."""
    is_measured = name == "measured"
    values = [factor * (row.measured if is_measured else row.expected) for row in rows]
    texts = []
    for row, value in zip(rows, values, strict=True):
        interval = f" ± {factor * row.half:.3g}" if is_measured and row.half is not None else ""
        texts.append(f"{escape(row.owner)}, {name}: {value:.3g}{interval} {unit}")
    points = [(escape(row.owner), value) for row, value in zip(rows, values, strict=True)]
    trace = bars(name, points, colour, texts=texts)
    if is_measured and any(row.half for row in rows):
        trace["error_y"] = {"type": "data", "array": [factor * (row.half or 0.0) for row in rows]}
    return trace
