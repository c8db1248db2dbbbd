"""Keywords of the suite of chains: chains of network functions that behave unlike their parts."""

from robot.api import logger
from robot.api.deco import library

from resources.libraries.python.csv_tables import csv_files
from resources.libraries.python.model.topology import Topology, World
from resources.libraries.python.studies.chains.analysis.tables import chain_tables
from resources.libraries.python.studies.chains.journal import ChainJournal
from resources.libraries.python.studies.chains.model.load import load_chains
from resources.libraries.python.studies.chains.model.record import ChainsRecord
from resources.libraries.python.studies.chains.run import ChainEnded, ChainStudyTest
from resources.libraries.python.studies.chains.sentences import (
    found_in_words,
    lasting,
    preview_in_words,
    suspects_in_words,
)
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.choices import (
    chosen_topology,
    generator_chosen,
    rerun_of,
    specification_file,
)
from resources.libraries.python.studies.shared.library import StudyLibrary
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.shared.robot_context import variable

_CHOICES = ("GENERATOR", "CHAIN_DURATION")


@library(scope="GLOBAL", doc_format="ROBOT")
class ChainStudyLibrary(StudyLibrary[ChainStudyTest]):
    """Measures all chains that policies allow, and ranks those that stand out.

    Network functions, policies and workloads are described by a YAML file. The variable ``GENERATOR`` names another
    traffic generator than the testbed's file does.
    """

    FIRST_KEYWORD = "Describe Chain Study"

    @keyword
    def describe_chain_study(self, specification: str) -> None:
        """Load a specification and preview how many chains there are, and which policy forbids others.

        The path is relative to the present folder, or to ``tests/characterization/specs``. Nothing is deployed yet. The
        variable ``CHAIN_DURATION`` replaces the seconds of each workload in the file.

        | Describe Chain Study | chains/four-vnfs.yaml |
        """
        topology, world, environment = self._testbed.opened()
        spec = lasting(load_chains(specification_file(specification)), variable("CHAIN_DURATION"))
        study = ChainStudyTest(topology, world, spec, environment, self._chain)
        chosen = {name: str(variable(name)) for name in _CHOICES if variable(name)}
        study.draft.rerun = rerun_of(variable, chosen_topology(self._choices), chosen)
        study.resume(self._begin(study, study.digest(), spec.name, ChainJournal))
        simulated = topology.world is World.SIM
        lines = preview_in_words(study, simulated=simulated)
        for line in lines:
            logger.info(line)
        self._progress.begin(spec.name, lines, simulated=simulated, each_s=study.cost.step_s, left=study.chains.count)

    def _chain(self, ended: ChainEnded) -> None:
        found = ", ".join(dict.fromkeys(map(found_in_words, ended.runs)))
        failed = any(run.failed for run in ended.runs)
        name, left = f"chain {ended.runs[0].chain.name}", ended.of - ended.number
        self._progress.step(StepEnded(ended.number, ended.of, name, found, left, ended.measured, failed=failed))

    @keyword
    def measure_chains(self) -> None:
        """Deploy one chain after the other and offer it each workload, sampled each second; then compare them.

        A chain that breaks the system under test is tried once more. One that cannot be measured is in the record with
        the reason, and the study continues. The test fails at the end where less was measured than ``least_measured``
        of the specification, by default all. Where the variable ``RESUME`` names the folder of a run that was cut
        short, chains in its journal are not measured again.

        | Describe Chain Study | chains/four-vnfs.yaml |
        | Measure Chains |
        """
        self._remark(self._running.remark)
        study = self._run_steps(self._running.run)
        for line in suspects_in_words(study):
            logger.info(line)
        self._running.enough(study)

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

    def _tables(self, record: ChainsRecord) -> dict[str, str]:
        return csv_files(chain_tables(record))

    def _result_lines(self, record: ChainsRecord) -> list[str]:
        if record.chain_study is None:
            return []
        note = " (simulated)" if record.simulated else ""
        lines = suspects_in_words(record.chain_study)
        return [line + (note if line.startswith("suspect") else "") for line in lines]

    def _chosen(self) -> Topology:
        return generator_chosen(self._choices)
