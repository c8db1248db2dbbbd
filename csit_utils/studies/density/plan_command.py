"""`plan`: preview of a density matrix: cells that fit, their cores, estimated time."""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, print_sentence
from csit_utils.studies.density.plan_table import Times, print_cell, print_plan, times
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import hint
from resources.libraries.python.model.load import load_topology, text_of
from resources.libraries.python.model.request.cell import TestType, readable_cells
from resources.libraries.python.model.request.variables import DENSITY, RESUME, SET, read_by
from resources.libraries.python.model.testbed.cpu import CpuLayout, parse_lscpu
from resources.libraries.python.model.testbed.csit_topology import Secrets
from resources.libraries.python.model.testbed.memory import MemoryLayout
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.planning.memory import in_pages, need, node_of
from resources.libraries.python.planning.physical_ports import assumptions, attached
from resources.libraries.python.planning.placement.cores import Layouts, layouts_of
from resources.libraries.python.planning.placement.queues import Spread
from resources.libraries.python.planning.placement.sender_threads import counting_limit
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.quantities import counted
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.planning.extras import chosen_extras
from resources.libraries.python.studies.density.planning.matrix import Candidate, candidates, core_usage
from resources.libraries.python.studies.density.planning.selection import (
    DRAFT_GRID,
    Selection,
    parse_frames,
    parse_selection,
)
from resources.libraries.python.testbed.kinds.factory import layout_of, memory_of, refuse_wrong_simulation
from resources.libraries.python.whole_files import write_whole

TYPES = Annotated[
    str, typer.Option(help="Service types: chains of VMs (VSC) or containers (CSC), pipelines of containers (CSP).")
]
CELLS = Annotated[str, typer.Option(help="Service instances x NFs per instance, such as 1x1,2x1.")]
NF_SIZES = Annotated[
    str, typer.Option(help="Data cores per NF: 0.5c, 1c, 2c, …; 0.5c-shared without SMT; 1c+0.5c: per NF of a service.")
]
NF_KINDS = Annotated[
    str, typer.Option(help="Kinds of NF, such as linux_router+linux_nat; default: as in the topology.")
]
VSWITCH = Annotated[str, typer.Option(help="Data cores of the vSwitch.")]
CACHE_WAYS = Annotated[str, typer.Option(help="Ways of the last-level cache for each NF, by resctrl; default: none.")]
VARIABLE = Annotated[
    list[str] | None,
    typer.Option("-v", "--variable", metavar="NAME:VALUE", help="Variable NAME:value, as for ./csit robot."),
]


