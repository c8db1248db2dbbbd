"""Plots of a study of chains: throughput and latency of all chains, workflow classes of suspects."""

from collections.abc import Callable, Iterator, Sequence
from html import escape

from csit_utils.report.figures import SYMBOLS, Figure, Json, axis, bars, categories, one_choice, scatter
from csit_utils.report.units import bandwidth, percent
from resources.libraries.python.studies.chains.analysis.classes import Workflow
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainStudy, ClassPortion, Suspect
from resources.libraries.python.studies.chains.model.spec import Chain, Workload

MAX_SHOWN = 6
"""Suspects with plots."""
_MAX_CHAINS = 40
"""Maximum number of chains of a plot; all are in the table."""
_NO_CLASS = "#9aa5b4"
"""Colour of activity outside the workflow classes, which use all distinguishable colours."""
_SEEN = 5e-4
"""Shares below cannot be seen in a bar."""
_PX_PER_BAR = 62


def chains_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """Return throughput, loss and latency of each volume in each chain; suspects on top, the first one highest.

    Of many chains, the suspects and those with the highest loss are shown.
    """
    runs = [run for run in study.runs if run.failed is None]
    measured = list(dict.fromkeys(run.chain for run in runs))
    stars = {suspect.chain for suspect in study.suspects}
    names = {chain: f"{name_of(chain, measured)}{' *' * (chain in stars)}" for chain in furthest(study)}
    variants = {}
    for quantity, (what, value) in _QUANTITIES.items():
        data = []
        for colour, workload in enumerate(dict.fromkeys(run.workload for run in runs)):
            rows = [
                (names[run.chain], number, _run_words(run))
                for run in runs
                if run.workload == workload and run.chain in names and (number := value(run)) is not None
            ]
            if rows:
                data.append(_dots(workload, colour, rows))
        if data:
            variants[quantity] = {"data": data, "layout": _of_chains(list(names.values()), what)}
    which = f"{len(names)} of {len(measured)} chains" if len(names) < len(measured) else "Every chain"
    title = f"{which} under every workload; * marks suspects"
    return one_choice(f"{anchor}-chains", title, variants, simulated=simulated)


def furthest(study: ChainStudy) -> list[Chain]:
    """Return at most 40 measured chains: those with the highest loss, then suspects, the first one last."""
    runs = [run for run in study.runs if run.failed is None]
    measured = list(dict.fromkeys(run.chain for run in runs))
    first = [suspect.chain for suspect in study.suspects if suspect.chain in measured][:_MAX_CHAINS]
    others = [chain for chain in measured if chain not in first]
    if (room := _MAX_CHAINS - len(first)) < len(others):
        worst: dict[Chain, float] = {}
        for run in runs:
            share = 1.0 if run.share is None else run.share
            worst[run.chain] = min(share, worst.get(run.chain, 1.0))
        chosen = sorted(others, key=lambda chain: worst[chain])[:room]
        others = [chain for chain in others if chain in chosen]
    return [*others, *reversed(first)]


def name_of(chain: Chain, among: Sequence[Chain]) -> str:
    """Name of a chain; with sizes where chains differ in them only."""
    if sum(other.order == chain.order for other in among) < 2:
        return chain.name
    return f"{chain.name}, {sizes_words(chain)}"


def sizes_words(chain: Chain) -> str:
    """`1c+2c`, `1c 256 MiB+2c`."""
    return "+".join(
        member.size if member.memory_mib is None else f"{member.size} {member.memory_mib} MiB"
        for member in chain.members
    )


_QUANTITIES: dict[str, tuple[str, Callable[[ChainRun], float | None]]] = {
    "throughput": (
        "throughput, % of the offered volume",
        lambda run: None if run.share is None else 100 * run.share,
    ),
    "latency": (
        "mean latency, one way, µs",
        lambda run: None if run.latency_s is None else 1e6 * run.latency_s,
    ),
    "latency without load": (
        "mean latency, one way, µs",
        lambda run: None if run.idle_latency_s is None else 1e6 * run.idle_latency_s,
    ),
}


def _of_chains(names: Sequence[str], what: str) -> Json:
    return {
        "xaxis": axis(what),
        "yaxis": {"type": "category", "categoryorder": "array", "categoryarray": [escape(name) for name in names]}
        | {"dtick": 1},
        "height": 130 + 20 * len(names),
        "meta": {"width": 240 + 7 * max(map(len, names))},
    }


def _dots(workload: Workload, colour: int, rows: Sequence[tuple[str, float, str]]) -> Json:
    return scatter(
        workload_words(workload),
        [(number, escape(name)) for name, number, _ in rows],
        colour,
        texts=[text for _, _, text in rows],
        mode="markers",
        # Open and of several sizes, because most lie on each other.
        marker={"size": 8 + 2 * (colour % 4), "symbol": f"{SYMBOLS[colour % len(SYMBOLS)]}-open", "line": {"width": 2}},
    )


def workload_words(workload: Workload) -> str:
    """`UDP, 4 Mbit/s, 16 sessions, 64B`."""
    sessions = f"{workload.sessions} session{'s' * (workload.sessions != 1)}"
    return f"{workload.protocol.value}, {bandwidth(workload.volume_bps)}, {sessions}, {workload.frame.name}"


def _run_words(run: ChainRun) -> str:
    loss = "" if run.loss_ratio is None else f", loss {percent(run.loss_ratio)}"
    words = f"{run.chain.name}: {bandwidth(run.throughput_bps)} of {bandwidth(run.offered_bps)}{loss}"
    return escape(f"{words} (a fault was planted)" if run.planted else words)


def classes_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """Workflow classes of the VNFs of a suspect beside those of the same VNFs alone, a choice for each suspect."""
    variants: Json = {}
    for rank, suspect in enumerate(study.suspects[:MAX_SHOWN], 1):
        owners = [owner for owner in suspect.chain.order if any(row.owner == owner for row in suspect.portions)]
        if owners:
            variants[choice_of(rank, suspect)] = {
                "data": list(_bars(suspect.portions, owners)),
                "layout": categories(
                    "share of the traced time, %",
                    barmode="stack",
                    meta={"width": 90 + 2 * _PX_PER_BAR * len(owners)},
                ),
            }
    title = "Time of VNFs by workflow class, in the chain and alone"
    return one_choice(f"{anchor}-classes", title, variants, simulated=simulated)


def choice_of(rank: int, suspect: Suspect) -> str:
    """Label of a suspect in a list: `1. nat > gateway`."""
    return f"{rank}. {suspect.chain.name}"


def _bars(portions: Sequence[ClassPortion], owners: Sequence[str]) -> Iterator[Json]:
    for colour, workflow in enumerate(Workflow):
        rows = [row for owner in owners for row in portions if (row.owner, row.workflow) == (owner, workflow)]
        shown = [
            (row.owner, where, ratio, count)
            for row in rows
            for where, ratio, count in (
                ("in the chain", row.time_ratio, row.count_per_s),
                ("alone", row.alone_time_ratio, row.alone_count_per_s),
            )
            if ratio is not None and count is not None
        ]
        if not any(ratio >= _SEEN for _, _, ratio, _ in shown):
            continue
        yield bars(
            workflow,
            [(f"{escape(owner)}<br>{where}", 100 * ratio) for owner, where, ratio, _ in shown],
            colour,
            texts=[
                f"{escape(owner)} {where}: {workflow} {percent(ratio)}, {count:.0f} times a second"
                for owner, where, ratio, count in shown
            ],
            **({"marker": {"color": _NO_CLASS}} if workflow is Workflow.NOT_ASSIGNED else {}),
        )
