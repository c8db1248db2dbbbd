"""Bars of a study of chains: exit reasons of VMs or events of the kernel, and CPU time of the kernel for VNFs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from csit_utils.report.figures import Figure, Json
from csit_utils.report.units import digits3
from csit_utils.studies.chains.behaviour_figures import MOST_SHOWN, choice_of, workload_words
from csit_utils.studies.chains.transition_figures import graphs_of
from resources.libraries.python.studies.chains.model.record import ChainStudy, StateGraph
from resources.libraries.python.studies.chains.model.spec import Member

_MOST_EVENTS = 14
"""Maximum number of events of a picture, those that come most often."""
_EXIT = "kvm_exit:"
_ALONE = "VNFs alone"
_PX_PER_EVENT = 24
_PX_PER_BAR = 11


def events_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """Rate of each event: of all VNFs alone, and of the VNFs of a suspect in the chain and alone.

    Of virtual machines these are the reasons for which they were left.
    """
    alone = _alone(study)
    variants: Json = {}
    if alone:
        variants[_ALONE] = _bars([(member.name, graph) for member, graph in alone.items()])
    for rank, suspect in enumerate(study.suspects[:MOST_SHOWN], 1):
        members = {member.name: member for member in suspect.chain.members}
        for graph in graphs_of(study, suspect):
            own = alone.get(members[graph.owner]) if graph.owner in members else None
            pair = [("in the chain", graph), *([("alone", own)] if own else [])]
            variants[f"{choice_of(rank, suspect)}: {graph.owner}"] = _bars(pair)
    variants = {key: variant for key, variant in variants.items() if variant["data"]}
    if not variants:
        return None
    machines = any(graph.source == "kvm" for graph in alone.values())
    title = "VM exit reasons" if machines else "Kernel events"
    return Figure(f"{anchor}-events", f"{title} per second", simulated, (tuple(variants),), variants)


def _alone(study: ChainStudy) -> Mapping[Member, StateGraph]:
    """Transitions of VNFs alone at the largest volume that was traced."""
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


def _bars(graphs: Sequence[tuple[str, StateGraph]]) -> Json:
    rates = [(name, rates_of(graph)) for name, graph in graphs]
    totals: Counter[str] = Counter()
    for _, own in rates:
        totals.update(own)
    events = [name for name, _ in totals.most_common(_MOST_EVENTS)]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": escape(name),
            "x": [float(f"{own.get(event, 0.0):.5g}") for event in events],
            "y": [escape(event) for event in events],
            "text": [
                f"{escape(event)}, {escape(name)}: {digits3(own.get(event, 0.0))} times a second" for event in events
            ],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
            "meta": {"colour": colour},
        }
        for colour, (name, own) in enumerate(rates)
        if own
    ]
    layout = {
        "barmode": "group",
        "xaxis": {"title": {"text": "times per second"}, "rangemode": "tozero"},
        # The most frequent event on top.
        "yaxis": {"type": "category", "autorange": "reversed", "dtick": 1},
        "height": 130 + len(events) * max(_PX_PER_EVENT, _PX_PER_BAR * len(rates)),
    }
    return {"data": data, "layout": layout}


def extra_cpu_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """CPU time of every VNF alone, and the part of it that the kernel's threads spend for the VNF, by workload."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for each in study.statistics:
        single = len(each.chain.members) == 1 and each.chain.members[0].name == each.owner
        if single and each.feature in {"cpu_percent", "helper_percent"}:
            found.setdefault((workload_words(each.workload), each.owner), {})[each.feature] = each.mean
    variants: Json = {}
    for workload in dict.fromkeys(workload for workload, _ in found):
        rows = {
            owner: (own["cpu_percent"], min(own["helper_percent"], own["cpu_percent"]))
            for (where, owner), own in found.items()
            if where == workload and len(own) == 2
        }
        if rows:
            variants[workload] = {"data": list(_stacks(rows)), "layout": _CPU}
    if not variants:
        return None
    title = "CPU time of VNFs alone, and of their kernel threads"
    # The largest volume is the most informative one.
    choices = tuple(reversed(variants))
    return Figure(f"{anchor}-extra", title, simulated, (choices,), variants)


_CPU: Json = {
    "barmode": "stack",
    "xaxis": {"type": "category"},
    "yaxis": {"title": {"text": "CPU, % of one CPU"}, "rangemode": "tozero"},
}


def steps_figure(anchor: str, study: ChainStudy, *, simulated: bool) -> Figure | None:
    """CPU time of the study's own steps, in percent of one CPU and in total; as Probius, figure 21."""
    if not study.costs:
        return None
    ways = {
        "% of one CPU": (
            "% of one CPU",
            [100 * each.cpu_s / each.lasted_s for each in study.costs if each.lasted_s > 0],
        ),
        "CPU time": ("CPU time, s", [each.cpu_s for each in study.costs if each.lasted_s > 0]),
    }
    steps = [each.step for each in study.costs if each.lasted_s > 0]
    texts = [f"{each.step}: {each.cpu_s:.3g} s of a CPU in {each.lasted_s:.3g} s" for each in study.costs]
    variants: Json = {
        way: {
            "data": [
                {
                    "type": "bar",
                    "showlegend": False,
                    "name": way,
                    "x": steps,
                    "y": [float(f"{value:.4g}") for value in values],
                    "text": [f"{value:.3g}" for value in values],
                    "textposition": "outside",
                    "cliponaxis": False,
                    "customdata": texts,
                    "hovertemplate": "%{customdata}<extra></extra>",
                    "meta": {"colour": 0},
                }
            ],
            "layout": {
                "xaxis": {"type": "category"},
                "yaxis": {"title": {"text": axis}, "rangemode": "tozero"},
            },
        }
        for way, (axis, values) in ways.items()
    }
    return Figure(f"{anchor}-steps", "CPU time of the study itself", simulated, (tuple(ways),), variants)


def _stacks(rows: Mapping[str, tuple[float, float]]) -> Iterator[Json]:
    parts = (
        ("processes of the VNF", [whole - helper for whole, helper in rows.values()]),
        ("kernel threads of the VNF (extra CPU)", [helper for _, helper in rows.values()]),
    )
    for colour, (name, values) in enumerate(parts):
        yield {
            "type": "bar",
            "name": name,
            "x": [escape(owner) for owner in rows],
            "y": [float(f"{value:.4g}") for value in values],
            "hovertemplate": f"%{{x}}, {name}: %{{y:.3~g}} % of one CPU<extra></extra>",
            "meta": {"colour": colour},
        }
