"""The plan as a page: matrices coloured by what fits, and the core map of the selected cell.

One file that opens without a network. The matrices and reasons are plain HTML; the core maps are drawn by a small
script from data inside the page, because thousands of them as HTML would be megabytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from csit_utils.report import units
from csit_utils.report.html import html_templates, own_file
from csit_utils.studies.density.plan_table import LETTERS, Times, examples, mark, shared, uneven, unlike, unspread
from resources.libraries.python.model.core_map import CoreMap, MachineCores, Thread, ThreadRole
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.model.testbed.memory import MemoryLayout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.memory import node_of, spare_mb
from resources.libraries.python.planning.placement.sender_threads import counting_limit
from resources.libraries.python.studies.density.planning.matrix import Candidate, core_usage

_ROLES = {ThreadRole.SYSTEM: "s", ThreadRole.MAIN: "m", ThreadRole.DATA: "d"}


@dataclass(frozen=True)
class PlanSquare:
    """One cell of a matrix."""

    text: str
    state: str
    """`fits`, `over` or `none`."""
    uneven: bool
    label: str
    """For a screen reader."""
    key: str
    """Place in the page's data."""


_Matrix = tuple[str, list[int], list[tuple[int, list[PlanSquare | None]]]]
"""Title, columns and rows of a service type and set of sizes."""


def render_plan(topology: Topology, memory: MemoryLayout | None, rows: Sequence[Candidate], times: Times) -> str:
    """The whole page."""
    environment = html_templates()
    environment.filters.update(seconds=units.seconds)
    runs, fits = sum(row.runs for row in rows), sum(row.fits for row in rows)
    not_run = [row for row in rows if not row.runs]
    limits = {reason.limit for row in rows for reason in row.reasons}
    return environment.get_template("plan.html.j2").render(
        topology=topology,
        memory=_memory(topology, memory),
        blocks=[(vs_dtc, _matrices(group)) for vs_dtc, group in _by(rows, lambda row: row.cell.vs_dtc)],
        fits=fits,
        over=runs - fits,
        refused=len(rows) - runs,
        any_uneven=any(row.balance and not row.balance.even for row in rows),
        letters=[words for limit, words in LETTERS.items() if limit in limits],
        lists=[
            ("Why cells do not fit", [*examples(not_run), *examples(not_run, others=True)]),
            ("Why cells are oversubscribed", examples(row for row in rows if row.oversubscribed)),
            ("Uneven queues and threads", uneven(rows)),
            ("Receive queues without traffic", unspread(rows)),
            ("Shared physical cores", shared(rows)),
            ("Kinds of cores and last-level caches", unlike(rows)),
            ("Generator", [(limit, 1)] if (limit := counting_limit(topology.tg)) else []),
        ],
        times=times,
        data=page_data(rows),
        style=own_file("plan.css"),
        script=own_file("plan.js"),
    )


def _memory(topology: Topology, memory: MemoryLayout | None) -> str:
    there = node_of(topology, memory)
    if there is None:
        return "memory unknown, not checked"
    text = f"{spare_mb(there) / 1024:.1f} GB of memory for cells"
    return text + (f", {there.hugepages_mb / 1024:g} GB of huge pages" if there.hugepages_mb else ", no huge pages")


def _by(rows: Iterable[Candidate], key: Any) -> list[tuple[Any, list[Candidate]]]:  # noqa: ANN401 - a sort key
    return [(name, list(group)) for name, group in groupby(sorted(rows, key=key), key=key)]


def _matrices(rows: Sequence[Candidate]) -> list[_Matrix]:
    def key(row: Candidate) -> tuple[str, str, str]:
        return row.cell.service_type.value, row.cell.size_name, "+".join(row.cell.nf_kinds)

    found = []
    for (kind, size, nf_kinds), group in groupby(rows, key=key):
        places = {row.cell.dimensions: row for row in group}
        columns = sorted({nodes for _, nodes in places})
        lines = [
            (chains, [_square(places.get(Dimensions(chains, nodes))) for nodes in columns])
            for chains in sorted({chains for chains, _ in places})
        ]
        title = f"{kind} · NF-{size}{' · ' + nf_kinds if nf_kinds else ''}"
        fits = sum(row.fits for row in places.values())
        found.append((f"{title} · {fits} of {len(places)} fit", columns, lines))
    return found


def _square(row: Candidate | None) -> PlanSquare | None:
    if row is None:
        return None
    state = "fits" if row.fits else "over" if row.runs else "none"
    words = {"fits": "fits", "over": "oversubscribed", "none": "does not fit"}[state]
    cores = f", {row.cores.cores_needed} cores" if row.cores else ""
    balance = row.balance is not None and not row.balance.even
    label = f"{row.cell.dimensions} {words}{cores}"
    return PlanSquare(mark(row).rstrip("*"), state, balance, label, key_of(row))


def key_of(row: Candidate) -> str:
    """A cell's place in the data, and in the page's address."""
    cell = row.cell
    kinds = f"-{'+'.join(cell.nf_kinds)}" if cell.nf_kinds else ""
    return f"{cell.service_type}-{cell.dimensions}-{cell.size_name}-{cell.vs_dtc}c{kinds}"


def page_data(rows: Sequence[Candidate]) -> dict[str, Any]:
    """Everything that the script shows, each text and core map once.

    A cell is [name, cores by the slides' counting, reasons, uneven, siblings, core map or -1, receive queues of
    physical ports]; a core map is
    [NUMA node, cores needed, cores there, physical cores as `0,28|1,29`, threads as `owner:role cpus ...`], and for
    every further machine its name and the same five.
    """
    numbers: dict[str, int] = {}
    maps: dict[str, int] = {}

    def texts(found: Iterable[str]) -> list[int]:
        return [numbers.setdefault(text, len(numbers)) for text in found]

    cells = {}
    for row in rows:
        even = row.balance
        cells[key_of(row)] = [
            row.cell.name,
            core_usage(row.cell),
            texts(reason.text for reason in row.reasons),
            texts((*even.uneven(), *row.port_warnings)) if even else [],
            texts(even.siblings()) if even else [],
            maps.setdefault(_encoded(row.cores), len(maps)) if row.cores else -1,
            texts(map(str, row.ports)),
        ]
    return {"cells": cells, "texts": list(numbers), "maps": [text.split("\n") for text in maps]}


def _encoded(cores: CoreMap) -> str:
    """A core map as compact text: 60 threads take 600 bytes. Machines after the first have their name."""
    others = [line for each in cores.elsewhere for line in (each.machine, *_lines(each, cores.on(each.machine)))]
    return "\n".join([*_lines(cores, cores.on(None)), *others])


def _lines(cores: CoreMap | MachineCores, threads: Iterable[Thread]) -> list[str]:
    by_owner: dict[tuple[str, ThreadRole], list[int]] = {}
    for thread in threads:
        by_owner.setdefault((thread.owner, thread.role), []).append(thread.cpu)
    physical = "|".join(",".join(map(str, core)) for core in cores.physical)
    text = " ".join(f"{owner}:{_ROLES[role]}{','.join(map(str, cpus))}" for (owner, role), cpus in by_owner.items())
    return [str(cores.numa_node), str(cores.cores_needed), str(cores.cores_there), physical, text]
