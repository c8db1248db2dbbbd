"""`local`: the main job on the machine at hand, from nothing to a report."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from robot.run import run_cli

from csit_utils.commands.report import report
from csit_utils.commands.resuming import again, remembered
from csit_utils.commands.show import show
from resources.libraries.python.errors import ConfigError, CsitError, PlanError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.recording.run_journal import header_of
from resources.libraries.python.recording.writer import check_folder
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.model.selection import Selection, parse_selection
from resources.libraries.python.studies.density.planning.matrix import candidates
from resources.libraries.python.studies.density.search_priors import PriorBook, newest_run
from resources.libraries.python.testbed.worlds.factory import layout_of, memory_of, world_of

_TYPED = "COMMANDLINE"
CELLS = "1x1,1x2,2x1"
MORE_THAN_ONE_VM = "VSC NOT 1R1C"
"""Left out where nobody has chosen cells: virtual machines take long to boot and, emulated, say little."""
_SPACE_BYTES = 100_000_000


def local(
    context: typer.Context,
    topology: Annotated[Path, typer.Option(help="Testbed file.")] = LOCAL_TOPOLOGY,
    types: Annotated[str, typer.Option(help="Service types.")] = "VSC,CSC,CSP",
    cells: Annotated[
        str, typer.Option(help="Rows x columns, such as 1x1,2x1 or {1,2}x{1-4}; by default of VSC only 1x1.")
    ] = CELLS,
    nf_sizes: Annotated[str, typer.Option(help="Data cores of an NF.")] = "1c",
    nf_kinds: Annotated[
        str, typer.Option(help="Kinds of NF, such as linux_router+linux_nat; empty: the testbed's.")
    ] = "",
    vswitch: Annotated[str, typer.Option(help="Data cores of the vSwitch.")] = "1",
    frames: Annotated[str, typer.Option(help="Frame sizes.")] = "64B",
    search: Annotated[str, typer.Option(help="quick, csit (results that count), reference, rfc2544, soak.")] = "quick",
    output: Annotated[Path | None, typer.Option(help="Folder for the results; default results/<time>.")] = None,
    priors: Annotated[
        Path | None,
        typer.Option(help="Earlier results that searches start from; default the newest run in results/."),
    ] = None,
    cold: Annotated[bool, typer.Option("--cold", help="Start every search from nothing.")] = False,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run of this folder, which was cut short.")] = None,
) -> None:
    """Measure a small density matrix on this machine with real packets, and write a report.

    Needs root (network namespaces). Takes about six minutes with the defaults. Everything it makes on the machine is
    gone afterwards; after a kill -9 the next run removes what was left.

    Example: ./csit local --cells '{1,2,4}x{1,2}' --search csit
    """
    if resume is not None:
        _measure(resume.absolute(), _resumed(context, resume))
    testbed = load_topology(topology)
    choice = parse_selection(
        service_types=types, cells=cells, nf_sizes=nf_sizes, vswitch=vswitch, frames=frames, nf_kinds=nf_kinds
    )
    profile(search)
    folder = output or PROJECT / "results" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    check_folder(folder, _SPACE_BYTES)
    suites = _suites(testbed, choice)
    _try_to_open(testbed)
    variables = {"TOPOLOGY": topology, "CELLS": cells, "NF_SIZES": nf_sizes, "VSWITCH": vswitch}
    variables |= {"FRAMES": frames, "SEARCH": search, "NF_KINDS": nf_kinds}
    if priors is None and output is None:
        priors = newest_run(folder)
    if priors is not None and not cold:
        variables["PRIORS"] = PriorBook(priors).folder.absolute()
    argv = ["--console", "quiet"]
    argv += [option for name, value in variables.items() for option in ("--variable", f"{name}:{value}")]
    argv += [option for suite in suites for option in ("--suite", suite)]
    sources = [context.get_parameter_source(name) for name in ("types", "cells")]
    if not any(source and source.name == _TYPED for source in sources):
        argv += ["--exclude", MORE_THAN_ONE_VM]
    argv.append(str(PROJECT / "tests" / "density"))
    _measure(folder, ["--variable", remembered("local", argv), *argv])


def _measure(folder: Path, argv: list[str]) -> NoReturn:
    """Run Robot, write the report, end with its status."""
    # In this process: Ctrl-C and SIGTERM reach Robot, which then removes what it made.
    status = run_cli(["--outputdir", str(folder), *argv], exit=False)
    output_xml = folder / "output.xml"
    if not output_xml.exists():
        raise CsitError(f"robot ended with {status} and left no {output_xml}")
    page = folder / "density.html"
    try:
        report([output_xml], output=page, csv=folder / "csv")
    except OSError as error:
        raise CsitError(f"{folder}: the report cannot be written: {error.strerror or error}") from error
    show([output_xml])
    typer.echo(f"\nreport: {page}")
    raise typer.Exit(1 if status else 0)


def _resumed(context: typer.Context, folder: Path) -> list[str]:
    """Robot's command line for the rest of a run, after a look whether the testbed can be used.

    Raises:
        ConfigError: There is no such run, or other choices are given as well.
    """
    sources = {name: context.get_parameter_source(name) for name in context.params if name != "resume"}
    given = [f"--{name.replace('_', '-')}" for name, source in sources.items() if source and source.name == _TYPED]
    if given:
        raise ConfigError(f"--resume goes on with what the run was begun with; leave out {', '.join(given)}")
    header = header_of(folder)
    if header.command != "local":
        raise ConfigError(f"{folder}: this run was not begun by ./csit local; say ./csit robot --resume {folder}")
    argv = again(folder)
    _try_to_open(load_topology(Path(header.choices.topology)))
    return argv


def _suites(testbed: Topology, choice: Selection) -> list[str]:
    """The suites that have something to run.

    Raises:
        PlanError: None has.
    """
    looked_at = list(candidates(testbed, layout_of(testbed), choice, memory_of(testbed)))
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
