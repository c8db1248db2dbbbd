"""`night`: which tests to run in a given time, those first whose stored results are least certain."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from robot.api import TestSuite
from robot.errors import DataError
from robot.model import TagPatterns

from csit_utils.analysis.night import NightKey, NightPlan, NightReason, NightTest, TestDecision, known_tests, plan_night
from csit_utils.bisection.spec import share_of
from csit_utils.commands.results.selections import COMPARED, DatasetReader
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.flatten import unmeasured_row
from csit_utils.dataset.ledger import NONE, Acknowledged
from csit_utils.dataset.rows import OWN, TestRow
from csit_utils.report.units import DASH, percent, seconds
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
from csit_utils.studies.density.plan_table import SIMULATED_TEST_S
from csit_utils.studies.registry import cost_of
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.variables import DENSITY, NOISE_FLOOR, VARIABLES
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.quantities import counted
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.planning.extras import chosen_extras, test_s
from resources.libraries.python.studies.density.planning.selection import DRAFT_GRID, parse_selection
from resources.libraries.python.studies.density.suite_rows import rows_for
from resources.libraries.python.whole_files import write_whole

OPENING_S = {World.LOCAL: 2.0, World.SIM: 0.3, World.LAB: 10.0}
"""Opening the testbed of a run, and removing leftovers; 2.0 s measured locally, assumed in a lab."""
_SUITES = {False: PROJECT / "tests" / "density", True: PROJECT / "tests" / "characterization"}
"""Suites of the density matrix, and of other studies."""
_OF_STUDIES = [each.name for each in VARIABLES.values() if each.studies != (DENSITY,)]
"""Variables that studies other than density read; they refuse choices of cells."""
_UNLESS_ASKED = "${UNLESS ASKED}"
"""In a tag of tests that run only where the variable `MORE` is set: they are no tests of a night."""


def night(
    topology: Annotated[Path, typer.Argument(help="Topology file.")],
    hours: Annotated[
        float, typer.Option(min=0, max=168, metavar="HOURS", help="Time limit; 0.5 is half an hour.")
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
        typer.Option(min=0, metavar="DAYS", help="Measure what has not passed for so many days; 0: everything once."),
    ] = 7.0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Also write the runs, each a file for ./csit robot -A."),
    ] = None,
    form: FORMAT = TableForm.TABLE,
) -> None:
    """Plan which tests to run within a time limit.

    Chooses from a density matrix, and from the tests of other studies (--studies), in this order: first tests with a
    suspected step, as often as a confirmed one needs; then tests that never passed, or not for --unseen-days, the
    longest unseen first; then repeats of tests whose level is known less closely than --within, those first that narrow
    the interval most per hour. Prints for each test how many of the measurements that it needs are planned, how long
    each takes, and why. Measures nothing: --output writes the runs in which no test occurs twice, the most pressing
    first, for ./csit robot.

    \b
    Examples:
    ./csit night topologies/local.yaml --hours 8 --data history
    ./csit night topologies/sim.yaml --search quick -o results/tonight
    for run in results/tonight/*.args; do ./csit robot -A "$run"; done
    """  # noqa: D301 - \b keeps the lines of the examples apart
    try:
        narrow = share_of(within)
    except ValueError as error:
        raise ConfigError(f"--within '{within}': {error}") from error
    variables = {"CELLS": cells, "NF_SIZES": nf_sizes, "NF_KINDS": nf_kinds, "VSWITCH": vswitch, "FRAMES": frames}
    variables |= {"SEARCH": search, **variables_of(variable or []), "TOPOLOGY": str(topology.absolute())}
    NOISE_FLOOR.of(variables.get)  # refused here, not by the first run
    testbed = load_topology(topology)
    offered = list(_matrix_tests(testbed, variables, types, test_types_of(tests)))
    if studies:
        offered += _study_tests(studies, testbed)
    rows, acknowledged = _stored(data, testbed)
    plan = plan_night(
        offered,
        known_tests(rows, acknowledged),
        hours * 3600,
        datetime.now(UTC),
        within=narrow,
        unseen_days=unseen_days,
        opening_s=OPENING_S[testbed.world],
    )
    if output is not None:
        _write_runs(plan, variables, output)
    _print(plan, hours, form, "simulated: " if testbed.world is World.SIM else "")


def _stored(data: list[Path] | None, testbed: Topology) -> tuple[Sequence[TestRow], Acknowledged]:
    """Return the tests of a testbed, and steps whose cause is known; none where the folders are empty.

    Raises:
        ConfigError: Data that are named do not exist, or are not empty and nothing of them can be read.
    """
    with DatasetReader(data, COMPARED) as reader:
        try:
            rows = reader.whole()
        except ConfigError as error:
            if any(path.is_file() or any(path.iterdir()) for path in data or ()):
                raise
            print_sentence(f"{error}: every test is unseen", err=True)
            return (), NONE
        figured = {row.anchor for row in rows}
        rows += [unmeasured_row(each) for each in reader.records() if each.anchor not in figured]
        reader.report_problems()
        here = (testbed.metadata.name, testbed.world.value, OWN)
        rows = [row for row in rows if (row.testbed, row.world, row.origin) == here and row.recorded]
        return rows, reader.acknowledged()


def _matrix_tests(
    testbed: Topology, variables: Mapping[str, str], types: str, test_types: Sequence[TestType]
) -> Iterator[NightTest]:
    """Yield the tests of a density matrix, of which each service and test type is a suite, in the order of suites."""
    search, extras = profile(variables["SEARCH"]), chosen_extras(variables.get)
    for service, test_type in product(parse_selection(service_types=types).service_types, test_types):
        suite = f"{service}-{test_type}".title()
        made = rows_for({**variables, "SERVICE_TYPE": service.value, "TEST_TYPE": test_type.value}.get)
        for row in made.rows if made else ():
            title = f"{row.cell.name} {row.frame.name} {test_type}"
            cost_s = test_s(testbed, row.cell, search, test_type, extras)
            took_s = SIMULATED_TEST_S if testbed.world is World.SIM else cost_s
            yield NightTest(NightKey(suite, row.name, search.name), title, f"Density.{suite}.{row.name}", took_s)
        for refused in dict.fromkeys(each.refused for each in made.refused) if made else ():
            title = f"{refused.cell.name} {test_type}"
            yield NightTest(NightKey(suite, title, search.name), title, "", None, refused.reason)


def _study_tests(pattern: str, testbed: Topology) -> Iterator[NightTest]:
    """Yield the tests of other studies with the tags of a Robot pattern, such as `OUTAGE OR STATEFUL`.

    Raises:
        ConfigError: No test has such tags.
    """
    try:
        suites = TestSuite.from_file_system(str(_SUITES[True]))
    except DataError as error:
        raise ConfigError(str(error)) from error
    tags = TagPatterns([pattern])
    found = [test for test in suites.all_tests if tags.match(test.tags)]
    if not found:
        raise ConfigError(f"--studies '{pattern}': no test of {_SUITES[True]} has these tags")
    for test in found:
        if any(_UNLESS_ASKED in tag for tag in test.tags):
            continue
        study, cost_s, refusal = Path(test.source).stem, None, ""
        try:
            if (cost := cost_of(study, test.body[0].args, testbed.world)) is not None:
                cost_s = SIMULATED_TEST_S * cost.steps if testbed.world is World.SIM else cost.seconds
        except CsitError as error:
            refusal = str(error)
        key = NightKey(test.parent.name, test.name, "")
        yield NightTest(key, f"{study}: {test.name}", test.full_name, cost_s, refusal)


def _print(plan: NightPlan, hours: float, form: TableForm, prefix: str) -> None:
    planned = [line for own in plan.runs.values() for line in own]
    reasons = Counter(line.reason for line in planned)
    listed = ", ".join(f"{reasons[reason]} {reason}" for reason in NightReason if reasons[reason]) or "none"
    tests, runs = counted(len({line.test for line in planned}), "test"), counted(len(plan.runs), "run")
    took = f"about {seconds(plan.seconds)} of {seconds(hours * 3600)}"
    print_sentence(f"{prefix}{counted(len(planned), 'measurement')} of {tests} ({listed}) in {runs}: {took}", err=True)
    lines = []
    for each in plan.decisions:
        test, wanted = each.test, each.wanted
        count = f"{each.planned} of {len(wanted)}" if wanted else DASH
        reason = "unfit" if test.refusal else wanted[0].reason.value if wanted else "settled"
        raw = {"test": test.title, "reason": reason, "planned": each.planned, "wanted": len(wanted)}
        raw |= {"score": wanted[0].score if wanted else None, "seconds": test.seconds, "why": why(each)}
        lines.append(TableLine((test.title, count, seconds(test.seconds), why(each)), raw))
    print_table(("test", "planned", "takes", "why"), lines, form, ("test", "why"))


_FEW_DAYS = 2.0


def why(decision: TestDecision) -> str:
    """Why a test is measured, or is not."""
    test, known, wanted = decision.test, decision.evidence, decision.wanted
    width = known.half_width()
    level = f"{known.metric} ±{percent(width)}" if width is not None else ""
    if test.refusal:
        return f"does not fit: {test.refusal}"
    if not wanted:
        return f"settled: {level or 'measured enough'}"
    unknown = "; not planned, as its duration is not known" if test.seconds is None else ""
    match wanted[0].reason:
        case NightReason.SUSPECTED:
            change = percent(known.suspected, signed=True)
            return f"suspected: {known.suspect} {change}, a step lacks {counted(known.missing, 'figure')}{unknown}"
        case NightReason.UNSEEN if known.last_seen is None:
            return f"unseen: never passed{unknown}"
        case NightReason.UNSEEN:
            days = wanted[0].score
            return f"unseen: passed {f'{days * 24:.0f} hours' if days < _FEW_DAYS else f'{days:.0f} days'} ago{unknown}"
    after = known.half_width(decision.planned) if decision.planned else None
    then = f", about ±{percent(after)} then" if after is not None else ""
    return f"uncertain: {level or f'one figure gives no interval of {known.metric}'}{then}{unknown}"


def _write_runs(plan: NightPlan, variables: Mapping[str, str], folder: Path) -> None:
    """Write an argument file of Robot for each run; its results go to a folder of the same name beside it.

    Raises:
        ConfigError: There are runs already, or a value has several lines, each of which would be an option.
        CsitError: A file cannot be written.
    """
    if any(folder.glob("*.args")):
        raise ConfigError(f"{folder}: has the runs of a plan already; choose another folder")
    for number, ((_, is_study, _), lines) in enumerate(plan.runs.items(), 1):
        place = folder.absolute() / f"{number:02d}-{lines[0].reason}"
        read = {name: value for name, value in variables.items() if value and (not is_study or name in _OF_STUDIES)}
        words = [f"--outputdir {place}", *(f"--variable {name}:{value}" for name, value in read.items())]
        words += [*(f"--test {line.test.name}" for line in lines), str(_SUITES[is_study])]
        for word in words:
            if word.splitlines() != [word]:
                raise ConfigError(f"{quoted(word)}: expected one line")
        write_whole(place.with_name(f"{place.name}.args"), "\n".join(words) + "\n")
