"""Chains of VNFs: what was predicted from VNFs alone, against what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from csit_utils.report.characterizations import keys_of_page
from csit_utils.report.figures import SYMBOLS, Figure, Json, Panel, no_choice, one_choice, scatter, stacked
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.sweep.comparison import REACHES, below
from csit_utils.studies.sweep.figures import FIRST_SCALE, NAMES, PlotPosition, metric_axes, place, saturation, shown
from csit_utils.studies.sweep.pages.profiles import profile_anchor
from csit_utils.studies.sweep.prediction_figures import chain_figures, cpu_figure, share_of
from csit_utils.studies.sweep.words import MODELS, chain_words, error_text, kind_words, vnf_words
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredPath, trust
from resources.libraries.python.studies.sweep.analysis.sentences import trust_in_words
from resources.libraries.python.studies.sweep.model.profile import Prediction, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Sweep, SweepRecord

_CHAIN, _PATH = 0, 6
"""Numbers of the palette."""


@dataclass(frozen=True)
class PartMeasurements:
    """Measurements of a chain's parts with the frame and size of the chain."""

    vnfs: Mapping[str, Sweep] = field(default_factory=dict)
    """Sweeps of single VNFs by kind, as `kind_words` has it."""
    path: Sweep | None = None
    """Without any VNF."""


def parts_figure(anchor: str, record: SweepRecord, alone: PartMeasurements) -> Figure | None:
    """Throughput, delay and loss of a chain and of each kind of its VNFs alone, over the input rate."""
    sweep = record.sweep
    if sweep is None or not sweep.points:
        return None
    kinds = [kind for kind in dict.fromkeys(map(kind_words, sweep.vnfs)) if kind in alone.vnfs]
    if not kinds:
        return None
    lines = [
        ("the chain", sweep, _CHAIN),
        *((f"{kind} alone", alone.vnfs[kind], 1 + at) for at, kind in enumerate(kinds)),
    ]
    panels = [
        Panel(
            metric_axes(metric, FIRST_SCALE[metric])["yaxis"],
            [_line(name, each, metric, colour) for name, each, colour in lines],
        )
        for metric in ProfileMetric
    ]
    variant = stacked(panels, metric_axes(ProfileMetric.THROUGHPUT, "")["xaxis"])
    variant["layout"] |= saturation(record.profile)
    title = f"Throughput, one-way delay and loss of {sweep.name} and of its VNFs alone"
    return no_choice(f"{anchor}-parts", title, **variant, simulated=record.simulated)


def _line(name: str, sweep: Sweep, metric: ProfileMetric, colour: int) -> Json:
    places = [place(point, sweep.spec.frame) for point in sweep.points]
    return scatter(
        name,
        [(each.rate, shown(each.values[metric], FIRST_SCALE[metric])) for each in places],
        colour,
        texts=[f"{escape(name)}<br>{each.text(metric)}" for each in places],
        line={"width": 2, "dash": "dot" if colour else "solid"},
        marker={"size": 6, "symbol": SYMBOLS[colour % 4]},
    )


def delays_figure(anchor: str, record: SweepRecord, alone: PartMeasurements) -> Figure | None:
    """Contribution of each VNF to a chain's delay below saturation, as measured alone, and the chain's delay.

    A VNF alone has the whole path in its delay. Where the path without VNFs was measured it counts once; otherwise the
    areas are the plain delays. In each of two branches a VNF has half of the packets.
    """
    sweep = record.sweep
    if sweep is None or any(kind_words(vnf) not in alone.vnfs for vnf in sweep.vnfs):
        return None
    variants: Json = {}
    for reach, share in REACHES.items():
        places = below(record.profile, sweep, share)
        areas = list(_areas(sweep, alone, [each.rate for each in places]))
        if places and len(areas) >= len(sweep.vnfs):
            variants[reach] = {"data": [*areas, _measured(places)], "layout": metric_axes(ProfileMetric.DELAY, "")}
    title = f"{NAMES[ProfileMetric.DELAY].capitalize()} of {sweep.name} below saturation, by contribution of its parts"
    return one_choice(f"{anchor}-delays", title, variants, simulated=record.simulated)


def _measured(places: Sequence[PlotPosition]) -> Json:
    return scatter(
        "the chain, measured",
        [(each.rate, each.values[ProfileMetric.DELAY]) for each in places],
        _CHAIN,
        texts=[each.text(ProfileMetric.DELAY) for each in places],
        hover="the chain<br>%{text}",
        line={"width": 2.5},
        marker={"size": 7},
    )


