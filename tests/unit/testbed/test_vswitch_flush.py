"""What a vSwitch keeps of a trial comes out before the next one."""

from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Direction, FlowCount, Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.deployment.cell import VSwitchFlush

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
OVS = load_topology(TOPOLOGIES / "local-ovs.yaml")
BRIDGE = load_topology(TOPOLOGIES / "local.yaml")
CAPACITY_PPS, RING, KICKED = 100e3, 2048, 4


class Keeping:
    """Forwards up to a capacity; what comes above it stays in a ring, and each packet brings some of it out."""

    def __init__(self) -> None:
        self.ring = 0
        self.trials: list[Trial] = []

    def run(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        sent = round(trial.load_pps * trial.duration_s)
        out = min(self.ring, KICKED * sent)
        self.ring -= out
        forwarded = min(sent, round(CAPACITY_PPS * trial.duration_s))
        self.ring = min(RING, self.ring + sent - forwarded)
        flow = FlowCount(instance=1, direction=Direction.FORWARD, sent=sent, received=forwarded + out)
        return TrialResult(
            trial=trial, started_at="", offered_duration_s=trial.duration_s, total_duration_s=1.0, flows=(flow,)
        )


def rates(topology: Topology, *loads_pps: float, calibrated: bool = False) -> tuple[list[int], list[str]]:
    """Packets that came back of each trial of 0.1 s, and what all trials were for."""
    system, clearing = Keeping(), VSwitchFlush(topology)
    if calibrated:
        system.ring = RING
        clearing.overloaded()
    found = []
    for load_pps in loads_pps:
        trial = Trial(load_pps=load_pps, duration_s=0.1, frame=frame("64B"))
        clearing.before(system.run, trial, 1)
        result = system.run(trial)
        clearing.after(result)
        found.append(result.received)
    return found, [trial.purpose for trial in system.trials]


def test_after_a_loss_a_few_packets_bring_out_what_was_kept() -> None:
    assert rates(OVS, 200e3, 50e3, 60e3) == (
        [10_000, 5_000, 6_000],
        ["search", "clearing", "clearing", "clearing", "clearing", "search", "search"],
    )


def test_what_a_calibration_left_is_brought_out_too() -> None:
    assert rates(OVS, 50e3, calibrated=True)[0] == [5_000]


@pytest.mark.parametrize(
    "topology", [BRIDGE, OVS.model_copy(update={"nodes": {**OVS.nodes, "TG": OVS.tg.model_copy(
        update={"generator": OVS.tg.generator.model_copy(update={"driver": "iperf3"})})}})]
)  # fmt: skip
def test_others_are_left_alone(topology: Topology) -> None:
    assert rates(topology, 200e3, 50e3, calibrated=True)[1] == ["search", "search"]
