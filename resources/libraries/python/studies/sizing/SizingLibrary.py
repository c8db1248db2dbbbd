"""Keywords of the sizing suites: which deployment size of a service carries a workload."""

from typing import Literal

from robot.api import SkipExecution, logger
from robot.api.deco import keyword, library

from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.topology import World
from resources.libraries.python.studies.density.keeper import EndOfRun
from resources.libraries.python.studies.shared.choices import rerun_of
from resources.libraries.python.studies.shared.library import CharacterizingLibrary
from resources.libraries.python.studies.shared.robot_context import skipping, variable
from resources.libraries.python.studies.shared.specifications import found
from resources.libraries.python.studies.sizing.journal import SizingJournal
from resources.libraries.python.studies.sizing.progress import SizingProgress, cost_in_words
from resources.libraries.python.studies.sizing.run import ServiceSizing

OnlyIn = Literal["sim", "local", "real", "any"]


@library(scope="GLOBAL", doc_format="ROBOT")
class SizingLibrary(CharacterizingLibrary):
    """Measures services of several components in different deployment sizes.

    Service and workload are described by two JSON files and by scripts that these name.
    """

    def __init__(self) -> None:
        super().__init__()
        self._progress = SizingProgress()
        self._sizing: ServiceSizing | None = None
        self._journal: SizingJournal

    @keyword
    def describe_sizing(self, deployment: str, workload: str, only_in: OnlyIn = "any", **options: str) -> None:
        """Load both specifications and tell what the sizing will cost. Nothing is deployed yet.

        Paths are relative to the present folder, or to ``tests/characterization/specs``. In another world than
        ``only_in`` the test is skipped: a service that is only simulated cannot be deployed, and the other way round.
        ``real`` is every world but ``sim``. Other named arguments choose values of the specifications' options.

        | Describe Sizing | sip-service/deployment.json | sip-service/reg-dereg.json |
        | Describe Sizing | ids/deployment.json | ids/udp-64b.json | real | engine=suricata-ips | malicious=25 |
        """
        topology, world, environment = self._testbed.opened()
        simulated = topology.world is World.SIM
        if only_in not in {"any", topology.world, "sim" if simulated else "real"}:
            raise SkipExecution(
                f"{deployment} is for the world {only_in}, {topology.metadata.name} is {topology.world}"
            )
        self._keeper.check()
        sizing = ServiceSizing(topology, world, environment, (found(deployment), found(workload)), options)
        self._journal = self._resumed(SizingJournal, sizing.digest(), sizing.asked.deployment.vnf_name)
        sizing.draft.rerun = rerun_of(variable, topology, {})
        cost = sizing.cost()
        logger.info(cost_in_words(cost))
        self._progress.begins(sizing.asked.deployment.vnf_name, cost, simulated=simulated)
        self._sizing = sizing

    @keyword
    def search_size(self) -> None:
        """Deploy one size after the other and offer the workload to it, until the search has its answer.

        Where the variable ``RESUME`` names the folder of a run that was cut short, sizes that its journal has are not
        measured again, and nothing is measured where this test had passed.

        | Describe Sizing | sip-service/deployment.json | sip-service/reg-dereg.json |
        | Search Size |
        """
        running, journal = self._running, self._journal
        folder = journal.path.parent

        def report(sentence: str) -> None:
            logger.info(sentence)
            self._progress.says(sentence)

        try:
            skipping(lambda: running.run(folder, journal, report, self._progress.reached))
        except RunStopped as error:
            raise EndOfRun(str(error)) from error
        logger.info(f"traces, tables and journal: {folder}")

    @keyword
    def close_sizing(self, status: str, message: str) -> None:
        """Write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Sizing | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        if self._sizing is None:
            return
        sizing, self._sizing = self._sizing, None
        # Every size has been removed before the next one: nothing is deployed any more.
        self._progress.done(self._keeper.end_test(sizing.draft, lambda: None, status, message))

    @property
    def _running(self) -> ServiceSizing:
        if self._sizing is None:
            raise CsitError("no test is described; Describe Sizing comes first")
        return self._sizing