def plan(
    topology: Annotated[Path | None, typer.Argument(help="Topology file; default: topologies/local.yaml.")] = None,
    types: TYPES = "VSC,CSC,CSP",
    cells: CELLS = DRAFT_GRID,
    nf_sizes: NF_SIZES = "1c,0.5c",
    nf_kinds: NF_KINDS = "",
    vswitch: VSWITCH = "1",
    frames: Annotated[str, typer.Option(help="Frame sizes, for the number of tests.")] = "64B",
    flows: Annotated[str, typer.Option(help="Numbers of flows, such as 1,1000, for the number of tests.")] = "",
    ip_version: Annotated[str, typer.Option(help="Versions of IP, such as 4,6, for the number of tests.")] = "4",
    cache_ways: CACHE_WAYS = "",
    search: Annotated[str, typer.Option(help="Search profile, for the time estimate.")] = "ladder",
    tests: Annotated[str, typer.Option(help="Test types, for the number and time of tests.")] = "NDRPDR,MRR,LATENCY",
    variable: VARIABLE = None,
    cell: Annotated[str, typer.Option(help="Show one cell: 'CSC 2x4 1c' or 'CSC 2x4 1c vswitch-2c'.")] = "",
    cpus: Annotated[
        list[str] | None, typer.Option(metavar="NODE=FILE", help="Output of `lscpu -p` of a node of a lab.")
    ] = None,
    form: TABLE_OR_JSON = TableForm.TABLE,
    html: Annotated[Path | None, typer.Option(help="Also write an HTML page with matrix and core maps.")] = None,
) -> None:
    """Show which cells fit a testbed, their cores, and the time.

    Lists the reason for cells that do not fit. Changes nothing, connects to no node, and needs no root. The options are
    the variables of the suites, so that the plan is what a run would measure.

    \b
    Examples:
    ./csit plan topologies/sim.yaml --cells 1-10x1-10 --html plan.html
    """  # noqa: D301 - \b keeps the lines of the examples apart
    words = {"CELLS": cells, "NF_SIZES": nf_sizes, "NF_KINDS": nf_kinds, "VSWITCH": vswitch, "FRAMES": frames}
    words |= {"FLOWS": flows, "IP_VERSION": ip_version, "CACHE_WAYS": cache_ways, "SEARCH": search}
    words |= variables_of(variable or [])
    testbed = load_topology(topology or Path(words.get("TOPOLOGY", str(LOCAL_TOPOLOGY))), Secrets.IGNORE)
    refuse_wrong_simulation(testbed)
    layout, memory = _known(testbed, cpus or [])
    if cell:
        chosen = parse_cell(cell, words["NF_KINDS"], words["CACHE_WAYS"]).model_copy(
            update={"frames": parse_frames(words["FRAMES"], words["FLOWS"], words["IP_VERSION"])}
        )
        _one_cell(testbed, chosen, layout, memory)
        return
    selection = parse_selection(
        service_types=types,
        cells=words["CELLS"],
        nf_sizes=words["NF_SIZES"],
        vswitch=words["VSWITCH"],
        frames=words["FRAMES"],
        nf_kinds=words["NF_KINDS"],
        flows=words["FLOWS"],
        ip_versions=words["IP_VERSION"],
        cache_ways=words["CACHE_WAYS"],
    )
    begin = time.perf_counter()
    rows = list(candidates(testbed, layout, selection, memory))
    typer.echo(f"planned {counted(len(rows), 'cell')} in {time.perf_counter() - begin:.2f} s", err=True)
    extras = chosen_extras(words.get)
    took = times(testbed, rows, profile(words["SEARCH"]), test_types_of(tests), extras=extras)
    if html is not None:
        from csit_utils.studies.density.plan_page import render_plan  # noqa: PLC0415 - costs time of every --help

        write_whole(html, render_plan(testbed, memory, rows, took))
    if form is TableForm.JSON:
        for row in rows:
            typer.echo(json.dumps(cell_object(row)))
        typer.echo(json.dumps(summary_object(testbed, rows, took)))
        return
    print_plan(rows, took)
    for line in (*attached(testbed), *assumptions(testbed), *filter(None, (counting_limit(testbed.tg),))):
        print_sentence(line)
    if html is not None:
        typer.echo(f"page: {html}")


def variables_of(given: list[str]) -> dict[str, str]:
    """Return the values of Robot variables `NAME:value` of density suites by name.

    Raises:
        ConfigError: One has another form, or an unknown name.
    """
    found, names = {}, [each.name for each in read_by(DENSITY) if each not in {RESUME, SET}]
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or name not in names:
            advice = (colon and hint(name, names)) or f", with NAME one of {', '.join(names)}"
            raise ConfigError(f"'{text}': expected NAME:value{advice}")
        found[name] = value
    return found


def test_types_of(text: str) -> list[TestType]:
    """Return the test types of a list such as `NDRPDR,MRR`.

    Raises:
        ConfigError: One is unknown, or there is none.
    """
    known = {kind.value: kind for kind in TestType}
    words = [word.strip().upper() for word in text.split(",") if word.strip()]
    wrong = [word for word in words if word not in known]
    if wrong or not words:
        raise ConfigError(f"no test type '{', '.join(wrong)}'; choose from {', '.join(known)}")
    return [known[word] for word in dict.fromkeys(words)]


def parse_cell(text: str, nf_kinds: str = "", cache_ways: str = "") -> Selection:
    """Return the selection of one cell, such as `CSC 2x4 0.5c vswitch-2c`; sizes default to 1c.

    Raises:
        ConfigError: The text has another form, or selects several cells.
    """
    match = re.fullmatch(
        r"\s*(\w+)\s+(\d+\s*x\s*\d+)(?:\s+(?:NF-)?((?:[\d.c+]|-shared)+))?(?:\s+vswitch-([\dc]+))?\s*",
        readable_cells(text),
        re.IGNORECASE,
    )
    if match is None:
        raise ConfigError(f"no cell '{text}'; expected type, rows x columns and sizes: 'CSC 2x4 1c vswitch-1c'")
    kind, point, size, vswitch = match.groups()
    selection = parse_selection(
        service_types=kind,
        cells=point,
        nf_sizes=size or "1c",
        vswitch=vswitch or "1",
        nf_kinds=nf_kinds,
        cache_ways=cache_ways,
    )
    if len(selection.cells()) != 1:
        raise ConfigError(f"'{text}' selects {len(selection.cells())} cells; give one size for all NFs, or one per NF")
    return selection


