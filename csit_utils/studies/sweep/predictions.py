"""Chains of VNFs: what was predicted from VNFs alone, against what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from csit_utils.report.figures import Figure
from csit_utils.report.record_blocks import Column, Plot, RecordTables, Row, Table, plots
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page, View
from csit_utils.studies.sweep.figures import (
    CPU,
    INPUT,
    METRICS,
    NAMES,
    REACHES,
    below,
    load_row,
    load_rows,
    metric_column,
    saturation,
    scales,
)
from csit_utils.studies.sweep.profiles import profile_anchor
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredPath, trust
from resources.libraries.python.studies.sweep.analysis.sentences import (
    MODELS,
    chain_words,
    error_in_words,
    kind_words,
    trust_in_words,
    vnf_words,
)
from resources.libraries.python.studies.sweep.model import Prediction, Profile, ProfileMetric, Sweep, SweepRecord, Vnf

_DELAY = ProfileMetric.DELAY.value
_MEASURED = "the chain, measured"
_PATH = "path without VNFs"
_AREA = {"mode": "lines", "stackgroup": "parts", "line": {"width": 1}}


@dataclass(frozen=True)
class PartMeasurements:
    """Measurements of a chain's parts with the frame and size of the chain."""

    vnfs: Mapping[str, Sweep] = field(default_factory=dict)
    """Sweeps of single VNFs by kind, as `kind_words` has it."""
    path: Sweep | None = None
    """Without any VNF."""


def chain_figures(anchor: str, record: SweepRecord, alone: PartMeasurements) -> list[Figure]:
    """Plots of each metric as predicted and measured, of the CPUs, and of the chain beside its VNFs alone."""
    sweep = record.sweep
    if sweep is None or not sweep.points:
        return []
    tables = RecordTables(anchor, record.simulated, sweep)
    predicted = {metric for each in record.predictions for point in each.points for metric in point.predicted}
    drawn = plots(
        tables,
        *(
            Plot(
                f"chain-{metric.value}",
                f"{NAMES[metric].capitalize()} of {sweep.name}",
                partial(_predicted, record, metric),
                INPUT,
                scales(metric),
                colour="line",
                mark="lines",
                hover=("text",),
                lines={"measured": {"mode": "markers", "marker": {"size": 9}}},
                layout=saturation(record.profile, sweep.spec.frame),
            )
            for metric in ProfileMetric
            if metric in predicted
        ),
        Plot(
            "chain-cpu",
            f"CPU in {sweep.name} and alone",
            partial(_cpu, alone),
            Column("rate", "rate through the VNF, Gbit/s"),
            CPU,
            colour="line",
        ),
    )
    if any(kind_words(vnf) in alone.vnfs for vnf in sweep.vnfs):
        drawn += plots(
            tables,
            Plot(
                "parts",
                f"Throughput, one-way delay and loss of {sweep.name} and of its VNFs alone",
                partial(_parts, alone),
                INPUT,
                METRICS,
                colour="line",
                panels=True,
                hover=("text",),
                layout=saturation(record.profile, sweep.spec.frame),
            ),
        )
    if all(kind_words(vnf) in alone.vnfs for vnf in sweep.vnfs):
        areas = dict.fromkeys((_PATH, *map(vnf_words, sweep.vnfs)), _AREA)
        delay = metric_column(ProfileMetric.DELAY)
        drawn += plots(
            tables,
            Plot(
                "delays",
                f"One-way delay of {sweep.name} below saturation, by contribution of its parts",
                partial(_delays, record.profile, alone),
                INPUT,
                Column(delay.name, delay.title),
                colour="line",
                choose=("reach",),
                lines=areas,
            ),
        )
    return drawn


def _predicted(record: SweepRecord, metric: ProfileMetric, sweep: Sweep) -> Iterator[Row]:
    yield from ({**row, "line": "measured"} for row in load_rows(sweep))
    for each in record.predictions:
        for point in each.points:
            line = f"predicted {MODELS[each.model]}"
            yield {"line": line, "rate": point.rate, metric.value: point.predicted.get(metric)}
    for each in record.predictions if metric is ProfileMetric.DELAY else ():
        for point in each.points:
            line = f"plain sum of delays, {MODELS[each.model]}"
            yield {"line": line, "rate": point.rate, metric.value: point.summed_delay}


def _cpu(alone: PartMeasurements, chain: Sweep) -> Iterator[Row]:
    """CPU of every VNF of a chain, and of the same kind alone, over the rate that goes through it."""
    yield from (row for vnf in chain.vnfs for row in _used(chain, vnf, vnf_words(vnf)))
    for kind in dict.fromkeys(kind_words(vnf) for vnf in chain.vnfs):
        if kind in alone.vnfs:
            yield from _used(alone.vnfs[kind], alone.vnfs[kind].vnfs[0], f"{kind} alone")


def _used(sweep: Sweep, vnf: Vnf, name: str) -> Iterator[Row]:
    share = share_of(sweep, vnf)
    for point in sweep.points:
        rate = share * float(load_row(point, sweep.spec.frame)["rate"] or 0.0)
        yield {"line": name, "rate": rate, "cpu": point.used(vnf.name)}


