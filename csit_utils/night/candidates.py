"""Tests that a night can choose from, with their expected durations, and stored results of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from robot.api import TestSuite
from robot.errors import DataError
from robot.model import TagPatterns

from csit_utils.analysis.night import NightKey, NightTest
from csit_utils.dataset.contents import Contents
from csit_utils.dataset.rows import OWN, TestRow
from csit_utils.studies.density.preview.duration import SIMULATED_TEST_S
from csit_utils.studies.registry import cost_of, kind_of, studies_by_name
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.planning.extras import chosen_extras, test_s
from resources.libraries.python.studies.density.suite_rows import rows_for

DENSITY = PROJECT / "tests" / "density"
CHARACTERIZATION = PROJECT / "tests" / "characterization"
OPENING_S = {World.LOCAL: 2.0, World.SIM: 0.3, World.LAB: 10.0}
"""Opening the testbed of a run, and removing leftovers; 2.0 s measured locally, assumed in a lab."""
_UNLESS_ASKED = "${UNLESS ASKED}"
"""In a tag of tests that run only where `MORE` is set."""


def matrix_tests(
    variables: Mapping[str, str], types: Sequence[ServiceType], test_types: Sequence[TestType]
) -> Iterator[NightTest]:
    """Yield the tests of a density matrix, of which each service and test type is a suite, in the order of suites.

    Raises:
        CsitError: A choice is wrong.
    """
    topology, search = load_topology(Path(variables["TOPOLOGY"])), profile(variables["SEARCH"])
    extras = chosen_extras(variables.get)
    for service_type, test_type in ((service, test) for service in types for test in test_types):
        made = rows_for({**variables, "SERVICE_TYPE": service_type.value, "TEST_TYPE": test_type.value}.get)
        suite = f"{service_type.lower()}-{test_type.lower()}"
        for row in made.rows if made else ():
            cost_s = test_s(topology, row.cell, search, test_type, extras)
            yield NightTest(
                NightKey(suite, row.name, search.name),
                f"{row.cell.name} {row.frame.name} {test_type}",
                f"Density.{suite.title()}.{row.name}",
                SIMULATED_TEST_S if topology.world is World.SIM else cost_s,
            )
        for refused in dict.fromkeys(each.refused for each in made.refused) if made else ():
            title = f"{refused.cell.name} {test_type}"
            yield NightTest(NightKey(suite, title), title, "", None, refused.reason)


def study_tests(pattern: str, topology: Topology, more: str = "") -> Iterator[NightTest]:
    """Yield the tests of other studies with the tags of a Robot pattern, such as `OUTAGE OR STATEFUL`.

    Without the variable `MORE`, tests that need it are left out.

    Raises:
        ConfigError: No test has such tags.
    """
    try:
        suites = TestSuite.from_file_system(str(CHARACTERIZATION))
    except DataError as error:
        raise ConfigError(str(error)) from error
    tags = TagPatterns([pattern])
    found = [test for test in suites.all_tests if tags.match(test.tags)]
    if not found:
        raise ConfigError(f"--studies '{pattern}': no test of {CHARACTERIZATION} has these tags")
    for test in found:
        if not more and any(_UNLESS_ASKED in tag for tag in test.tags):
            continue
        study = Path(test.source).stem
        made = NightTest(NightKey(study, test.name), f"{study}: {test.name}", test.full_name, None, study=True)
        try:
            cost = cost_of(study, test.body[0].args, topology.world)
        except CsitError as error:
            yield replace(made, why_not=str(error))
            continue
        if cost is not None:
            simulated = topology.world is World.SIM
            made = replace(made, seconds=SIMULATED_TEST_S * cost.steps if simulated else cost.seconds)
        yield made


def stored_rows(found: Contents, topology: Topology) -> list[tuple[NightKey, TestRow]]:
    """Return stored tests of a testbed with their identities."""
    of_kind = {kind.kind: name for name, study in studies_by_name().items() for kind in study.kinds}
    pairs = [
        (NightKey(f"{row.service_type}-{row.test_type}".lower(), row.test_name, row.profile or ""), row)
        for row in found.tests
    ]
    pairs += [
        (NightKey(of_kind[item.record.kind], row.test_name), row)
        for item in found.characterizations
        if item.record.kind in of_kind
        for row in kind_of(item).rows_of(item)
    ]
    here = (topology.metadata.name, topology.world.value, OWN)
    return [(key, row) for key, row in pairs if (row.testbed, row.world, row.origin) == here and row.recorded]


def as_known(test: NightTest, measured_s: float | None, statuses: Collection[str], *, has_figure: bool) -> NightTest:
    """Return a test with the duration of its stored results, and with what has become of it in the night so far.

    A test that failed, or gave no figure, is not measured again in the same night.
    """
    why_not = test.why_not
    if "FAIL" in statuses:
        why_not = "failed in this night"
    elif statuses and not has_figure:
        why_not = "gave no figure in this night"
    return replace(test, seconds=measured_s or test.seconds, tried=bool(statuses), why_not=why_not)
