"""The record of a characterization test in the making: what is known so far, whatever happens to the test."""

from dataclasses import dataclass, field
from typing import Any

from resources.libraries.python.model.characterization import Characterization, Kind
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Environment, Rerun
from resources.libraries.python.model.topology import Topology, World
from resources.libraries.python.recording.draft import utc_now
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.interference.model.record import Interference
from resources.libraries.python.studies.sizing.model.spec import Sizing
from resources.libraries.python.studies.sweep.model.profile import Prediction, Profile
from resources.libraries.python.studies.sweep.model.record import Sweep


@dataclass
class CharacterizationDraft:
    """Filled by the phases of a test."""

    topology: Topology
    environment: Environment
    kind: Kind
    started_at: str = field(default_factory=utc_now)
    drivers: dict[str, str] = field(default_factory=dict)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    simulation: dict[str, Any] | None = None
    plan: Plan | None = None
    warnings: list[str] = field(default_factory=list)
    sweep: Sweep | None = None
    profile: Profile | None = None
    predictions: tuple[Prediction, ...] = ()
    sizing: Sizing | None = None
    chain_study: ChainStudy | None = None
    interference: Interference | None = None
    rerun: Rerun | None = None

    def finish(
        self, *, test_id: str, test_name: str, tags: tuple[str, ...], passed: bool, message: str
    ) -> Characterization:
        """Close the record."""
        return Characterization(
            kind=self.kind,
            test_id=test_id,
            test_name=test_name,
            tags=tags,
            started_at=self.started_at,
            finished_at=utc_now(),
            passed=passed,
            message=message,
            world=self.topology.world,
            simulated=self.topology.world is World.SIM,
            testbed=self.topology.metadata.name,
            environment=self.environment,
            drivers=self.drivers,
            simulation=self.simulation,
            facts=self.facts,
            plan=self.plan,
            warnings=tuple(self.warnings),
            sweep=self.sweep,
            profile=self.profile,
            predictions=self.predictions,
            sizing=self.sizing,
            chain_study=self.chain_study,
            interference=self.interference,
            rerun=self.rerun,
        )
