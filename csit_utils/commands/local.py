"""`local`: the main job on the machine at hand, from nothing to a report."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.report import report
from csit_utils.commands.show import show
from resources.libraries.python.deployment.worlds import world_of
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.recording.writer import check_folder

PROJECT = Path(__file__).parents[2]
LOCAL_TOPOLOGY = PROJECT / "topologies" / "local.yaml"
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
    folder = output or PROJECT / "results" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    check_folder(folder, _SPACE_BYTES)
    if problems := world_of(testbed).problems():
        raise Unsupported("; ".join(problems))
    suites = [f"{word.strip().lower()}-ndrpdr" for word in types.split(",")]
    variables = {"TOPOLOGY": topology, "CELLS": cells, "NF_SIZES": nf_sizes, "VSWITCH": vswitch}
    variables |= {"FRAMES": frames, "SEARCH": search}
    argv = [sys.executable, "-m", "robot", "--console", "quiet", "--outputdir", str(folder)]
    argv += [option for name, value in variables.items() for option in ("--variable", f"{name}:{value}")]
    argv += [option for suite in suites for option in ("--suite", suite)]
    status = subprocess.run([*argv, str(PROJECT / "tests" / "density")], cwd=PROJECT, check=False).returncode
    output_xml = folder / "output.xml"
    if not output_xml.exists():
        raise CsitError(f"robot ended with {status} and left no {output_xml}")
    page = folder / "density.html"
    report([output_xml], output=page, csv=folder / "csv")
    show([output_xml])
    typer.echo(f"\nreport: {page}")
    raise typer.Exit(1 if status else 0)
