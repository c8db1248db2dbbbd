"""Every sampled feature of a chain over time: one value a second for each VNF, the vSwitch and the host."""

from collections.abc import Iterator, Sequence
from html import escape

from csit_utils.report import thinning
from csit_utils.report.figures import Figure, Json
from csit_utils.report.thinning import step_of, thinned_words
from csit_utils.report.units import bandwidth
from csit_utils.studies.chains.behaviour_figures import furthest, name_of, workload_words
from resources.libraries.python.studies.chains.analysis.features import feature
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainStudy
from resources.libraries.python.studies.chains.model.spec import Chain

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def series_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """A choice for each chain and each feature, suspects first; lines are owners and workloads."""
    runs: dict[Chain, list[ChainRun]] = {}
    for run in study.runs:
        if run.series and run.failed is None:
            runs.setdefault(run.chain, []).append(run)
    ranked = [chain for chain in reversed(furthest(study)) if chain in runs]
    chosen = _fitting(ranked, runs)
    if not chosen:
        return None
    samples = sum(_samples(runs[chain]) for chain in chosen)
    step = step_of(samples)
    names = list(dict.fromkeys(each.feature for chain in chosen for run in runs[chain] for each in run.series))
    variants: Json = {}
    for chain in chosen:
        for name in names:
            unit = feature(name).unit
            variants[f"{name_of(chain, chosen)}|{name}"] = {
                "data": list(_lines(runs[chain], name, step)),
                "layout": {
                    "xaxis": {"title": {"text": "time, s"}, "rangemode": "tozero"},
                    "yaxis": {"title": {"text": escape(f"{name}, {unit}" if unit else name)}, "rangemode": "tozero"},
                },
            }
    selectors = (tuple(name_of(chain, chosen) for chain in chosen), tuple(names))
    left = f" ({len(chosen)} of {len(runs)} chains)" if len(chosen) < len(runs) else ""
    title = f"Sampled features over time{left}{thinned_words(step, samples)}"
    return Figure(f"{anchor}-series", title, simulated, selectors, variants)


def _fitting(ranked: Sequence[Chain], runs: dict[Chain, list[ChainRun]]) -> list[Chain]:
    """Chains until the page has enough; the first one in any case."""
    chosen: list[Chain] = []
    total = 0
    for chain in ranked:
        total += _samples(runs[chain])
        if chosen and total > thinning.MOST_VALUES:
            break
        chosen.append(chain)
    return chosen


def _samples(runs: Sequence[ChainRun]) -> int:
    return sum(len(each.values) for run in runs for each in run.series)


def _loads(runs: Sequence[ChainRun]) -> list[str]:
    """Label that distinguishes the runs of a chain: nothing, the volume, or the whole workload."""
    volumes = [bandwidth(run.workload.volume_bps) for run in runs]
    if len(runs) == 1:
        return [""]
    return volumes if len(set(volumes)) == len(runs) else [workload_words(run.workload) for run in runs]


def _lines(runs: Sequence[ChainRun], name: str, step: int) -> Iterator[Json]:
    """A colour for each owner, a dash for each workload."""
    owners = list(dict.fromkeys(each.owner for run in runs for each in run.series))
    loads = _loads(runs)
    for number, run in enumerate(runs):
        for each in run.series:
            if each.feature == name:
                text = escape(", ".join(filter(None, (each.owner, loads[number]))))
                yield {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": text,
                    "x": list(range(1, len(each.values) + 1, step)),
                    "y": [None if value is None else float(f"{value:.5g}") for value in each.values[::step]],
                    "hovertemplate": f"{text}, second %{{x}}: %{{y:.4~g}}<extra></extra>",
                    "line": {"width": 2, "dash": _DASHES[number % len(_DASHES)]},
                    "marker": {"size": 4},
                    "meta": {"colour": owners.index(each.owner)},
                }
