"""A result in the making: what is known of a test so far, turned into a Result whatever happened."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from resources.libraries.python.model.goal import GoalResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import (
    Affinity,
    Asked,
    DeploymentTimes,
    Environment,
    LatencyAtLoad,
    Mrr,
    Result,
    Verdict,
    VerdictKind,
)
from resources.libraries.python.model.topology import Topology, World
from resources.libraries.python.model.trial import TrialResult
from resources.libraries.python.planning.plan import digest


def utc_now() -> str:
    """Now, as results write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass
class Draft:
    """Filled by the phases of a test."""

    topology: Topology
    asked: Asked
    environment: Environment
    started_at: str = field(default_factory=utc_now)
    drivers: dict[str, str] = field(default_factory=dict)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    simulation: dict[str, Any] | None = None
    plan: Plan | None = None
    trials: list[TrialResult] = field(default_factory=list)
    ndr: GoalResult | None = None
    pdr: GoalResult | None = None
    mrr: Mrr | None = None
    latency: tuple[LatencyAtLoad, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    deploy_s: float | None = None
    remove_s: float | None = None
    verdict: Verdict | None = None

    def finish(self, *, test_id: str, test_name: str, tags: tuple[str, ...], passed: bool, message: str) -> Result:
        """Close the record. A test that did not pass never keeps a verdict that sounds as if it had."""
        verdict = self.verdict
        if verdict is None or (not passed and VerdictKind.FAILED not in verdict.kinds):
            earlier = verdict or Verdict(kinds=(), evidence=())
            verdict = Verdict(kinds=(VerdictKind.FAILED, *earlier.kinds), evidence=(message, *earlier.evidence))
        times = None if self.deploy_s is None else DeploymentTimes(deploy_s=self.deploy_s, remove_s=self.remove_s)
        return Result(
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
            asked=self.asked,
            plan=self.plan,
            plan_digest=digest(self.plan) if self.plan else None,
            environment=self.environment,
            drivers=self.drivers,
            facts=self.facts,
            simulation=self.simulation,
            trials=tuple(self.trials),
            ndr=self.ndr,
            pdr=self.pdr,
            mrr=self.mrr,
            latency=self.latency,
            affinity=self.affinity,
            deployment=times,
            verdict=verdict,
        )