def _areas(sweep: Sweep, alone: PartMeasurements, rates: list[float]) -> Iterator[Json]:
    """The path, then each VNF in the order of the chain; a part whose delay was not measured is left out."""
    path = MeasuredPath.of(alone.path.name, alone.path.points) if alone.path else None
    if path is not None:
        yield _area("path without VNFs", rates, [path.delay_ms(rate) for rate in rates], _PATH)
    for number, vnf in enumerate(sweep.vnfs, 1):
        own = alone.vnfs[kind_words(vnf)]
        delay, share = MeasuredPath.of(own.name, own.points), share_of(sweep, vnf)
        if delay is not None:
            added = [
                share * max(0.0, delay.delay_ms(share * rate) - (path.delay_ms(share * rate) if path else 0.0))
                for rate in rates
            ]
            yield _area(vnf_words(vnf), rates, added, number)


def _area(name: str, rates: list[float], added: list[float], colour: int) -> Json:
    return scatter(
        name,
        zip(rates, added, strict=True),
        colour,
        hover=f"{escape(name)}<br>%{{x:.4~g}} Gbit/s: adds %{{y:.4~g}} ms",
        mode="lines",
        stackgroup="parts",
        line={"width": 1},
    )


@dataclass(frozen=True)
class Predicted:
    """A line of the table of errors."""

    prediction: Prediction
    model: str

    def error(self, metric: ProfileMetric) -> str:
        """For people."""
        return error_text(metric, self.prediction.errors.get(metric))

    @property
    def trusted(self) -> str:
        """Up to which load, by metric."""
        return "; ".join(f"{each.metric} {trust_in_words(each)}" for each in trust(self.prediction))

    @property
    def summed(self) -> float | None:
        """Error of the plain sum of delays; where no path was measured, that is the error of the delay."""
        found = self.prediction
        return found.errors.get(ProfileMetric.DELAY) if found.path is None else found.summed_delay_error

    @property
    def summed_text(self) -> str:
        """For people."""
        return error_text(ProfileMetric.DELAY, self.summed)


@dataclass(frozen=True)
class Chained:
    """A chain on the page."""

    view: View
    way: str
    """Direction of its packets."""
    profile: str
    """Link to its own profile."""
    figures: tuple[Figure, ...]
    predicted: tuple[Predicted, ...]
    notes: Sequence[str]
    """Of its predictions."""


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    chains = [view for view in shown.characterizations if view.record.kind == "chain"]
    if not chains:
        return None
    chained = [_chained(view, shown.characterizations) for view in chains]
    return {**keys_of_page("chained", chains, chained), "metrics": list(ProfileMetric)}


def _chained(view: View, every: Sequence[View]) -> Chained:
    record = view.record
    alone = _alone(view, every)
    more = (
        cpu_figure(view.anchor, record, alone.vnfs),
        parts_figure(view.anchor, record, alone),
        delays_figure(view.anchor, record, alone),
    )
    notes = (note for prediction in record.predictions for note in prediction.notes)
    return Chained(
        view,
        chain_words(record.sweep.cell) if record.sweep else "",
        f"#{profile_anchor(view)}",
        (*chain_figures(view.anchor, record), *(figure for figure in more if figure is not None)),
        tuple(Predicted(prediction, MODELS[prediction.model]) for prediction in record.predictions),
        [note for note in dict.fromkeys(notes) if note not in view.warnings],
    )


def _alone(view: View, every: Sequence[View]) -> PartMeasurements:
    """Sweeps of single VNFs and of the path, with the frame, the size and the state of SMT that the chain has."""
    chain = view.record.sweep
    found: dict[str, Sweep] = {}
    path: Sweep | None = None
    for other in every:
        sweep = other.record.sweep if isinstance(other.record, SweepRecord) else None
        if chain is None or sweep is None or len(sweep.vnfs) > 1 or not sweep.points:
            continue
        own, its = view.record, other.record
        alike = (its.testbed, its.simulated, its.smt_off, sweep.spec.frame, sweep.cell.nf_sizes) == (
            own.testbed,
            own.simulated,
            own.smt_off,
            chain.spec.frame,
            chain.cell.nf_sizes,
        )
        if alike and sweep.vnfs:
            found.setdefault(kind_words(sweep.vnfs[0]), sweep)
        elif alike:
            path = path or sweep
    return PartMeasurements(found, path)


PAGE = Page("chains", "Chains", _build)
"""Shown where there is a chain."""
