"""Keywords of the suite of chains: which chain of network functions does not do what its parts do alone."""

from robot.api import logger
from robot.api.deco import keyword, library

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.topology import Topology, World
from resources.libraries.python.studies.chains.journal import ChainJournal
from resources.libraries.python.studies.chains.model.load import load_chains
from resources.libraries.python.studies.chains.progress import (
    ChainProgress,
    lasting,
    preview_in_words,
    suspects_in_words,
)
from resources.libraries.python.studies.chains.run import StudyOfChains
from resources.libraries.python.studies.density.keeper import EndOfRun
from resources.libraries.python.studies.shared.choices import chosen_topology, rerun_of
from resources.libraries.python.studies.shared.library import CharacterizingLibrary
from resources.libraries.python.studies.shared.robot_context import skipping, variable
from resources.libraries.python.studies.shared.specifications import found
from resources.libraries.python.studies.sweep.choices import generator_chosen

_CHOICES = ("GENERATOR", "CHAIN_DURATION")


@library(scope="GLOBAL", doc_format="ROBOT")
class ChainStudyLibrary(CharacterizingLibrary):
    """Measures all chains that policies allow, and finds those that stand out.

    Network functions, policies and workloads are described by a YAML file. The variable ``GENERATOR`` names another
    traffic generator than the testbed's file does.
    """

    def __init__(self) -> None:
        super().__init__()
        self._progress = ChainProgress()
        self._study: StudyOfChains | None = None

    @keyword
    def describe_chain_study(self, specification: str) -> None:
        """Load what is asked, and tell how many chains that are, and which policy forbids others.

        The path is relative to the present folder, or to ``tests/characterization/specs``. Nothing is deployed yet. The
        variable ``CHAIN_DURATION`` says for how many seconds each workload is sampled, where that is not to be as the
        file says.

        | Describe Chain Study | chains/four-vnfs.yaml |
        """
        topology, world, environment = self._testbed.opened()
        self._keeper.check()
        spec = lasting(load_chains(found(specification)), variable("CHAIN_DURATION"))
        study = StudyOfChains(topology, world, spec, environment, self._progress.chain)
        chosen = {name: str(variable(name)) for name in _CHOICES if variable(name)}
        study.draft.rerun = rerun_of(variable, chosen_topology(variable), chosen)
        study.go_on(self._resumed(ChainJournal, study.digest(), spec.name))
        self._study = study
        lines = preview_in_words(study, simulated=topology.world is World.SIM)
        for line in lines:
            logger.info(line)
        self._progress.begins(spec.name, lines, simulated=topology.world is World.SIM)

    @keyword
    def measure_chains(self) -> None:
        """Deploy one chain after the other and offer it each workload, sampled each second; then compare them.

        A chain that cannot be measured is in the record with the reason, and the study goes on. The test fails at the
        end where less was measured than ``least_measured`` of the specification, by default all. Where the variable
        ``RESUME`` names the folder of a run that was cut short, chains that its journal has are not measured again.

        | Describe Chain Study | chains/four-vnfs.yaml |
        | Measure Chains |
        """
        if remark := self._running.remark:
            logger.info(remark)
            self._progress.says(remark)
        try:
            study = skipping(self._running.run)
        except RunStopped as error:
            raise EndOfRun(str(error)) from error
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
        if self._study is None:
            return
        study, self._study = self._study, None
        self._progress.done(self._keeper.end_test(study.draft, study.remove, status, message))

    def _chosen(self) -> Topology:
        return generator_chosen(self._choices)

    @property
    def _running(self) -> StudyOfChains:
        if self._study is None:
            raise CsitError("no test is described; Describe Chain Study comes first")
        return self._study
