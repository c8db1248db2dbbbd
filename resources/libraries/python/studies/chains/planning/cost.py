"""What a study of chains costs before it begins: deployments, measurements, time."""

from dataclasses import dataclass

from resources.libraries.python.model.bounds import refuse_endless
from resources.libraries.python.studies.chains.planning.chain_generation import Chains

AROUND_S = 4.0
"""Assumed for deploying a chain, a look at its traffic, latency, starting to trace and removing it; virtual machines
take longer."""
LEAD_S = 1
"""Of each workload before its first sample: the generator gets going in that second, which counts for nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a whole study."""

    chains: int
    deployments: int
    """A chain is deployed once for each number of sessions."""
    measurements: int
    """Of a chain under a workload."""
    seconds: float


def cost(chains: Chains, around_s: float = AROUND_S) -> Cost:
    """Count without making any chain.

    Args:
        chains: What is asked.
        around_s: Seconds around the workloads of a deployment.

    Raises:
        ConfigError: It takes longer than anybody waits.
    """
    workloads = chains.spec.workloads
    deployments = chains.count * len({workload.sessions for workload in workloads})
    measurements = chains.count * len(workloads)
    seconds = deployments * around_s + measurements * (LEAD_S + chains.spec.duration_s)
    refuse_endless(chains.spec.name, measurements, "measurements of chains under workloads", seconds)
    return Cost(chains.count, deployments, measurements, seconds)
