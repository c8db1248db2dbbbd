"""A result in the making: what is known of a test so far, turned into a Result whatever happened."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from resources.libraries.python.model.evidence import Itemized, Located
from resources.libraries.python.model.goal import GoalResult, LoadEstimate, SearchRecord
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import (
    Affinity,
    Asked,
    DeploymentTimes,
    Environment,
    Finding,
    LatencyAtLoad,
    ReceiveRate,
    Rerun,
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
    soak: GoalResult | None = None
    plr: LoadEstimate | None = None
    search: SearchRecord | None = None
    mrr: ReceiveRate | None = None
    orr: ReceiveRate | None = None
    latency: tuple[LatencyAtLoad, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    deploy_s: float | None = None
    remove_s: float | None = None
    itemized: tuple[Itemized, ...] = ()
    located: Located | None = None
    broken: tuple[str, ...] = ()
    quarantined: str | None = None
    verdict: Verdict | None = None
    rerun: Rerun | None = None

    def finish(self, *, test_id: str, test_name: str, tags: tuple[str, ...], passed: bool, message: str) -> Result:
        """Close the record. A test that did not pass never keeps a verdict that sounds as if it had."""
        verdict = self.verdict
        if verdict is None or (not passed and VerdictKind.FAILED not in verdict.kinds):
            earlier = verdict or Verdict(kinds=(), evidence=())
            failed = Finding(kind=VerdictKind.FAILED, text=message)
            verdict = Verdict(
                kinds=(failed.kind, *earlier.kinds),
                evidence=(failed.text, *earlier.evidence),
                findings=(failed, *earlier.findings),
            )
        if self.quarantined is not None:
            told = tuple(
                Finding(kind=VerdictKind.QUARANTINED, text=f"attempt {number}: {reason}")
                for number, reason in enumerate(self.broken, 1)
            )
            verdict = Verdict(
                kinds=(VerdictKind.QUARANTINED, *verdict.kinds),
                evidence=(*(each.text for each in told), *verdict.evidence),
                findings=(*told, *verdict.findings),
            )
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
            soak=self.soak,
            plr=self.plr,
            search=self.search,
            mrr=self.mrr,
            orr=self.orr,
            latency=self.latency,
            affinity=self.affinity,
            deployment=times,
            itemized=self.itemized,
            located=self.located,
            broken=self.broken,
            quarantined=self.quarantined,
            verdict=verdict,
            rerun=self.rerun,
        )
