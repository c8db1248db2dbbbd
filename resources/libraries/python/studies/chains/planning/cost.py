"""Cost of a study of chains: deployments, measurements, time."""

from dataclasses import dataclass

from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.studies.chains.planning.chain_generation import Chains
from resources.libraries.python.studies.density.planning.extras import READ_STACKS_S

AROUND_S = 4.0
"""Assumed for deploying a chain, a look at its traffic, latency, starting to trace and removing it; virtual machines
take longer."""
LEAD_S = 1
"""Of each workload before its first sample: the generator gets going in that second, which counts for nothing."""


@dataclass(frozen=True, slots=True)
class ChainStudyCost(StudyCost):
    """Cost of a study of chains; its steps are chains, its runs chains under a workload."""

    deployments: int
    """A chain is deployed once for each number of sessions."""

    def counts(self) -> dict[str, float]:
        """See StudyCost."""
        return {
            "chains": self.steps,
            "deployments": self.deployments,
            "measurements": self.runs,
            "seconds": self.seconds,
        }


def cost(chains: Chains, around_s: float = AROUND_S) -> ChainStudyCost:
    """Count without making any chain.

    Args:
        chains: What is asked.
        around_s: Seconds around the workloads of a deployment.

    Raises:
        ConfigError: It exceeds a bound of `model.bounds`.
    """
    workloads = chains.spec.workloads
    deployments = chains.count * len({workload.sessions for workload in workloads})
    measurements = chains.count * len(workloads)
    seconds = deployments * around_s + measurements * (LEAD_S + chains.spec.duration_s)
    return ChainStudyCost(
        name=chains.spec.name,
        steps=chains.count,
        runs=measurements,
        unit="measurements of chains under workloads",
        seconds=seconds,
        deployments=deployments,
    )


def sampling_s(trial_s: float) -> float:
    """Return the seconds that sampling the call stacks of one chain takes.

    Args:
        trial_s: Length of the trial.
    """
    return AROUND_S + trial_s + READ_STACKS_S
