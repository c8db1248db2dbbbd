"""A sizing from its two specifications to the record."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.recording.draft import Draft
from resources.libraries.python.studies.sizing.analysis import TraceFiles, sizing_rows
from resources.libraries.python.studies.sizing.model.load import Specifications, load_specifications
from resources.libraries.python.studies.sizing.model.record import SizingRecord
from resources.libraries.python.studies.sizing.model.spec import Size, Sizing
from resources.libraries.python.studies.sizing.planning.cost import SizingCost, cost
from resources.libraries.python.studies.sizing.planning.heat_templates import write_heat
from resources.libraries.python.studies.sizing.search.size_search import Reached
from resources.libraries.python.studies.sizing.size_trials import SizingJournal, digest, run_sizing
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.roles.service import Orchestrator, SizedService
from resources.libraries.python.whole_files import write_whole

OVERSUBSCRIBED = "oversubscribed"
"""The fact of a service that has more CPUs than there are."""


class ServiceSizing:
    """One sizing in one world."""

    def __init__(
        self,
        topology: Topology,
        world: Testbed,
        environment: Environment,
        files: tuple[Path, Path],
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Load the specifications of deployment and workload, with the chosen values of their options.

        Raises:
            ConfigError: They are wrong, or a script is missing.
        """
        self.asked: Specifications = load_specifications(*files, options)
        self._folder = files[0].parent
        self._world = world
        self._system = f"{topology.world} {topology.metadata.name}"
        self.draft = Draft(SizingRecord, topology, environment)
        self.draft.drivers = {"orchestrator": str(topology.world)}

    def cost(self) -> SizingCost:
        """Cost of the sizing.

        Raises:
            PlanError: There are too many sizes.
        """
        return cost(self.asked.deployment, self.asked.workload)

    def digest(self) -> str:
        """Digest of both specifications and the testbed."""
        return digest(self.asked.deployment, self.asked.workload, self._system)

    def remove(self) -> str | None:
        """Nothing: every size has been removed before the next one."""
        return None

    def run(
        self,
        folder: Path,
        journal: SizingJournal,
        report: Callable[[str], None],
        reached: Reached = lambda _sizes, _loads: None,
    ) -> Sizing:
        """Search; sizes in the journal are not measured again.

        Args:
            folder: For traces, tables and templates of this test.
            journal: Open, of this digest.
            report: Takes the events of the search in sentences.
            reached: Takes the number of sizes that are done, and of loads of the present one.

        Raises:
            Unsupported: This world cannot deploy it.
            RunStopped: What was deployed cannot be removed, or the folder cannot be written.
            CsitError: No size could be measured.
        """
        host = self._world.host(self.asked, self._folder)
        self.draft.simulation = host.simulation
        orchestrator = _Remembering(host.orchestrator)
        spec, workload = self.asked.deployment, self.asked.workload
        try:
            sizing = run_sizing(
                spec,
                workload,
                orchestrator,
                journal,
                report,
                time=host.time,
                trace=TraceFiles(folder).add,
                reached=reached,
            )
        finally:
            self._note(orchestrator.services)
        self.draft.sizing = sizing
        write_whole(folder / "sizing.csv", csv_text(sizing_rows(sizing)))
        self._write_heat({row.name: row.size for row in sizing.sizes}, folder)
        if sizing.stopped == "failed":
            reasons = [f"{row.name}: {row.failed}" for row in sizing.sizes if row.failed]
            raise CsitError("; ".join(dict.fromkeys(reasons)))
        return sizing

    def _note(self, services: list[SizedService]) -> None:
        """Add the facts of the services to the record."""
        facts = [service.facts() for service in services]
        if facts:
            self.draft.facts["service"] = dict(facts[-1])
        short = dict.fromkeys(row[OVERSUBSCRIBED] for row in facts if OVERSUBSCRIBED in row)
        self.draft.warnings += [f"{OVERSUBSCRIBED}: {sentence}" for sentence in short]

    def _write_heat(self, sizes: dict[str, Size], folder: Path) -> None:
        """Templates for OpenStack, where its flavors can have that many CPUs."""
        if all(flavor.vcpus % 1 == 0 for flavor in self.asked.deployment.flavors.values()):
            write_heat(self.asked, sizes, folder / "heat")


class _Remembering:
    """Passes all on to an orchestrator, and keeps the services to be asked for their facts."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator
        self.services: list[SizedService] = []

    def service(self, size: Size) -> SizedService:
        """As the orchestrator's."""
        service = self._orchestrator.service(size)
        self.services.append(service)
        return service
