"""`night`: measure, within a time limit, the tests whose stored results are least certain."""

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.analysis.night import NightPlan, NightRules, Omission, durations, known_tests, plan_night
from csit_utils.bisection.spec import share_of
from csit_utils.commands.results.inputs import opened, print_problems
from csit_utils.commands.results.report import report
from csit_utils.commands.results.selections import RESULTS, refuse_missing
from csit_utils.commands.runs.command_line import typed
from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.contents import Contents
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.ledger import acknowledged_in
from csit_utils.night import (
    CHOICES_FILE,
    MAX_HOURS,
    NOT_BEGUN,
    OPENING_S,
    PLANNED,
    NightChoices,
    NightClock,
    NightJournal,
    as_known,
    matrix_tests,
    reason_of,
    render_night,
    run_night,
    stored_rows,
    study_tests,
    summary,
    why_left_out,
)
from csit_utils.report.units import seconds
from csit_utils.studies.density.plan_command import (
    CELLS,
    NF_KINDS,
    NF_SIZES,
    TYPES,
    VARIABLE,
    VSWITCH,
    test_types_of,
    variables_of,
)
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.load import load_json, load_topology
from resources.libraries.python.model.request.variables import NOISE_FLOOR
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.writer import check_folder
from resources.libraries.python.redaction import command_text
from resources.libraries.python.studies.density.planning.selection import DRAFT_GRID, parse_selection
from resources.libraries.python.whole_files import write_whole

_SPACE_BYTES = 100_000_000
_FAILED, _INTERRUPTED, _LACKED_TIME = 1, 3, 4
_PAGE = "night.html"


