"""Simulated call stacks: each owner's CPU time falls on functions in known shares, and is sampled at random."""

from collections import Counter
from collections.abc import Mapping
from random import Random

from resources.libraries.python.drivers.sim.system import SimulatedSystem
from resources.libraries.python.model.stacks import SEPARATOR, NodeStacks
from resources.libraries.python.planning.names import GENERATOR, is_vswitch

HZ = 199
_VSWITCH: Mapping[str, float] = {
    "sim_poll;sim_receive": 0.35,
    "sim_poll;sim_switch;sim_mac_lookup": 0.3,
    "sim_poll;sim_send": 0.35,
}
_FUNCTION: Mapping[str, float] = {
    "sim_poll;sim_receive": 0.3,
    "sim_poll;sim_forward;sim_route_lookup": 0.25,
    "sim_poll;sim_forward;sim_filter": 0.15,
    "sim_poll;sim_send": 0.3,
}
_MOST_SAMPLES = 1_000_000


def shares(owner: str, hot: Mapping[str, float]) -> dict[str, float]:
    """Return the true share of each stack of an owner; they add up to 1.

    Args:
        owner: The vSwitch, or an NF.
        hot: Factors on the time of functions, by name.
    """
    times = {
        stack: part * hot.get(stack.rpartition(SEPARATOR)[2], 1.0)
        for stack, part in (_VSWITCH if is_vswitch(owner) else _FUNCTION).items()
    }
    total = sum(times.values())
    return {stack: each / total for stack, each in times.items()}


class SimStackSampler:
    """Fulfils `roles.watching.StackSampler` on a simulated system.

    Args:
        system: The simulated system.
        node: Name of the machine.
    """

    def __init__(self, system: SimulatedSystem, node: str) -> None:
        self._system, self._node = system, node
        self._before: tuple[float, Mapping[str, float]] | None = None
        self._times = 0

    def start(self) -> None:
        self._before = self._system.clock.now(), dict(self._system.used_s())
        self._times += 1

    def stop(self) -> tuple[NodeStacks, ...]:
        before, self._before = self._before, None
        if before is None:
            return ()
        began_s, used_s = before
        now_s, plan = self._system.used_s(), self._system.plan
        rng = Random(f"{self._system.key}/stacks/{self._times}")  # noqa: S311 (reproducible, not secret)
        counts: Counter[str] = Counter()
        owners = [owner for owner in now_s if owner != GENERATOR]
        for owner in owners:
            number = min(_MOST_SAMPLES, round((now_s[owner] - used_s.get(owner, 0.0)) * HZ))
            truth = shares(owner, self._system.simulation.hot)
            counts.update(
                f"{owner}{SEPARATOR}{stack}" for stack in rng.choices(list(truth), list(truth.values()), k=number)
            )
        sampled_s = self._system.clock.now() - began_s
        cpus = tuple(sorted({cpu for owner in owners for cpu in plan.cores.cpus(owner)}))
        busy = counts.total()
        every = max(busy, round(len(cpus) * sampled_s * HZ))
        return (
            NodeStacks(
                node=self._node,
                event="sim",
                hz=HZ,
                cpus=cpus,
                sampled_s=sampled_s,
                samples=every,
                idle=every - busy,
                elsewhere=0,
                stacks=dict(sorted(counts.items())),
            ),
        )
