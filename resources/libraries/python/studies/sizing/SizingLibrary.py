"""Keywords of the sizing suites: which deployment size of a service carries a workload."""

from typing import Literal

from robot.api import SkipExecution, logger
from robot.api.deco import library

from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import Sizing
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.paths import specification_file
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import StepStudyLibrary
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.sizing.model.record import SizingRecord
from resources.libraries.python.studies.sizing.run import ServiceSizing, sizes_in_words
from resources.libraries.python.studies.sizing.search.size_search import carried

OnlyIn = Literal["sim", "local", "real", "any"]


@library(scope="GLOBAL", doc_format="ROBOT")
class SizingLibrary(StepStudyLibrary[ServiceSizing]):
    """Measures services of several components in different deployment sizes.

    Service and workload are described by two JSON files and by scripts that these name.
    """

    FIRST_KEYWORD = "Describe Sizing"

    @keyword
    def describe_sizing(self, deployment: str, workload: str, only_in: OnlyIn = "any", **options: str) -> None:
        """Load both specifications and preview the cost of the sizing. Nothing is deployed yet.

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
                f"{deployment} needs world {only_in}; testbed {topology.metadata.name} has world {topology.world}"
            )
        files = (specification_file(deployment), specification_file(workload))
        spec = load_specifications(*files, options)
        sizing = ServiceSizing(topology, world, spec, environment, self._sized)
        sizing.report, sizing.on_load = self._say, self._loaded
        self._describe(sizing)

    @keyword
    def search_size(self) -> None:
        """Deploy one size after the other and offer the workload to it, until the search has its answer.

        A size that breaks is tried once more. Where the variable ``RESUME`` names the folder of a run that was cut
        short, sizes in its journal are not measured again, and nothing is measured where this test had passed.

        | Describe Sizing | sip-service/deployment.json | sip-service/reg-dereg.json |
        | Search Size |
        """
        self._measure()

    @keyword
    def close_sizing(self, status: str, message: str) -> None:
        """Write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Sizing | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

    def _lines(self, found: Sizing) -> list[str]:  # noqa: ARG002 - as for others
        return [f"traces, tables and journal: {self._running.folder}"]

    def _say(self, sentence: str) -> None:
        logger.info(sentence)
        self._progress.status(sentence)

    def _loaded(self, loads: int, sentence: str) -> None:
        self._advance(len(self._running.rows), loads)
        self._say(sentence)

    def _sized(self, ended: StepEnded) -> None:
        self._advance(ended.number, 0)
        before = "" if ended.work else " was measured before"
        self._say(f"{ended.name}{before}: {ended.found}")

    def _advance(self, sizes: int, loads: int) -> None:
        """Tell the progress how many sizes are done, and how many loads of the present one."""
        price = self._running.cost
        self._progress.advance(max(0.0, price.sizes - sizes - loads / price.loads), min(1, loads) / price.loads)

    def _result_lines(self, record: SizingRecord) -> list[str]:
        sizing = record.sizing
        if sizing is None or not record.passed:
            return []
        note = " (simulated)" if record.simulated else ""
        best = sizing.named().get(sizing.best or "")
        found = "no size carries the lowest load"
        if best is not None and best.capacity is not None:
            found = f"best {best.name}, {carried(best, sizing.workload.unit)}"
        sizes = sizes_in_words(len(sizing.sizes))
        return [f"{sizing.deployment.vnf_name}: {sizes}, {found}{note} [{sizing.stopped}]"]
