"""A chain as it was predicted and as it was measured."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from csit_utils.report.figures import SYMBOLS, Figure, Json, axes, no_choice, scatter
from csit_utils.studies.sweep.figures import metric_figure, place, shown, use_line
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
        metric_figure(f"{anchor}-chain-{metric.value}", record, sweep, metric, partial(_traces, record, sweep, metric))
        for metric in ProfileMetric
        if any(metric in point.predicted for prediction in record.predictions for point in prediction.points)
    ]


def _traces(record: SweepRecord, sweep: Sweep, metric: ProfileMetric, scale: str) -> Iterator[Json]:
    yield _measured(sweep, metric, scale)
    yield from _predicted(record.predictions, metric, scale)


def _measured(sweep: Sweep, metric: ProfileMetric, scale: str) -> Json:
    places = [place(point, sweep.spec.frame) for point in sweep.points]
    return scatter(
        "measured",
        [(each.rate, shown(each.values[metric], scale)) for each in places],
        0,
        texts=[each.text(metric) for each in places],
        hover="measured<br>%{text}",
        mode="markers",
        marker={"size": 9},
    )


def _predicted(predictions: Sequence[Prediction], metric: ProfileMetric, scale: str) -> Iterator[Json]:
    rows = [(f"predicted {MODELS[each.model]}", _values(each, metric)) for each in predictions]
    if metric is ProfileMetric.DELAY:
        rows += [(f"plain sum of delays, {MODELS[each.model]}", _summed(each)) for each in predictions]
    for number, (name, line) in enumerate(((name, line) for name, line in rows if line), 1):
        yield scatter(
            name,
            [(rate, shown(value, scale)) for rate, value in line],
            number,
            hover=f"{name}<br>%{{x:.4~g}} Gbit/s: %{{y:.4~g}} {UNITS[metric]}",
            mode="lines",
            line={"width": 2, "dash": _DASHES[number % len(_DASHES)]},
        )


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
    layout = axes("rate through the VNF, Gbit/s", "CPU, % of one vCPU")
    title = f"CPU in {sweep.name} and alone"
    return no_choice(f"{anchor}-chain-cpu", title, [*inside, *lone], layout, simulated=record.simulated)


def share_of(sweep: Sweep, vnf: Vnf) -> float:
    """Return the share of the chain's rate that goes through a VNF: a branch of two gets half."""
    instance, node = (int(word) for word in vnf.name.split("-")[1:3])
    return 1.0 if instance == 0 else 1.0 / sweep.cell.count_of(node)


def _line(sweep: Sweep, vnf: Vnf, kinds: Sequence[str], number: int) -> Json:
    colour = kinds.index(kind_words(vnf))
    marker = {"size": 7, "symbol": SYMBOLS[number % 4]}
    return _cpu_line(sweep, vnf, vnf_words(vnf), colour, line={"width": 2}, marker=marker)


def _alone(sweep: Sweep, colour: int) -> Json:
    name = f"{kind_words(sweep.vnfs[0])} alone"
    marker = {"size": 7, "symbol": "x-thin-open"}
    return _cpu_line(sweep, sweep.vnfs[0], name, colour, line={"width": 2, "dash": "dot"}, marker=marker)


def _cpu_line(sweep: Sweep, vnf: Vnf, name: str, colour: int, *, line: Json, marker: Json) -> Json:
    used = [(point, 100 * sum(point.cpu[vnf.name])) for point in sweep.points if vnf.name in point.cpu]
    return use_line(sweep, used, name, colour, share=share_of(sweep, vnf), line=line, marker=marker)
