"""Sampled call stacks as a record has them."""

from resources.libraries.python.model.measurements.stacks import NodeStacks, Stacks


def sampled(stacks: dict[str, int], received: int = 1_000_000, cut: int = 0) -> Stacks:
    """Stacks of 10 s at PDR, sampled by the kernel's timer on a CPU that was half idle."""
    node = NodeStacks(
        node="DUT1", event="cpu-clock", hz=199, cpus=(1,), sampled_s=10.0, samples=2 * sum(stacks.values()),
        idle=sum(stacks.values()), elsewhere=0, cut=cut, stacks=stacks,
    )  # fmt: skip
    return Stacks(label="PDR", load_pps=1e5, received=received, trial_s=10.0, nodes=(node,))
