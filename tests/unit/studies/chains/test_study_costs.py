"""What a preview counts is what the run does: deployments and measurements of studies on the simulated testbed."""

import pytest

from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec, VnfSpec, Workload
from resources.libraries.python.studies.chains.planning.chain_generation import cost as chain_cost
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.interference.model.record import Contender, InterferenceSpec, NfType
from resources.libraries.python.studies.interference.planning import cost as interference_cost
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.shared.progress import StepEnded
from tests.builders import SIM
from tests.unit.studies.worlds import World

KINDS = (NfKind("linux_gateway"), NfKind("linux_nat"), NfKind("linux_router"))


@pytest.mark.parametrize(
    ("names", "together", "repetitions", "guarantee", "frames"),
    [(1, 2, 1, False, 1), (3, 2, 2, True, 1), (2, 3, 2, False, 1), (2, 2, 1, True, 2)],
)
def test_a_study_of_interference_does_what_its_preview_counts(
    names: int, together: int, repetitions: int, guarantee: bool, frames: int
) -> None:
    spec = InterferenceSpec(
        name="s",
        contenders=tuple(Contender(name=kind, type=NfType.NAT, kind=kind) for kind in KINDS[:names]),
        frame=frame("512B"),
        frames=tuple(map(frame, ("512B", "64B")[:frames])) if frames > 1 else (),
        together=together,
        repetitions=repetitions,
        guarantee=guarantee,
        duration_s=0.3,
    )
    world, seen = World(topology=SIM), list[StepEnded]()
    study = InterferenceTest(SIM, world, spec, world.environment(), seen.append)
    study.plan()
    study.run()
    previewed = interference_cost(spec)
    assert previewed == study.cost
    assert world.deployed == previewed.counted["deployments"]
    assert len(study.result().measurements) == len(seen) == previewed.runs
    assert (
        len({(measurement.target, measurement.against) for measurement in study.result().measurements})
        == previewed.counted["combinations"]
    )
    assert previewed.counts() == {
        "combinations": previewed.counted["combinations"],
        "measurements": previewed.runs,
        "deployments": previewed.counted["deployments"],
        "seconds": previewed.seconds,
    }


@pytest.mark.parametrize("sessions", [(1,), (1, 8)])
def test_a_study_of_chains_does_what_its_preview_counts(sessions: tuple[int, ...]) -> None:
    spec = ChainStudySpec(
        name="s",
        vnfs=tuple(VnfSpec(name=kind, kind=kind, memory_mib=(64, 128)) for kind in KINDS[:2]),
        workloads=tuple(
            Workload(volume_bps=volume, sessions=count, frame=frame("64B"))
            for count in sessions
            for volume in (2e6, 3e6)
        ),
        duration_s=1,
    )
    world = World(topology=SIM)
    study = ChainStudyTest(SIM, world, spec, world.environment())
    found, previewed = study.run(), chain_cost(generate(spec))
    assert previewed == study.cost
    assert world.deployed == previewed.counted["deployments"]
    assert len(found.runs + found.path) == previewed.runs
    assert len({run.chain for run in found.runs + found.path}) == previewed.counted["chains"] + 1
    assert previewed.seconds == previewed.counted["deployments"] * 4.0 + previewed.runs * (1 + 1)
    assert previewed.counts() == {
        "chains": len(list(generate(spec))),
        "deployments": previewed.counted["deployments"],
        "measurements": previewed.runs,
        "seconds": previewed.seconds,
    }