def night(
    context: typer.Context,
    topology: Annotated[Path | None, typer.Argument(help="Topology file.")] = None,
    hours: Annotated[
        float, typer.Option(metavar="HOURS", help=f"Time limit, up to {MAX_HOURS:g}; 0.5 is half an hour.")
    ] = 8.0,
    types: TYPES = "CSC,CSP",
    cells: CELLS = DRAFT_GRID,
    nf_sizes: NF_SIZES = "1c",
    nf_kinds: NF_KINDS = "",
    vswitch: VSWITCH = "1",
    frames: Annotated[str, typer.Option(help="Frame sizes, such as 64B,IMIX.")] = "64B",
    search: Annotated[str, typer.Option(help="Search profile.")] = "ladder",
    tests: Annotated[str, typer.Option(help="Test types.")] = "NDRPDR",
    variable: VARIABLE = None,
    studies: Annotated[
        str, typer.Option(help="Tags of tests of other studies to choose from as well, such as 'OUTAGE OR STATEFUL'.")
    ] = "",
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", help="Stored results: file, folder or dataset.", show_default="results"),
    ] = None,
    within: Annotated[
        str, typer.Option(metavar="SHARE", help="Half-width of the 95 % interval of a level at which it is settled.")
    ] = "2%",
    unseen_days: Annotated[
        float,
        typer.Option(min=0, metavar="DAYS", help="Measure what was not measured for so many days; 0: everything once."),
    ] = 7.0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the results; default: results/night-<time>."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and measure nothing.")] = False,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Continue the interrupted night of this folder with the time it has left."),
    ] = None,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Measure the least certain tests within a time limit.

    Chooses from a density matrix, and from the tests of other studies (--studies), in this order: first tests with a
    suspected step, as often as a confirmed one needs; then tests never measured, or not for --unseen-days, the longest
    unseen first; then repeats of tests whose level is known less closely than --within, those first that narrow the
    interval most per hour. Prints what it will measure, why, how long that takes, and what it leaves out; then runs the
    suites as ./csit robot does. Time that is left after that is planned again, from the new results. A test that would
    not fit into the time left is not begun. At the end night.html says what is still open.

    A night interrupted by Ctrl-C, SIGTERM, a kill or a reboot can be resumed: --resume uses the time left. The night's
    results are ordinary runs, one folder each: ./csit import them for the next night.

    Exit status: 0 all planned tests were measured; 1 tests failed; 2 invalid input; 3 interrupted, resume it; 4 for
    lack of time not all planned tests were begun.

    \b
    What a night would do:
      ./csit night topologies/local.yaml --hours 8 --data history --dry-run
    A quick one on the simulated testbed:
      ./csit night topologies/sim.yaml --hours 0.01 --search quick
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if resume is not None:
        if typed(context) != ["resume"]:
            raise ConfigError("--resume uses the choices of the interrupted night; remove all other options")
        _measure(resume, load_json(resume / CHOICES_FILE, NightChoices))
        return
    if topology is None:
        raise ConfigError("TOPOLOGY is missing, such as topologies/local.yaml")
    refuse_missing(data, "mkdir")
    if not 0 < hours <= MAX_HOURS:
        raise ConfigError(f"--hours {hours:g}: expected more than 0 and at most {MAX_HOURS:g}")
    words = {"CELLS": cells, "NF_SIZES": nf_sizes, "NF_KINDS": nf_kinds, "VSWITCH": vswitch, "FRAMES": frames}
    words |= {"SEARCH": search} | variables_of(variable or [])
    NOISE_FLOOR.of(words.get)  # refused here, not by the first run
    choices = NightChoices(
        topology=str(topology.absolute()),
        simulated=load_topology(topology).world is World.SIM,
        hours=hours,
        types=types,
        tests=tests,
        variables=words,
        studies=studies,
        data=tuple(str(path.absolute()) for path in data or (RESULTS,)),
        within=_settled_within(within),
        unseen_days=unseen_days,
        began=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    named = any(not path.is_dir() or any(path.iterdir()) for path in data or ())
    plan = _plan(choices, _stored(choices, needed=named), hours * 3600)
    _announce(plan, simulated=choices.simulated, form=form)
    if dry_run:
        return
    folder = output or RESULTS / f"night-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    if (folder / CHOICES_FILE).exists():
        again = command_text("--resume", folder)
        raise ConfigError(f"{folder}: has a night already; choose another folder, or ", again)
    check_folder(folder, _SPACE_BYTES)
    write_whole(folder / CHOICES_FILE, choices.model_dump_json(indent=1) + "\n")
    _measure(folder, choices, plan)


def _settled_within(text: str) -> float:
    try:
        return share_of(text)
    except ValueError as error:
        raise ConfigError(f"--within '{text}': {error}") from error


def _stored(choices: NightChoices, folder: Path | None = None, *, needed: bool = False) -> Contents:
    """Return stored results, with those of the night in a folder; a remark where there are none that can be read.

    Raises:
        ConfigError: They are needed, and none can be read.
    """
    paths = list(map(Path, choices.data))
    there = [path for path in paths if path.exists()]
    if folder is not None and not any(path in folder.absolute().parents for path in paths):
        there += _outputs(folder)
    reason = ""
    try:
        found = opened(there).contents(may_be_empty=True)
    except ConfigError as error:
        if needed:
            raise
        found, reason = opened([]).contents(may_be_empty=True), f" ({error})"
    if not found.tests and not found.characterizations:
        if needed and found.problems:
            raise ConfigError(f"--data: nothing to plan from: {found.problems[0].text}")
        typer.echo(f"no stored results in {quoted(', '.join(choices.data))}{reason}: every test is unseen", err=True)
    print_problems([problem.text for problem in found.problems])
    return found


def _outputs(folder: Path) -> list[Path]:
    return sorted(found for run in folder.glob("*/") if (found := output_of(run)).exists())


def _plan(choices: NightChoices, stored: Contents, budget_s: float, clock: NightClock | None = None) -> NightPlan:
    """Plan a night, or the rest of it after the tests of its clock."""
    testbed = load_topology(Path(choices.topology))
    variables = {"TOPOLOGY": choices.topology, **choices.variables}
    types = parse_selection(service_types=choices.types).service_types
    offered = list(matrix_tests(variables, types, test_types_of(choices.tests)))
    if choices.studies:
        offered += study_tests(choices.studies, testbed, choices.variables.get("MORE", ""))
    rows = stored_rows(stored, testbed)
    known, measured_s = known_tests(rows, acknowledged_in(map(Path, choices.data))), durations(rows)
    tests = [
        as_known(
            test, measured_s.get(test.key), clock.statuses(test.name) if clock else (), has_figure=test.key in known
        )
        for test in offered
    ]
    rules = NightRules(choices.within, choices.unseen_days, OPENING_S[testbed.world])
    return plan_night(tests, known, budget_s, datetime.now(UTC), rules)


def _announce(plan: NightPlan, *, simulated: bool, form: TableForm = TableForm.TABLE) -> None:
    print_sentence(f"{'simulated: ' if simulated else ''}{summary(plan)}.", err=form is TableForm.JSON)
    lines = []
    for line in plan.lines:
        raw: dict[str, object] = {
            "object": "measurement",
            "test": line.test.title,
            "reason": line.reason.value,
            "repeat": line.repeat,
        }
        raw |= {"score": line.score, "seconds": line.seconds, "why": reason_of(line)}
        lines.append(TableLine((line.test.title, seconds(line.seconds), reason_of(line)), raw))
    print_table(("test", "takes", "why"), lines, form, ("test", "why"))
    omitted = []
    for left in plan.left_out:
        raw = {"object": "left out", "test": left.test.title, "reason": left.why.value, "planned": left.planned}
        raw |= {"wanted": left.wanted, "why": why_left_out(left)}
        omitted.append(TableLine((left.test.title, why_left_out(left)), raw))
    if omitted:
        print_table(("left out", "why"), omitted, form, ("left out", "why"))


def _measure(folder: Path, choices: NightChoices, plan: NightPlan | None = None) -> None:
    """Run a plan, or what is left of a night; write its pages and exit with its status."""
    opening_s = OPENING_S[load_topology(Path(choices.topology)).world]
    # A later plan of the same night, from its own results, continues the journal.
    with NightJournal(folder / NightJournal.FILE, digest_of(choices.model_dump_json())) as journal:
        for line in journal.remarks:
            typer.echo(line, err=True)
        clock = NightClock(choices.hours * 3600, journal)
        if plan is not None:
            clock.plan(plan, reason_of)
        while (stopped := run_night(choices, opening_s, folder, clock)) is None:
            plan = _plan(choices, _stored(choices, folder), clock.left_s, clock)
            if not plan.lines:
                break
            typer.echo(f"{seconds(clock.left_s)} are left, and planned again from the new results")
            _announce(plan, simulated=choices.simulated)
            clock.plan(plan, reason_of)
    site = folder / "density.html"
    site.unlink(missing_ok=True)  # of the part before a resumption
    if outputs := _outputs(folder):
        with suppress(ConfigError):  # no test was measured
            report(outputs, output=site)
    counts = Counter(NOT_BEGUN if row.status == PLANNED else row.status for row in clock.rows.values())
    listed = ", ".join(f"{count} {status.lower()}" for status, count in counts.items()) or "nothing to measure"
    ending = f"{len(clock.rows)} planned measurements: {listed}; {seconds(max(clock.left_s, 0.0))} are left"
    ending = f"{'simulated: ' if choices.simulated else ''}{ending}"
    resume = ""
    if stopped is not None:
        resume = command_text("./csit", "night", "--resume", folder)
        ending = f"interrupted: {stopped}; {ending}"
    still_open, left_out = _open_and_settled(_plan(choices, _stored(choices, folder), inf, clock))
    continued = f"; continue with {resume}" if resume else ""
    page = render_night(
        choices, clock.rows.values(), f"{ending}{continued}", still_open, left_out, has_report=site.exists()
    )
    write_whole(folder / _PAGE, page)
    for test, why in still_open:
        print_sentence(f"open\t{test}\t{why}")
    print_sentence(f"{ending}.")
    if resume:
        print_sentence("continue with", resume)
    typer.echo(f"page: {folder / _PAGE}")
    if status := _INTERRUPTED if resume else _FAILED if counts["FAIL"] else _LACKED_TIME if counts[NOT_BEGUN] else 0:
        raise typer.Exit(status)


def _open_and_settled(plan: NightPlan) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return what another night would measure, and what none would, with reasons, of a plan without a time limit."""
    first = {line.test.key: line for line in reversed(plan.lines)}
    still_open = [(line.test.title, reason_of(line)) for line in first.values()]
    left_out: list[tuple[str, str]] = []
    for left in plan.left_out:
        is_open = left.test.tried and left.why is Omission.UNFIT
        (still_open if is_open else left_out).append((left.test.title, why_left_out(left)))
    return still_open, left_out