def _known(testbed: Topology, files: list[str]) -> tuple[Layouts, MemoryLayout | None]:
    """Return CPUs and memory as far as they are known without connecting to nodes.

    Raises:
        ConfigError: A file of CPUs is unreadable or invalid.
    """
    given = dict(_cpus(testbed, text) for text in files)
    if testbed.world is not World.LAB:
        return given or layout_of(testbed), memory_of(testbed)
    memory = testbed.dut.memory
    return given, memory if isinstance(memory, tuple) else None


def _cpus(testbed: Topology, text: str) -> tuple[str, CpuLayout]:
    node, equals, name = text.partition("=")
    if not equals or node not in testbed.nodes:
        raise ConfigError(f"'{text}': expected NODE=FILE, with NODE one of {', '.join(testbed.nodes)}")
    lscpu = text_of(Path(name))
    try:
        return node, parse_lscpu(lscpu)
    except ValueError as error:
        raise ConfigError(f"{name}: CPUs of {node}: {error}") from error


def _one_cell(testbed: Topology, selection: Selection, layout: Layouts, memory: MemoryLayout | None) -> None:
    (row,) = candidates(testbed, layout, selection, memory)
    made = make_plan(testbed, row.cell, layout) if row.runs else None
    print_cell(row, made, selection.frames)
    of_dut = next(iter(layouts_of(testbed, layout).values()))
    if pages := in_pages(need(testbed, row.cell, of_dut), node_of(testbed, memory)):
        print_sentence(f"  huge pages: {pages}")
    for line in (*assumptions(testbed), *filter(None, (counting_limit(testbed.tg),))):
        print_sentence(f"  {line}")


def cell_object(row: Candidate) -> dict[str, Any]:
    """One cell."""
    cell, cores, even = row.cell, row.cores, row.balance
    sizes = [size.cores for size in cell.nf_sizes]
    return {
        "object": "cell",
        "service_type": cell.service_type.value,
        **cell.dimensions.columns,
        "nf_dtc": sizes[0] if len(sizes) == 1 else sizes,
        "nf_kinds": list(cell.nf_kinds),
        "vs_dtc": cell.vs_dtc,
        "fits": row.fits,
        "runs": row.runs,
        "oversubscribed": row.oversubscribed,
        "reason": row.reason,
        "frames": [frame.name for frame in row.frames],
        "frames_refused": {frame.name: reason for frame, reason in row.not_taken.items()},
        "reasons": [reason.model_dump(mode="json") for reason in row.reasons],
        "slide_cores": core_usage(cell),
        "cores_needed": cores.cores_needed if cores else None,
        "cores_there": cores.cores_there if cores else None,
        "cores": [thread.model_dump(mode="json") for thread in cores.threads] if cores else None,
        "queues": [
            {"port": port.name, "owner": port.owner, "data_threads": list(port.queues), "cpus": list(port.cpus)}
            for port in row.ports
        ],
        "queue_warnings": list(row.port_warnings),
        "core_notes": list(row.core_notes),
        "balance": None
        if even is None
        else {
            "even": even.even,
            "vswitch": _spread(even.vswitch),
            "nfs": {size: _spread(spread) for size, spread in even.nfs},
            "cores_with_siblings_of_two_nfs": even.sibling_nfs,
            "data_threads_per_cpu": [even.least_threads, even.most_threads],
            "uneven": list(even.uneven()),
            "siblings": list(even.siblings()),
        },
    }


def _spread(spread: Spread) -> dict[str, int]:
    return {"queues": spread.queues, "threads": spread.threads, "least": spread.least, "most": spread.most}


def summary_object(topology: Topology, rows: Sequence[Candidate], times: Times) -> dict[str, Any]:
    """The whole selection."""
    return {
        "object": "summary",
        "testbed": topology.metadata.name,
        "world": topology.world.value,
        "generator_warning": counting_limit(topology.tg),
        "cells": len(rows),
        "cells_fit": sum(row.fits for row in rows),
        "cells_oversubscribed": sum(row.oversubscribed for row in rows),
        "cells_refused": sum(not row.runs for row in rows),
        "tests": times.tests,
        "profile": times.profile,
        "seconds": times.seconds,
        "seconds_are_virtual": times.simulated,
        "suites": [asdict(suite) for suite in times.suites],
    }
