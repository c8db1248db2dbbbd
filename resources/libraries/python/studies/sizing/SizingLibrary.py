"""Keywords of the sizing suites: which deployment size of a service carries a workload."""

from typing import Literal

from robot.api import SkipExecution, logger
from robot.api.deco import library

from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.paths import specification_file
from resources.libraries.python.studies.shared.boundary import keyword
from resources.libraries.python.studies.shared.library import StudyLibrary
from resources.libraries.python.studies.shared.progress import human_time
from resources.libraries.python.studies.sizing.model.record import SizingRecord
from resources.libraries.python.studies.sizing.planning.cost import SizingCost
from resources.libraries.python.studies.sizing.run import ServiceSizing
from resources.libraries.python.studies.sizing.search.size_search import carried
from resources.libraries.python.studies.sizing.size_trials import SizingJournal

OnlyIn = Literal["sim", "local", "real", "any"]


@library(scope="GLOBAL", doc_format="ROBOT")
class SizingLibrary(StudyLibrary[ServiceSizing]):
    """Measures services of several components in different deployment sizes.

    Service and workload are described by two JSON files and by scripts that these name.
    """

    FIRST_KEYWORD = "Describe Sizing"
    _journal: SizingJournal

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
        sizing = ServiceSizing(topology, world, environment, files, options)
        sizing.draft.rerun = self._rerun()
        name, cost = sizing.asked.deployment.vnf_name, sizing.cost()
        self._journal = self._begin(sizing, sizing.digest(), name, SizingJournal)
        words = cost_in_words(cost)
        logger.info(words)
        loads = cost.sizes * cost.loads
        self._progress.begin(
            name,
            [words + (" of simulated time" if simulated else "")],
            simulated=simulated,
            each_s=cost.seconds / loads,
            left=loads,
        )

    @keyword
    def search_size(self) -> None:
        """Deploy one size after the other and offer the workload to it, until the search has its answer.

        A size that breaks is tried once more. Where the variable ``RESUME`` names the folder of a run that was cut
        short, sizes in its journal are not measured again, and nothing is measured where this test had passed.

        | Describe Sizing | sip-service/deployment.json | sip-service/reg-dereg.json |
        | Search Size |
        """
        running, journal = self._running, self._journal
        folder = journal.path.parent

        cost = running.cost()

        def report(sentence: str) -> None:
            logger.info(sentence)
            self._progress.status(sentence)

        def reached(sizes: int, loads: int) -> None:
            self._progress.advance(max(0, (cost.sizes - sizes) * cost.loads - loads), loads > 0)

        self._run_steps(lambda: running.run(folder, journal, report, reached))
        logger.info(f"traces, tables and journal: {folder}")

    @keyword
    def close_sizing(self, status: str, message: str) -> None:
        """Write the record of the test, also where it has failed. Use it as test teardown.

        | Test Teardown | Close Sizing | ${TEST STATUS} | ${TEST MESSAGE} |
        """
        self._end(status, message)

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


def cost_in_words(cost: SizingCost) -> str:
    """Sizes, loads and time of a sizing."""
    most, loads = ("at most " if cost.sizes_at_most else ""), ("at most " if cost.loads_at_most else "")
    repeated = f", each {cost.repetitions} times" if cost.repetitions > 1 else ""
    time_text = f"{'at most' if cost.at_most else 'about'} {human_time(cost.seconds)}"
    return f"{most}{sizes_in_words(cost.sizes)}, {loads}{cost.loads} loads on each{repeated}: {time_text}"


def sizes_in_words(count: int) -> str:
    """Number of sizes."""
    return f"{count} size{'s' if count != 1 else ''}"
