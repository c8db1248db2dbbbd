"""Keywords of the interference suite: co-located network functions."""

from collections.abc import Iterable, Mapping

from pydantic import ValidationError
from robot.api import logger
from robot.api.deco import library

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import error_text
from resources.libraries.python.model.bounds import ASKED
from resources.libraries.python.model.request.frames import frame as frame_of
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import specification_file
from resources.libraries.python.studies.interference.analysis.sentences import advice_in_words, matrix_in_words
from resources.libraries.python.studies.interference.analysis.tables import interference_tables
from resources.libraries.python.studies.interference.model.record import (
    Interference,
    InterferenceRecord,
    InterferenceSpec,
    load_interference,
)
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.choices import Lookup, refuse_wrong_field
from resources.libraries.python.studies.shared.library import StepStudyLibrary
from resources.libraries.python.studies.shared.robot_context import skipping, variable

_FIELDS = {
    "FRAME": "frame",
    "INTERFERENCE_LOAD": "load_pps",
    "GUARANTEE": "guarantee",
    "REPETITIONS": "repetitions",
    "TRIAL_DURATION": "duration_s",
    "VERIFY": "verify",
}
"""Fields of the specification that variables replace."""
_LISTS = ("FRAME", "INTERFERENCE_LOAD")
"""Variables that may have several values, joined by commas."""
DEFAULTS: Mapping[str, str] = dict.fromkeys(_FIELDS, "")
"""Used where a variable is not given: what the specification says."""


@library(scope="GLOBAL", doc_format="ROBOT")
class InterferenceLibrary(StepStudyLibrary[InterferenceTest]):
    """Measures network functions alone and co-located, and advises on their placement.

    The network functions are described by a YAML file.
    """

    FIRST_KEYWORD = "Describe Interference"
    VARIABLES = tuple(DEFAULTS)
    TABLES = interference_tables

    @keyword
    def describe_interference(self, specification: str, frame: str = "", load: str = "", guarantee: str = "") -> None:
        """Load the network functions and check that all of them fit together. Nothing is deployed yet.

        The path is relative to the present folder, or to ``tests/characterization/specs``. ``frame``, ``load`` (packets
        per second offered to each, one way; ``auto`` for more than the fastest carries) and ``guarantee`` (``yes``
        measures all co-located sets once more with an equal share of the network guaranteed to each) replace values of
        the file; ``network,cpu`` does so with each of these resources. So do the variables ``FRAME``,
        ``INTERFERENCE_LOAD``, ``GUARANTEE``, ``REPETITIONS``, ``TRIAL_DURATION`` and ``VERIFY``. Several frame sizes or
        loads, joined by commas, are a sweep.

        | Describe Interference | interference/pairs.yaml |
        | Describe Interference | interference/pairs.yaml | frame=512B | load=50000 |
        """
        topology, world, environment = self._testbed.opened()
        spec = asked_study(variable, specification, frame, load, guarantee)
        changed = {name: text for name in DEFAULTS if (text := _value(variable, name))}
        self._describe(InterferenceTest(topology, world, spec, environment, self._progress.step), changed)

    @keyword
    def measure_interference(self) -> None:
        """Deploy and load each network function alone, and co-located with every other, in all repetitions.

        The order is shuffled in each repetition, so that drift affects all alike. A measurement that breaks the system
        under test is tried once more. Where the variable ``RESUME`` names the folder of a run that was cut short,
        measurements in its journal are not made again, and the others are made at the same load. The test fails
        at the end where less was measured than ``least_measured`` of the specification, by default all.

        | Describe Interference | interference/pairs.yaml |
        | Measure Interference |
        """
        self._measure()

    @keyword
    def advise_placement(self, *servers: str) -> None:
        """Advise where to place network functions, by the measurements.

        Each of ``servers`` names those that a server has already, joined by plus signs; nothing for an empty one. The
        network function that no server has is placed. Without servers all are placed on two. Where the specification
        says ``verify: 3``, the best three placements by prediction are measured as they are before: those on two
        servers at the end of `Measure Interference`, those on other servers here.

        | Advise Placement |
        | Advise Placement | gateway+monitor | firewall |
        """
        study = self._running
        here = [[name for name in server.split("+") if name] for server in servers]
        with self._keeper.ending():
            skipping(lambda: study.advise(here))
        for line in advice_in_words(study.result()):
            logger.info(line)

    @keyword
    def close_interference(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Interference | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _chosen(self) -> Topology:
        for name, field in _FIELDS.items():
            text = _value(self._choices, name)
            for each in _several(name, text) if name in _LISTS and text else filter(None, [text]):
                refuse_wrong_field(InterferenceSpec, field, name, each)
        return super()._chosen()

    def _lines(self, found: Interference) -> Iterable[str]:
        return matrix_in_words(found)

    def _result_lines(self, record: InterferenceRecord) -> list[str]:
        found = record.interference
        if found is None or not record.passed:
            return []
        note = " (simulated)" if record.simulated else ""
        summary = f"{found.spec.name}: {len(found.measurements)} measurements{note}"
        return [summary, *matrix_in_words(found), *advice_in_words(found)]


def asked_study(lookup: Lookup, specification: str, frame: str, load: str, guarantee: str) -> InterferenceSpec:
    """A study as its file says, changed by what a test and the variables say; variables count more.

    Args:
        lookup: The variables.
        specification: The file.
        frame: Of the test, several joined by commas; empty for as the file says, and so are the others.
        load: Packets per second, or `auto`; several joined by commas.
        guarantee: `yes` or `no`.

    Raises:
        ConfigError: The file or a choice makes no sense.
    """
    spec = load_interference(specification_file(specification))
    asked = {"FRAME": frame, "INTERFERENCE_LOAD": load, "GUARANTEE": guarantee}
    chosen = {field: _value(lookup, name) or asked.get(name, "") for name, field in _FIELDS.items()}
    changes: dict[str, object] = {name: text for name, text in chosen.items() if text}
    if chosen["frame"]:
        found = [frame_of(name) for name in _several("FRAME", chosen["frame"])]
        changes |= {"frame": found if len(found) > 1 else found[0], "frames": ()}
    if chosen["load_pps"]:
        loads = _several("INTERFERENCE_LOAD", chosen["load_pps"])
        changes |= {"load_pps": loads if len(loads) > 1 else loads[0], "loads_pps": ()}
    try:
        return InterferenceSpec.model_validate({**dict(spec), **changes}, context=ASKED)
    except ValidationError as error:
        raise ConfigError(f"{specification}: {error_text(error)}") from error


def _several(name: str, text: str) -> list[str]:
    found = [each.strip() for each in text.split(",") if each.strip()]
    if not found:
        raise ConfigError(f"{name}: '{text}' has no value")
    return found


def _value(lookup: Lookup, name: str) -> str:
    return str(lookup(name) or DEFAULTS[name])