def share_of(sweep: Sweep, vnf: Vnf) -> float:
    """Return the share of the chain's rate that goes through a VNF: a branch of two gets half."""
    instance, node = (int(word) for word in vnf.name.split("-")[1:3])
    return 1.0 if instance == 0 else 1.0 / sweep.cell.count_of(node)


def _parts(alone: PartMeasurements, chain: Sweep) -> Iterator[Row]:
    kinds = [kind for kind in dict.fromkeys(map(kind_words, chain.vnfs)) if kind in alone.vnfs]
    for name, sweep in (("the chain", chain), *((f"{kind} alone", alone.vnfs[kind]) for kind in kinds)):
        yield from ({**row, "line": name} for row in load_rows(sweep))


def _delays(profile: Profile | None, alone: PartMeasurements, chain: Sweep) -> Iterator[Row]:
    """Contribution of each VNF to a chain's delay below saturation, as measured alone, and the chain's delay.

    A VNF alone has the whole path in its delay. Where the path without VNFs was measured it counts once; otherwise the
    areas are the plain delays. In each of two branches a VNF has half of the packets.
    """
    for reach, share in REACHES.items():
        loads = below(profile, chain, share)
        rates = [float(row["rate"]) for row in loads]
        areas = list(_areas(chain, alone, rates))
        if loads and len(areas) >= len(chain.vnfs):
            for name, added in areas:
                yield from (
                    {"reach": reach, "line": name, "rate": rate, _DELAY: value}
                    for rate, value in zip(rates, added, strict=True)
                )
            yield from ({**row, "reach": reach, "line": _MEASURED} for row in loads)


def _areas(chain: Sweep, alone: PartMeasurements, rates: Sequence[float]) -> Iterator[tuple[str, list[float]]]:
    """The path, then each VNF in the order of the chain; a part whose delay was not measured is left out."""
    path = MeasuredPath.of(alone.path.name, alone.path.points) if alone.path else None
    if path is not None:
        yield _PATH, [path.delay_ms(rate) for rate in rates]
    for vnf in chain.vnfs:
        own = alone.vnfs[kind_words(vnf)]
        delay, share = MeasuredPath.of(own.name, own.points), share_of(chain, vnf)
        if delay is not None:
            yield (
                vnf_words(vnf),
                [
                    share * max(0.0, delay.delay_ms(share * rate) - (path.delay_ms(share * rate) if path else 0.0))
                    for rate in rates
                ],
            )


def _chained(view: View, every: Sequence[View]) -> Mapping[str, Any]:
    """Values of a chain for the template."""
    record = view.record
    notes = (note for prediction in record.predictions for note in prediction.notes)
    return {
        "view": view,
        "way": chain_words(record.sweep.cell) if record.sweep else "",
        "profile": f"#{profile_anchor(view)}",
        "figures": chain_figures(view.anchor, record, _alone(view, every)),
        "notes": [note for note in dict.fromkeys(notes) if note not in view.warnings],
    }


def _trusted(prediction: Prediction) -> str:
    """Up to which load, by metric."""
    return "; ".join(f"{each.metric} {trust_in_words(each)}" for each in trust(prediction))


def _errors(chains: Sequence[View]) -> Iterator[Row]:
    for view in chains:
        for each in view.record.predictions:
            # Where no path was measured, the error of the delay is that of the plain sum.
            summed = each.errors.get(ProfileMetric.DELAY) if each.path is None else each.summed_delay_error
            row: dict[str, object] = {
                "chain": view,
                "path of packets": chain_words(view.record.sweep.cell) if view.record.sweep else "",
                "model": MODELS[each.model],
                "summed_delay_error": summed,
                "sum": error_in_words(ProfileMetric.DELAY, summed),
                "valid range": _trusted(each),
                "baseline path": each.path or "none measured",
                "rates": len(each.points),
            }
            for metric in ProfileMetric:
                error = each.errors.get(metric)
                row |= {f"{metric}_error": error, metric: error_in_words(metric, error)}
            yield row


_ERRORS = Table(
    "prediction-errors",
    _errors,
    (
        Column("chain", text=True, link=True),
        Column("path of packets", text=True),
        Column("model", text=True),
        *(Column(f"{metric}_error", f"{metric} error", words=metric.value) for metric in ProfileMetric),
        Column("summed_delay_error", "sum of delays error", words="sum"),
        Column("valid range", text=True),
        Column("baseline path", text=True),
        Column("rates", write=str),
    ),
)


def _build(shown: ReportContents) -> Mapping[str, object] | None:
    chains = [view for view in shown.characterizations if view.record.kind == "chain"]
    if not chains:
        return None
    chained = [_chained(view, shown.characterizations) for view in chains]
    return {
        "chained": chained,
        "errors": _ERRORS.draw(RecordTables("chains", any(view.simulated for view in chains), chains)),
        "figures": [figure for each in chained for figure in each["figures"]],
    }


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
