"""`local`: the main job on the machine at hand, from nothing to a report."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from robot.run import run_cli

from csit_utils.commands.places import LOCAL_TOPOLOGY, PROJECT
from csit_utils.commands.report import report
from csit_utils.commands.show import show
from resources.libraries.python.deployment.worlds import layout_of, world_of
from resources.libraries.python.errors import CsitError, PlanError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.selection import Selection, parse_selection
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.matrix import candidates
from resources.libraries.python.recording.writer import check_folder
from resources.libraries.python.search.profiles import profile

_SPACE_BYTES = 100_000_000


def local(
    topology: Annotated[Path, typer.Option(help="Testbed file.")] = LOCAL_TOPOLOGY,
    types: Annotated[str, typer.Option(help="Service types.")] = "CSC,CSP",
    cells: Annotated[str, typer.Option(help="Rows x columns, such as 1x1,2x1 or {1,2}x{1-4}.")] = "1x1,1x2,2x1",
    nf_sizes: Annotated[str, typer.Option(help="Data cores of an NF.")] = "1c",
    vswitch: Annotated[str, typer.Option(help="Data cores of the vSwitch.")] = "1",
    frames: Annotated[str, typer.Option(help="Frame sizes.")] = "64B",
    search: Annotated[str, typer.Option(help="Search profile: quick, or csit for results that count.")] = "quick",
    output: Annotated[Path | None, typer.Option(help="Folder for the results; default results/<time>.")] = None,
) -> None:
    """Measure a small density matrix on this machine with real packets, and write a report.

    Needs root (network namespaces). Takes about six minutes with the defaults. Everything it makes on the machine is
    gone afterwards; after a kill -9 the next run removes what was left.

    Example: ./csit local --cells '{1,2,4}x{1,2}' --search csit
    """
    testbed = load_topology(topology)
    choice = parse_selection(service_types=types, cells=cells, nf_sizes=nf_sizes, vswitch=vswitch, frames=frames)
    profile(search)
    folder = output or PROJECT / "results" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    check_folder(folder, _SPACE_BYTES)
    suites = _suites(testbed, choice)
    _try_to_open(testbed)
    variables = {"TOPOLOGY": topology, "CELLS": cells, "NF_SIZES": nf_sizes, "VSWITCH": vswitch}
    variables |= {"FRAMES": frames, "SEARCH": search}
    argv = ["--console", "quiet", "--outputdir", str(folder)]
    argv += [option for name, value in variables.items() for option in ("--variable", f"{name}:{value}")]
    argv += [option for suite in suites for option in ("--suite", suite)]
    # In this process: Ctrl-C and SIGTERM reach Robot, which then removes what it made.
    status = run_cli([*argv, str(PROJECT / "tests" / "density")], exit=False)
    output_xml = folder / "output.xml"
    if not output_xml.exists():
        raise CsitError(f"robot ended with {status} and left no {output_xml}")
    page = folder / "density.html"
    report([output_xml], output=page, csv=folder / "csv")
    show([output_xml])
    typer.echo(f"\nreport: {page}")
    raise typer.Exit(1 if status else 0)


def _suites(testbed: Topology, choice: Selection) -> list[str]:
    """The suites that have something to run.

    Raises:
        PlanError: None has.
    """
    looked_at = list(candidates(testbed, layout_of(testbed), choice))
    kinds = dict.fromkeys(each.cell.service_type for each in looked_at if each.runs)
    if not kinds:
        first = looked_at[0]
        raise PlanError(f"{first.cell.service_type} {first.cell.locator} NF-{first.cell.size_name}: {first.reason}")
    return [f"{kind.lower()}-ndrpdr" for kind in kinds]


def _try_to_open(testbed: Topology) -> None:
    """Find out before Robot starts whether the testbed can be used, and clean up after a run that was killed."""
    world = world_of(testbed)
    for line in world.open():
        typer.echo(line, err=True)
    world.close()
