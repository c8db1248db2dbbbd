"""How long a study of chains will take, before anything is measured."""

from resources.libraries.python.planning.chains import Chains

AROUND_S = 4.0
"""Assumed for deploying a chain, a look at its traffic, latency, starting to trace and removing it; virtual machines
take longer."""
LEAD_S = 1
"""Of each workload before its first sample: the generator gets going in that second, which counts for nothing."""


def estimate_s(chains: Chains, around_s: float = AROUND_S) -> float:
    """About how many seconds all chains take under all workloads.

    Args:
        chains: What is asked.
        around_s: Seconds around the workloads of a chain. A chain is deployed once for each number of sessions.
    """
    workloads = chains.spec.workloads
    deployments = len({workload.sessions for workload in workloads})
    return chains.count * (deployments * around_s + len(workloads) * (LEAD_S + chains.spec.duration_s))
