"""Keywords of the suite of chains: chains of network functions that behave unlike their parts."""

from collections.abc import Iterator

from robot.api.deco import library

from resources.libraries.python.model.request.variables import STACKS
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.chains.analysis.sentences import cause_in_words, verdict_in_words
from resources.libraries.python.studies.chains.analysis.tables import chain_tables
from resources.libraries.python.studies.chains.model.record import ChainsRecord, ChainStudy, Suspect
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, load_chains
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.choices import generator_chosen
from resources.libraries.python.studies.shared.library import StepStudyLibrary
from resources.libraries.python.studies.shared.robot_context import skipping

_MAX_SUSPECTS = 5
_MAX_REASONS = 4


@library(scope="GLOBAL", doc_format="ROBOT")
class ChainStudyLibrary(StepStudyLibrary[ChainStudyTest]):
    """Measures all chains that policies allow, and ranks those that stand out.

    Network functions, policies and workloads are described by a YAML file. The variable ``GENERATOR`` names another
    traffic generator than the testbed's file does.
    """

    FIRST_KEYWORD = "Describe Chain Study"
    LOAD = load_chains
    TABLES = chain_tables

    @keyword
    def describe_chain_study(self, specification: str) -> None:
        """Load a specification and preview how many chains there are, and which policy forbids others.

        The path is relative to the present folder, or to ``tests/characterization/specs``. Nothing is deployed yet. The
        variable ``SET`` replaces values of the file, such as ``duration_s=10``. With the variable ``STACKS`` the call
        stacks of suspects and their references are sampled in trials of so many seconds.

        | Describe Chain Study | chains/four-vnfs.yaml |
        """
        topology, world, environment = self._testbed.opened()
        spec: ChainStudySpec = self.specification(specification)
        study = ChainStudyTest(topology, world, spec, environment, self._progress.step)
        study.stacks_s = skipping(self._chosen_stacks_s)
        self._describe(study)

    @keyword
    def measure_chains(self) -> None:
        """Deploy one chain after the other and offer it each workload, sampled each second; then compare them.

        Chains that deviate from what their VNFs alone predict are measured again, with these VNFs, as often as
        ``repetitions`` of the specification says. A chain that breaks the system under test is tried once more. One
        that cannot be measured is in the record with the reason, and the study continues. Where call stacks are asked
        for, the first suspects and their references are deployed once more for them, after all chains. The test fails
        at the end where less was measured than ``least_measured`` of the specification, by default all. Where the
        variable ``RESUME`` names the folder of a run that was cut short, chains in its journal are not measured again.

        | Describe Chain Study | chains/four-vnfs.yaml |
        | Measure Chains |
        """
        self._measure()

    @keyword
    def planted_faults_should_come_first(self) -> None:
        """Fail unless the chains in which faults were planted are the first suspects, in whichever order.

        | Measure Chains |
        | Planted Faults Should Come First |
        """
        self._running.faults_first()

    @keyword
    def close_chain_study(self, status: str, message: str) -> None:
        """Remove what is deployed and write the record of the test and its CSV files, also where it has failed.

        Use it as test teardown.

        | Test Teardown | Close Chain Study | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _lines(self, found: ChainStudy) -> Iterator[str]:
        return suspects_in_words(found)

    def _result_lines(self, record: ChainsRecord) -> list[str]:
        if record.chain_study is None:
            return []
        note = " (simulated)" if record.simulated else ""
        lines = suspects_in_words(record.chain_study)
        return [line + (note if line.startswith("suspect") else "") for line in lines]

    def _chosen(self) -> Topology:
        STACKS.of(self._choices)
        return generator_chosen(self._choices)


def suspects_in_words(study: ChainStudy) -> Iterator[str]:
    """The first suspects with their reasons, and chains that could not be measured."""
    failed: dict[str, dict[str, None]] = {}
    for run in study.runs:
        if run.failed:
            failed.setdefault(run.failed, {})[run.chain.name] = None
    if not study.suspects:
        yield verdict_in_words(study)
    for cause in study.causes[:_MAX_SUSPECTS]:
        yield cause_in_words(cause)
    for rank, suspect in enumerate(study.suspects[:_MAX_SUSPECTS], 1):
        yield _suspect(rank, suspect)
        for reason in suspect.reasons[:_MAX_REASONS]:
            yield f"    {reason}"
        if (pair := study.stacks_of(suspect)) and suspect.reference is not None:
            yield f"    call stacks: {pair[1].sampled}"
            yield f"    of {suspect.reference.chain.name} ({suspect.reference.relation}): {pair[0].sampled}"
    if len(study.suspects) > _MAX_SUSPECTS:
        yield f"and {len(study.suspects) - _MAX_SUSPECTS} more suspects"
    for reason, names in failed.items():
        yield f"not measured: {'; '.join(names)}: {reason}"


def _suspect(rank: int, suspect: Suspect) -> str:
    fault = f"; a fault was planted: {suspect.planted}" if suspect.planted else ""
    by = " and ".join(suspect.rules)
    return f"suspect {rank} by {by}: {suspect.chain.name}, mean Cook's distance {suspect.mean_distance:.3g}{fault}"
