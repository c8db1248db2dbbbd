"""What a test measures besides rates and latency: power, losses one by one, longest bursts, sampled call stacks."""

from random import Random
from types import SimpleNamespace
from typing import Any, cast

from resources.libraries.python.drivers.sim.impairment import PacketLosses, flow_losses
from resources.libraries.python.model.measurements.energy import IDLE, Energy, EnergyAtLoad, NodePower
from resources.libraries.python.model.measurements.stacks import NodeStacks, Stacks
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.model.result import BackToBack, LossesAtLoad


def power_at(label: str, watts: float | None, pps: float = 0.0, busy: float | None = 1.0) -> EnergyAtLoad:
    node = NodePower(
        node="DUT1", meter="powercap", watts=watts or 0, error_w=0.5, measured_s=9.5, domains={"package-0": watts or 0}
    )
    nodes = () if watts is None else (node,)
    return EnergyAtLoad(label=label, load_pps=pps, received_pps=pps, nodes=nodes, busy_cpus=busy, p99_ns=36_000)


METERED = Energy(
    trial_s=10.0,
    duts=("DUT1",),
    loads=(power_at(IDLE, 60.0), power_at("PDR0", 80.0), power_at("PDR50", 90.0, 1e6), power_at("PDR90", 99.0, 2e6)),
)


def losses_at(label: str, **truth: float) -> LossesAtLoad:
    flows = tuple(
        flow_losses(
            PacketLosses.model_validate(truth if direction is Direction.FORWARD else {}),
            cast(Any, SimpleNamespace(instance=1, direction=direction)),
            Random(1),
            packets=20_000,
            load_pps=1e5,
            capacity_pps=2e5,
            begin_ns=10**18,
        )
        for direction in Direction
    )
    return LossesAtLoad(label=label, load_pps=2e5, flows=flows)


LOSSES = (losses_at("NDR"), losses_at("PDR", random_ratio=0.01, detour_ratio=0.01, detour_s=0.0001))

BURSTS = BackToBack(
    offered_pps=1e6,
    flows=2,
    frames=(300, 310, 320),
    mean_frames=310.0,
    stdev_frames=10.0,
    endless=False,
    implied_buffer_s=620e-6,
    corrected_buffer_s=465e-6,
    trials=45,
)


def sampled(stacks: dict[str, int], received: int = 1_000_000, cut: int = 0) -> Stacks:
    """Stacks of 10 s at PDR, sampled by the kernel's timer on a CPU that was half idle."""
    node = NodeStacks(
        node="DUT1", event="cpu-clock", hz=199, cpus=(1,), sampled_s=10.0, samples=2 * sum(stacks.values()),
        idle=sum(stacks.values()), elsewhere=0, cut=cut, stacks=stacks,
    )  # fmt: skip
    return Stacks(label="PDR", load_pps=1e5, received=received, trial_s=10.0, nodes=(node,))
