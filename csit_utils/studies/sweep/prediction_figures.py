"""A chain as it was predicted and as it was measured."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from csit_utils.report.figures import Figure, Json
from csit_utils.studies.sweep.figures import FIRST_SCALE, NAMES, SCALES, axes, place, saturation, shown
from csit_utils.studies.sweep.words import MODELS, kind_words, vnf_words
from resources.libraries.python.studies.sweep.analysis.sentences import UNITS
from resources.libraries.python.studies.sweep.model.profile import Prediction, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepRecord, Vnf

_DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot")


def chain_figures(anchor: str, record: SweepRecord) -> list[Figure]:
    """A plot of each metric: measured points, and a line for each model."""
    sweep = record.sweep
    if sweep is None or not record.predictions:
        return []
    return [
        _figure(f"{anchor}-chain-{metric.value}", record, sweep, metric)
        for metric in ProfileMetric
        if any(metric in point.predicted for prediction in record.predictions for point in prediction.points)
    ]


def _figure(identity: str, record: SweepRecord, sweep: Sweep, metric: ProfileMetric) -> Figure:
    first = FIRST_SCALE[metric]
    scales = (
        (first, *(scale for scale in SCALES if scale != first)) if metric is not ProfileMetric.THROUGHPUT else (first,)
    )
    layout = saturation(record.profile.break_point if record.profile else None)
    variants: Json = {
        scale: {
            "data": [_measured(sweep, metric, scale), *_predicted(record.predictions, metric, scale)],
            "layout": axes(metric, scale) | layout,
        }
        for scale in scales
    }
    return Figure(identity, f"{NAMES[metric].capitalize()} of {sweep.name}", record.simulated, (scales,), variants)


def _measured(sweep: Sweep, metric: ProfileMetric, scale: str) -> Json:
    places = [place(point, sweep.spec.frame) for point in sweep.points]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "x": [shown(each.rate, "") for each in places],
        "y": [shown(each.values[metric], scale) for each in places],
        "text": [each.text(metric) for each in places],
        "hovertemplate": "measured<br>%{text}<extra></extra>",
        "marker": {"size": 9},
        "meta": {"colour": 0},
    }


def _predicted(predictions: Sequence[Prediction], metric: ProfileMetric, scale: str) -> Iterator[Json]:
    rows = [(f"predicted {MODELS[each.model]}", _values(each, metric)) for each in predictions]
    if metric is ProfileMetric.DELAY:
        rows += [(f"plain sum of delays, {MODELS[each.model]}", _summed(each)) for each in predictions]
    for number, (name, line) in enumerate(((name, line) for name, line in rows if line), 1):
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": [shown(rate, "") for rate, _ in line],
            "y": [shown(value, scale) for _, value in line],
            "hovertemplate": f"{name}<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} {UNITS[metric]}<extra></extra>",
            "line": {"width": 2, "dash": _DASHES[number % len(_DASHES)]},
            "meta": {"colour": number},
        }


def _values(prediction: Prediction, metric: ProfileMetric) -> list[tuple[float, float]]:
    return [(point.rate, point.predicted[metric]) for point in prediction.points if metric in point.predicted]


def _summed(prediction: Prediction) -> list[tuple[float, float]]:
    return [(point.rate, point.summed_delay) for point in prediction.points if point.summed_delay is not None]


def cpu_figure(anchor: str, record: SweepRecord, alone: Mapping[str, Sweep]) -> Figure | None:
    """CPU of every VNF of a chain, and of the same kind of VNF alone.

    Args:
        anchor: Of the chain.
        record: Of the chain.
        alone: Sweeps of VNFs alone by kind, as `kind_words` has it; where packets split up they are shown at the rate
            that each branch got.
    """
    sweep = record.sweep
    if sweep is None or not any(point.cpu for point in sweep.points):
        return None
    kinds = list(dict.fromkeys(kind_words(vnf) for vnf in sweep.vnfs))
    inside = [_line(sweep, vnf, kinds, number) for number, vnf in enumerate(sweep.vnfs)]
    lone = [_alone(alone[kind], kinds.index(kind)) for kind in kinds if kind in alone]
    layout = {
        "xaxis": {"title": {"text": "rate through the VNF, Gbit/s"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "CPU, % of one vCPU"}, "rangemode": "tozero"},
    }
    variants = {"all": {"data": [*inside, *lone], "layout": layout}}
    title = f"CPU in {sweep.name} and alone"
    return Figure(f"{anchor}-chain-cpu", title, record.simulated, (("all",),), variants)


def share_of(sweep: Sweep, vnf: Vnf) -> float:
    """Return the share of the chain's rate that goes through a VNF: a branch of two gets half."""
    instance, node = (int(word) for word in vnf.name.split("-")[1:3])
    return 1.0 if instance == 0 else 1.0 / sweep.cell.count_of(node)


def _line(sweep: Sweep, vnf: Vnf, kinds: Sequence[str], number: int) -> Json:
    points = [point for point in sweep.points if vnf.name in point.cpu]
    share, name = share_of(sweep, vnf), escape(vnf_words(vnf))
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [shown(share * place(point, sweep.spec.frame).rate, "") for point in points],
        "y": [float(f"{100 * sum(point.cpu[vnf.name]):.4g}") for point in points],
        "hovertemplate": f"{name}<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} % of one vCPU<extra></extra>",
        "line": {"width": 2},
        "marker": {"size": 7, "symbol": ("circle", "diamond", "square", "triangle-up")[number % 4]},
        "meta": {"colour": kinds.index(kind_words(vnf))},
    }


def _alone(sweep: Sweep, colour: int) -> Json:
    vnf = sweep.vnfs[0]
    return _line(sweep, vnf, [kind_words(vnf)], 0) | {
        "name": escape(f"{kind_words(vnf)} alone"),
        "hovertemplate": f"{escape(kind_words(vnf))} alone<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} % of one vCPU"
        "<extra></extra>",
        "line": {"width": 2, "dash": "dot"},
        "marker": {"size": 7, "symbol": "x-thin-open"},
        "meta": {"colour": colour},
    }
