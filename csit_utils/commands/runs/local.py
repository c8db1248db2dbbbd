"""`local`: measure a density matrix on this machine, and write a report."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from csit_utils.commands.results.report import report
from csit_utils.commands.results.show import show
from csit_utils.commands.runs.command_line import typed
from csit_utils.commands.runs.robot import run_suites
from csit_utils.dataset.inputs import output_of
from csit_utils.studies.density.plan_command import CACHE_WAYS, NF_KINDS, NF_SIZES, TYPES, VSWITCH
from resources.libraries.python.errors import ConfigError, CsitError, PlanError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.recording.journal import JOURNAL_FILE
from resources.libraries.python.recording.lines import refuse_active
from resources.libraries.python.recording.run_journal import header_of
from resources.libraries.python.recording.writer import check_folder
from resources.libraries.python.redaction import command_text
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.planning.matrix import candidates
from resources.libraries.python.studies.density.planning.selection import Selection, parse_selection
from resources.libraries.python.studies.density.search_priors import PriorBook, newest_run
from resources.libraries.python.testbed.kinds.factory import layout_of, make_testbed, memory_of

_COMMAND = "local"
CELLS = "1x1,1x2,2x1"
MORE_THAN_ONE_VM = "VSC NOT 1R1C"
"""Excluded unless the user chooses cells: virtual machines boot slowly and, emulated, their figures mean little."""
_SPACE_BYTES = 100_000_000


def local(
    context: typer.Context,
    topology: Annotated[
        Path, typer.Option("-t", "--topology", help="Topology file.", show_default="topologies/local.yaml")
    ] = LOCAL_TOPOLOGY,
    types: TYPES = "VSC,CSC,CSP",
    cells: Annotated[
        str,
        typer.Option(
            help="Service instances x NFs per instance, such as 1x1,2x1 or {1,2}x{1-4}. By default VSC, which boots "
            "virtual machines, runs only 1x1."
        ),
    ] = CELLS,
    nf_sizes: NF_SIZES = "1c",
    nf_kinds: NF_KINDS = "",
    vswitch: VSWITCH = "1",
    frames: Annotated[str, typer.Option(help="Frame sizes, such as 64B,IMIX.")] = "64B",
    flows: Annotated[
        str,
        typer.Option(help="Flows of each instance and direction, such as 1,1000,1000000; default: 254 addresses."),
    ] = "",
    ip_version: Annotated[str, typer.Option(help="Versions of IP, such as 4,6.")] = "",
    cache_ways: CACHE_WAYS = "",
    search: Annotated[
        str, typer.Option(help="Search profile: quick (rough), ladder, reference, rfc2544 or soak.")
    ] = "quick",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the results; default: results/<time>."),
    ] = None,
    priors: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Earlier run whose results searches start from; default: the latest in results/."
        ),
    ] = None,
    cold: Annotated[bool, typer.Option("--cold", help="Do not start searches from earlier results.")] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Resume the interrupted run of this folder.")
    ] = None,
) -> None:
    """Measure a small matrix on this machine, and report it.

    Sends real packets through network namespaces, so it needs root. Takes about six minutes with the defaults on two
    cores. Removes everything it makes on the machine; if it is killed, the next run cleans up.

    \b
    Examples:
    ./csit local --cells '{1,2,4}x{1,2}' --search ladder
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if resume is not None:
        _check_resumption(context, resume)
        _measure(resume.absolute())
    if cold and priors is not None:
        raise ConfigError(f"--cold starts no search from earlier results; leave out --priors {priors}")
    testbed = load_topology(topology)
    _refuse_without_root(testbed)
    choice = parse_selection(
        service_types=types,
        cells=cells,
        nf_sizes=nf_sizes,
        vswitch=vswitch,
        frames=frames,
        nf_kinds=nf_kinds,
        flows=flows,
        ip_versions=ip_version or "4",
        cache_ways=cache_ways,
    )
    profile(search)
    folder = output or PROJECT / "results" / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    if priors is None and output is None and not cold:
        priors = newest_run(folder)
    earlier = [] if priors is None else [("PRIORS", PriorBook(priors).folder.absolute())]
    refuse_active(folder / JOURNAL_FILE)
    suites = _suites(testbed, choice)
    _try_to_open(testbed)
    check_folder(folder, _SPACE_BYTES)  # last: it makes the folder, and a refused run leaves none
    variables = {"TOPOLOGY": topology, "CELLS": cells, "NF_SIZES": nf_sizes, "VSWITCH": vswitch}
    variables |= {"FRAMES": frames, "SEARCH": search, "NF_KINDS": nf_kinds}
    variables |= {
        name: value
        for name, value in {"FLOWS": flows, "IP_VERSION": ip_version, "CACHE_WAYS": cache_ways}.items()
        if value
    }
    variables |= earlier
    argv = ["--console", "quiet"]
    argv += [option for name, value in variables.items() for option in ("--variable", f"{name}:{value}")]
    argv += [option for suite in suites for option in ("--suite", suite)]
    if {"types", "cells"}.isdisjoint(typed(context)):
        argv += ["--exclude", MORE_THAN_ONE_VM]
    argv.append(str(PROJECT / "tests" / "density"))
    _measure(folder, argv)


