"""Puts the rows of the plan into the density suites in place of their placeholders.

It happens when a suite starts (`DensityLibrary` listens), so plain `robot tests/density` needs no option. But Robot
filters tests by tags and names before that. So a suite holds two placeholders: one that carries the tags of the matrix
and passes `--include 2R1CANDCSC`, one without tags that passes any `--exclude`; the patterns are applied again to the
rows. `./csit robot` makes the rows before Robot filters (`RowsBeforeFilter`), where every filter works, `--test`,
`--rerunfailed` and both kinds of tag patterns at once.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

from robot.api import SuiteVisitor
from robot.model import TagPatterns
from robot.running import TestSuite
from robot.utils import normalize

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.bounds import quoted, refuse_endless
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.request.variables import (
    CACHE_WAYS,
    CELLS,
    FLOWS,
    FRAMES,
    IP_VERSION,
    NF_KINDS,
    NF_SIZES,
    PRIORS,
    VSWITCH,
    Lookup,
)
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording.marker import NOTHING_FITS, NOTHING_SELECTED, PLACEHOLDER
from resources.libraries.python.recording.run_journal import digest_of, past_of
from resources.libraries.python.search.profiles import SOAK_GOAL
from resources.libraries.python.studies.density.planning.extras import chosen_extras, estimate_s, test_s
from resources.libraries.python.studies.density.planning.matrix import PlannedRows, RefusedRow, journal_name, make_rows
from resources.libraries.python.studies.density.planning.selection import (
    Selection,
    limits_of,
    parse_kinds,
    parse_selection,
)
from resources.libraries.python.studies.density.search_priors import PriorBook
from resources.libraries.python.studies.shared.choices import chosen_profile, chosen_topology, resumed, resumed_folder
from resources.libraries.python.studies.shared.choices_before_run import RunRefused, all_of, whole_of
from resources.libraries.python.testbed.kinds.factory import layout_of, located, memory_of, refuse_wrong_simulation


def chosen_priors(lookup: Lookup) -> PriorBook | None:
    """Earlier results below the folder `PRIORS`; None without that variable.

    Raises:
        ConfigError: There is no such folder.
    """
    folder = PRIORS.text(lookup)
    return PriorBook(Path(folder)) if folder else None


def suite_choice(lookup: Lookup) -> tuple[TestType, Selection] | None:
    """Test type and selection of the present suite; None for a suite without `SERVICE_TYPE` and `TEST_TYPE`.

    Raises:
        ConfigError: A choice is wrong.
    """
    service_type, test_type = lookup("SERVICE_TYPE"), lookup("TEST_TYPE")
    if not service_type or not test_type:
        return None
    selection = parse_selection(
        service_types=str(service_type),
        cells=CELLS.text(lookup),
        nf_sizes=NF_SIZES.text(lookup),
        vswitch=VSWITCH.text(lookup),
        frames=FRAMES.text(lookup),
        nf_kinds=NF_KINDS.text(lookup),
        flows=FLOWS.text(lookup),
        ip_versions=IP_VERSION.text(lookup) or "4",
        cache_ways=CACHE_WAYS.text(lookup),
    )
    if test_type not in set(TestType):
        raise ConfigError(f"TEST_TYPE '{quoted(str(test_type))}': expected {' or '.join(TestType)}")
    return TestType(str(test_type)), selection


_MADE: dict[str, PlannedRows] = {}
"""Rows of each suite of the run, by the digest of what they follow from: they are asked for before tests are filtered,
when choices are looked at, and when the suite starts."""


def has_placeholders(suite: TestSuite) -> bool:
    """Whether the rows of a suite are still to be made."""
    return bool(suite.tests) and all(test.name.startswith(PLACEHOLDER) for test in suite.tests)


def drop_placeholders(suite: TestSuite) -> None:
    """Drop the placeholders of all suites of the run, which would else be listed as failed tests.

    Robot imports no library for suites after the end of a run, so their rows are not made.
    """
    for each in all_of(whole_of(suite)):
        if has_placeholders(each):
            each.tests.clear()


def rows_for(lookup: Lookup) -> PlannedRows | None:
    """The rows of a suite that has the given variables; None when it is no suite of the matrix.

    Raises:
        CsitError: Testbed or selection are wrong, or the tests exceed a bound of `model.bounds`.
    """
    choice = suite_choice(lookup)
    if choice is None:
        return None
    test_type, selection = choice
    topology = located(chosen_topology(lookup))
    refuse_wrong_simulation(topology)
    search = chosen_profile(lookup)
    soak = any(goal.name == SOAK_GOAL for goal in search.goals)
    asked = digest_of(topology.model_dump_json(), selection.model_dump_json(), test_type, str(soak))
    if asked not in _MADE:
        layout, memory = layout_of(topology), memory_of(topology)
        _MADE[asked] = make_rows(topology, layout, selection, test_type, memory, soak=soak)
    made = _MADE[asked]
    extras = chosen_extras(lookup)
    least_s = estimate_s(search, test_type, trial_overhead_s=0, deploy_s=0, extras=extras)
    refuse_endless(f"SEARCH:{search.name}", len(made.rows), f"{test_type} tests", len(made.rows) * least_s)
    return made


def keys_of(suite: TestSuite, made: PlannedRows, test_type: str) -> list[str]:
    """Names in the journal of the tests of a suite whose rows have been made."""
    rows = {row.name: row for row in made.rows}
    chosen = [rows[test.name] for test in suite.tests if test.name in rows]
    return [journal_name(row.cell, row.frame.name, test_type) for row in chosen]


def durations_of(lookup: Lookup, made: PlannedRows, priors: PriorBook | None) -> dict[str, float]:
    """Return the expected seconds of the tests of a suite, by name.

    Tests with an earlier result take as long again; those that have ended before the run was resumed take no time.
    """
    topology, search = chosen_topology(lookup), chosen_profile(lookup)
    test_type, extras = TestType(str(lookup("TEST_TYPE"))), chosen_extras(lookup)
    folder = resumed_folder(lookup)
    done = {name for name, _ in past_of(folder).done} if folder is not None else set()
    earlier_s = {} if priors is None else priors.durations_s(topology.metadata.name)
    found = {}
    for row in made.rows:
        name = journal_name(row.cell, row.frame.name, test_type)
        known_s = 0.0 if name in done else earlier_s.get((name, search.name))
        found[row.name] = test_s(topology, row.cell, search, test_type, extras) if known_s is None else known_s
    return found


def cell_of(  # noqa: PLR0917 - as a row has them
    service_type: ServiceType,
    nf_chains: int,
    nf_nodes: int,
    nf_size: str,
    vswitch_cores: int,
    nf_kinds: str = "",
    cache_ways: int = 0,
) -> Cell:
    """The cell that a row says, sizes and kinds as it writes them: `1c+0.5c`, `linux_router+testpmd`."""
    return Cell(
        service_type=service_type,
        nf_chains=nf_chains,
        nf_nodes=nf_nodes,
        nf_sizes=tuple(NfSize(size) for size in nf_size.split("+")),
        vs_dtc=vswitch_cores,
        nf_kinds=parse_kinds(nf_kinds),
        limits=limits_of(cache_ways or None, nf_nodes),
    )


def put_rows(suite: TestSuite, made: PlannedRows, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
    """Replace the placeholders of a suite; a row keeps a placeholder's setup, teardown and template.

    Where all that is asked for cannot run, one test takes their place that fails and says why. So it is where this is
    the last suite of a run without any test, which Robot would call a success.
    """
    placeholder = suite.tests[0]
    wanted, unwanted = _Patterns(include), _Patterns(exclude)

    def chosen(tags: Sequence[str]) -> bool:
        return (not include or wanted.match(tags)) and not unwanted.match(tags)

    suite.tests.clear()
    placeholder.parent = None  # a deep copy of it would be one of all suites, with the rows that they have by then
    for row in made.rows:
        if chosen(row.tags):
            test = placeholder.deepcopy(name=row.name, tags=row.tags)
            test.body[0].args = row.arguments
            suite.tests.append(test)

    def failing(name: str, tags: Sequence[str], text: str) -> None:
        test = placeholder.deepcopy(name=name, tags=tags)
        test.body[0].config(name="Fail", args=[text])
        suite.tests.append(test)

    refused = [each for each in made.refused if chosen(each.tags)]
    if refused and not suite.tests:
        failing(NOTHING_FITS, refused[0].tags, _refusals(refused))
    elif not whole_of(suite).test_count:
        failing(NOTHING_SELECTED, (), _nothing(len(made.rows), include, exclude))


class _Patterns:
    """Robot's patterns of tags, those that are plain words joined by AND as sets.

    Job specifications have hundreds of these. Robot compares each word of each with each tag: minutes for 84 of them.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        plain = [pattern for pattern in patterns if re.fullmatch(r"[\w .+-]+", re.sub("OR|NOT", "*", pattern))]
        self._sets = [frozenset(map(_normalized, pattern.split("AND"))) for pattern in plain]
        self._others = TagPatterns([pattern for pattern in patterns if pattern not in plain])

    def match(self, tags: Sequence[str]) -> bool:
        """Whether any of them matches."""
        words = frozenset(map(_normalized, tags))
        return any(each <= words for each in self._sets) or bool(self._others.match(tags))


