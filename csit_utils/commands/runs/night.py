"""`night`: measure, within a time limit, the tests whose stored results are least certain."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.analysis.night import NightPlan, NightRules, Omission, durations, known_tests, plan_night
from csit_utils.bisection.spec import share_of
from csit_utils.commands.results.inputs import contents_of, print_problems
from csit_utils.commands.results.report import report
from csit_utils.commands.results.selections import RESULTS, refuse_missing
from csit_utils.commands.tables import AS_JSON, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.contents import Contents, InMemory
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.items import Dataset
from csit_utils.night.candidates import OPENING_S, matrix_tests, stored_rows, study_tests, tried_tonight, with_durations
from csit_utils.night.page import reason_of, render_night, summary, why_left_out
from csit_utils.night.runs import run_night
from csit_utils.night.state import (
    MOST_HOURS,
    NOT_BEGUN,
    PLAN_FILE,
    NightChoices,
    NightClock,
    NightJournal,
    NightState,
    runs_of,
)
from csit_utils.report.units import seconds
from csit_utils.studies.density.commands.plan import (
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
from resources.libraries.python.studies.density.model.selection import DRAFT_GRID, parse_selection
from resources.libraries.python.whole_files import write_whole

_SPACE_BYTES = 100_000_000
_FAILED, _INTERRUPTED, _LACKED_TIME = 1, 3, 4
_PAGE = "night.html"
_HEADS = ("test", "takes", "why")
_LEFT_OUT_HEADS = ("left out", "why")


def night(
    context: typer.Context,
    topology: Annotated[Path | None, typer.Argument(help="Topology file.")] = None,
    hours: Annotated[float, typer.Option(help=f"Time limit, up to {MOST_HOURS:g}; 0.5 is half an hour.")] = 8.0,
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
        str, typer.Option(help="Half-width of the 95 % interval of a level at which it is settled.")
    ] = "2%",
    unseen_days: Annotated[
        float, typer.Option(min=0, help="Measure what was not measured for so many days; 0: everything once.")
    ] = 7.0,
    output: Annotated[
        Path | None, typer.Option("-d", "--output", help="Folder of the results; default: results/night-<time>.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and measure nothing.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the plan as an HTML page.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Continue the interrupted night of this folder with the time it has left.")
    ] = None,
    as_json: AS_JSON = False,
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
        typed = [name for name in context.params if name != "resume" and _was_typed(context, name)]
        if typed:
            raise ConfigError("--resume uses the choices of the interrupted night; remove all other options")
        _measure(resume, load_json(resume / PLAN_FILE, NightState))
        return
    if topology is None:
        raise ConfigError("TOPOLOGY is missing, such as topologies/local.yaml")
    refuse_missing(data, "mkdir")
    if not 0 < hours <= MOST_HOURS:
        raise ConfigError(f"--hours {hours:g}: expected more than 0 and at most {MOST_HOURS:g}")
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
        within=_share(within),
        unseen_days=unseen_days,
        began=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    plan = _plan(choices, _stored(list(map(Path, choices.data))), choices.budget_s)
    state = _state(choices, plan)
    _announce(plan, simulated=choices.simulated, as_json=as_json)
    if html is not None:
        write_whole(html, render_night(state))
        typer.echo(f"page: {html}", err=True)
    if dry_run:
        return
    folder = output or RESULTS / f"night-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    if (folder / PLAN_FILE).exists():
        again = command_text("--resume", folder)
        raise ConfigError(f"{folder}: has a night already; choose another folder, or ", again)
    check_folder(folder, _SPACE_BYTES)
    write_whole(folder / PLAN_FILE, state.model_dump_json(indent=1) + "\n")
    _measure(folder, state)


def _was_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _share(text: str) -> float:
    try:
        return share_of(text)
    except ValueError as error:
        raise ConfigError(f"--within '{text}': {error}") from error


def _opening_s(choices: NightChoices) -> float:
    return OPENING_S[load_topology(Path(choices.topology)).world]


def _stored(paths: Sequence[Path]) -> Contents:
    """Return stored results; an empty dataset, with a remark, where there are none yet or none that can be read."""
    there = [path for path in paths if path.exists()]
    found: Contents = InMemory(Dataset())
    reason = ""
    try:
        found = contents_of(there, characterizations=True) if there else found
    except ConfigError as error:
        reason = f" ({error})"
    if not found.tests and not found.characterizations:
        typer.echo(f"no stored results in {quoted(', '.join(map(str, paths)))}{reason}: every test is unseen", err=True)
    print_problems([problem.text for problem in found.problems])
    return found


def _plan(
    choices: NightChoices, stored: Contents, budget_s: float, statuses: Mapping[str, Collection[str]] | None = None
) -> NightPlan:
    testbed = load_topology(Path(choices.topology))
    variables = {"TOPOLOGY": choices.topology, **choices.variables}
    types = parse_selection(service_types=choices.types).service_types
    rows = stored_rows(stored, testbed)
    offered = list(matrix_tests(variables, types, test_types_of(choices.tests)))
    if choices.studies:
        offered += study_tests(choices.studies, testbed, choices.variables.get("MORE", ""))
    rules = NightRules(choices.within, choices.unseen_days, _opening_s(choices))
    known = known_tests(rows)
    offered = tried_tonight(with_durations(offered, durations(rows)), known, statuses or {})
    return plan_night(offered, known, budget_s, datetime.now(UTC), rules)


def _announce(plan: NightPlan, *, simulated: bool, as_json: bool) -> None:
    form = TableForm.JSON if as_json else TableForm.TERMINAL
    lines = [
        TableLine(
            (line.test.title, seconds(line.seconds), reason_of(line)),
            {
                "object": "measurement",
                "test": line.test.title,
                "reason": line.reason.value,
                "repeat": line.repeat,
                "score": line.score,
                "seconds": line.seconds,
                "why": reason_of(line),
            },
        )
        for line in plan.lines
    ]
    print_table(_HEADS, lines, form, ("test", "why"))
    omitted = [
        TableLine(
            (left.test.title, why_left_out(left)),
            {
                "object": "left out",
                "test": left.test.title,
                "reason": left.why.value,
                "planned": left.planned,
                "wanted": left.wanted,
                "why": why_left_out(left),
            },
        )
        for left in plan.left_out
    ]
    if omitted:
        print_table(_LEFT_OUT_HEADS, omitted, form, _LEFT_OUT_HEADS)
    print_sentence(f"{'simulated: ' if simulated else ''}{summary(plan)}.", err=as_json)


def _state(choices: NightChoices, plan: NightPlan, earlier: NightState | None = None) -> NightState:
    """Return the state of a night with a plan, which follows runs of an earlier one."""
    before = () if earlier is None else earlier.runs
    return NightState(
        choices=choices,
        summary=summary(plan) if earlier is None else f"{earlier.summary}; then {summary(plan)}",
        opening_s=_opening_s(choices),
        runs=(*before, *runs_of(plan, reason_of, len(before))),
        left_out=tuple((left.test.title, why_left_out(left)) for left in plan.left_out),
    )


def _measure(folder: Path, state: NightState) -> None:
    """Run what is left of a night, write its pages and exit with its status."""
    # A later plan of the same night, from its own results, continues the journal.
    with NightJournal(folder / NightJournal.FILE, digest_of(state.choices.model_dump_json())) as journal:
        for line in journal.remarks:
            typer.echo(line, err=True)
        clock = NightClock(state.choices.budget_s, journal)
        while (stopped := run_night(state, folder, clock)) is None:
            plan = _plan(state.choices, _results(state, folder), clock.left_s, clock.statuses)
            if not plan.lines:
                break
            typer.echo(f"{seconds(clock.left_s)} are left, and planned again from the new results")
            state = _state(state.choices, plan, state)
            _announce(plan, simulated=state.choices.simulated, as_json=False)
            write_whole(folder / PLAN_FILE, state.model_dump_json(indent=1) + "\n")
    site = folder / "density.html"
    site.unlink(missing_ok=True)  # of the part before a resumption
    if outputs := _outputs(folder):
        with suppress(ConfigError):  # no test was measured
            report(outputs, output=site)
    planned = [(run.folder, test.name) for run in state.runs for test in run.tests]
    counts = Counter(row.status if (row := clock.status_of(*each)) else NOT_BEGUN for each in planned)
    listed = ", ".join(f"{count} {status.lower()}" for status, count in counts.items()) or "nothing to measure"
    simulated = "simulated: " if state.choices.simulated else ""
    ending = f"{simulated}{len(planned)} planned measurements: {listed}; {seconds(max(clock.left_s, 0.0))} are left"
    resume = ""
    if stopped is not None:
        resume = command_text("./csit", "night", "--resume", folder)
        ending = f"interrupted: {stopped}; {ending}"
    still_open = _still_open(state, folder, clock)
    continued = f"; continue with {resume}" if resume else ""
    write_whole(
        folder / _PAGE, render_night(state, clock, f"{ending}{continued}", still_open, has_report=site.exists())
    )
    for test, why in still_open:
        print_sentence(f"open\t{test}\t{why}")
    print_sentence(f"{ending}.")
    if resume:
        print_sentence("continue with", resume)
    typer.echo(f"page: {folder / _PAGE}")
    if stopped is not None:
        raise typer.Exit(_INTERRUPTED)
    if counts["FAIL"]:
        raise typer.Exit(_FAILED)
    if counts[NOT_BEGUN]:
        raise typer.Exit(_LACKED_TIME)


def _results(state: NightState, folder: Path) -> Contents:
    """Return stored results with those of the night."""
    stored = list(map(Path, state.choices.data))
    tonight = [] if any(path in folder.absolute().parents for path in stored) else _outputs(folder)
    return _stored([*stored, *tonight])


def _outputs(folder: Path) -> list[Path]:
    return sorted(found for run in folder.glob("*/") if (found := output_of(run)).exists())


def _still_open(state: NightState, folder: Path, clock: NightClock) -> list[tuple[str, str]]:
    """Return what another night would measure, and why."""
    found = _plan(state.choices, _results(state, folder), inf, clock.statuses)
    first = {line.test.key: line for line in reversed(found.lines)}
    rest = [
        (left.test.title, why_left_out(left))
        for left in found.left_out
        if left.test.tried and left.why is Omission.UNFIT
    ]
    return [(line.test.title, reason_of(line)) for line in first.values()] + rest