def _measure(folder: Path, argv: Sequence[str] = ()) -> NoReturn:
    """Run suites, or what is left of an interrupted run, write the report, and exit with 1 if a test failed."""
    if argv:
        status = run_suites(["--outputdir", str(folder), *argv], command=_COMMAND)
    else:
        status = run_suites([], command=_COMMAND, resume=folder)
    output_xml = output_of(folder)
    if not output_xml.exists():
        raise CsitError(f"robot exited with status {status} and wrote no {output_xml}")
    page = folder / "density.html"
    try:
        report([output_xml], output=page, csv=folder / "csv")
    except OSError as error:
        raise CsitError(f"{folder}: the report cannot be written: {error.strerror or error}") from error
    show([output_xml])
    typer.echo(f"\nreport: {page}")
    raise typer.Exit(1 if status else 0)


def _check_resumption(context: typer.Context, folder: Path) -> None:
    """Check that a run can be resumed on a usable testbed.

    Raises:
        ConfigError: No such run, or other options are given.
    """
    if given := [f"--{name.replace('_', '-')}" for name in typed(context) if name != "resume"]:
        raise ConfigError(f"--resume uses the options of the interrupted run; remove {', '.join(given)}")
    header = header_of(folder)
    if header.command != _COMMAND:
        resume = command_text("./csit", "robot", "--resume", folder)
        raise ConfigError(f"{folder}: not a run of ./csit local; use ", resume)
    refuse_active(folder / JOURNAL_FILE)
    testbed = load_topology(Path(header.choices.topology))
    _refuse_without_root(testbed)
    _try_to_open(testbed)


def _suites(testbed: Topology, choice: Selection) -> list[str]:
    """Return the suites with at least one cell that fits.

    Raises:
        PlanError: No cell fits.
    """
    looked_at = list(candidates(testbed, layout_of(testbed), choice, memory_of(testbed)))
    kinds = dict.fromkeys(each.cell.service_type for each in looked_at if each.runs)
    if not kinds:
        first = looked_at[0]
        raise PlanError(f"{first.cell.name}: {first.reason}")
    return [f"{kind.lower()}-ndrpdr" for kind in kinds]


def _refuse_without_root(testbed: Topology) -> None:
    """Refuse before anything is planned or looked up: the entry script does it too, before it installs packages."""
    if testbed.world is World.LOCAL and os.geteuid() != 0:
        raise ConfigError(
            "local needs root to make network namespaces; as another user: ",
            command_text("./csit", "robot", "-v", "TOPOLOGY:topologies/sim.yaml", "tests/density"),
        )


def _try_to_open(testbed: Topology) -> None:
    """Check before Robot starts that the testbed is usable, and clean up after a killed run."""
    world = make_testbed(testbed)
    for line in world.open():
        typer.echo(line, err=True)
    world.close()