def _normalized(tag: str) -> str:
    return str(normalize(tag, ignore="_"))


def _nothing(rows: int, include: Sequence[str], exclude: Sequence[str]) -> str:
    options = [("--include", pattern) for pattern in include] + [("--exclude", pattern) for pattern in exclude]
    given = " ".join(f"{option} {pattern}" for option, pattern in options)
    if not given:
        return "the run selects no test: no cell fits the chosen CELLS, NF_SIZES and NF_KINDS"
    return f"the run selects no test: none of the {rows} rows of the last suite passes {given}, and none before it"


def _refusals(refused: Sequence[RefusedRow]) -> str:
    others = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    first = refused[0].refused
    return f"{first.cell.name}: {first.reason}{others}"


class RowsBeforeFilter(SuiteVisitor):  # type: ignore[misc]  # Robot is not typed for mypy
    """A pre-run modifier: makes the rows of every suite before Robot filters them.

    `variables`: of the command line, as `NAME:value`.
    `include`: patterns of tags of the command line; Robot applies them afterwards.
    """

    def __init__(self, variables: Sequence[str], include: Sequence[str] = ()) -> None:
        self._variables = dict(variable.split(":", 1) for variable in variables if ":" in variable)
        self._options = SimpleNamespace(include=include)
        self._priors: dict[object, PriorBook | None] = {}
        self.expected_s: dict[tuple[Path | None, str], float] = {}
        """Durations of the rows, by file of the suite and name of the test; none on a simulated testbed."""

    def start_suite(self, suite: TestSuite) -> None:
        """Make the rows of one suite.

        Raises:
            RunRefused: Testbed or selection are wrong.
        """
        if not has_placeholders(suite):
            return
        own = {variable.name.strip("${}"): " ".join(variable.value) for variable in suite.resource.variables}
        try:
            lookup = resumed({**own, **self._variables, "OPTIONS": self._options}.get)
            made = rows_for(lookup)
            if made is not None and chosen_topology(lookup).world is not World.SIM:
                if (folder := lookup("PRIORS")) not in self._priors:  # suites share them: each record is read once
                    self._priors[folder] = chosen_priors(lookup)
                found = durations_of(lookup, made, self._priors[folder])
                self.expected_s |= {(suite.source, name): each for name, each in found.items()}
        except CsitError as error:
            raise RunRefused(error) from error
        if made is not None:
            put_rows(suite, made, self._options.include)
