"""What a trial costs besides sending, in a real search on the local world."""

from statistics import fmean
from typing import Any

from csit_utils.commands.places import LOCAL_TOPOLOGY
from resources.libraries.python.deployment.experiment import Experiment
from resources.libraries.python.deployment.worlds import world_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.frames import frame
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.result import Asked
from resources.libraries.python.model.trial import Trial
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile

GOAL_S = 0.05


def measure() -> dict[str, Any]:
    """Search a CSC 1R1C once with real packets; wall time of the search less what its trials sent for, per trial.

    The search's locating trial counts as one of them; finding out the highest load, once per test, is told apart.

    Returns:
        `ours` in seconds per trial; there is no peer, `ratio` is to the goal.

    Raises:
        Unsupported: This machine cannot run the local world.
    """
    topology = load_topology(LOCAL_TOPOLOGY)
    world = world_of(topology)
    if problems := world.problems():
        raise Unsupported("; ".join(problems))
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    asked = Asked(test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=profile("quick"))
    world.open()
    try:
        experiment = Experiment(topology, world, asked, fingerprint())
        experiment.deploy()
        try:
            clock, generator = experiment.deployment.parts.clock, experiment.deployment.parts.generator
            begin = clock()
            generator.maximum_pps(Trial(load_pps=0.0, duration_s=0.3, frame=asked.frame, purpose="calibration"))
            once_s = clock() - begin
            begin = clock()
            experiment.search(["NDR", "PDR"])
            wall_s = clock() - begin - once_s
        finally:
            experiment.remove()
    finally:
        world.close()
    trials = experiment.draft.trials
    sending_s = sum(trial.offered_duration_s for trial in trials)
    ours = (wall_s - sending_s) / len(trials)
    inside = fmean(trial.total_duration_s - trial.offered_duration_s for trial in trials)
    return {
        "name": "trial_overhead",
        "ours": ours,
        "peer": None,
        "goal": GOAL_S,
        "ratio": ours / GOAL_S,
        "unit": "s",
        "note": f"{len(trials)} trials; no peer, ratio to the goal; {inside * 1e3:.1f} ms of it in the generator; "
        f"finding the highest load took {once_s:.1f} s",
    }
