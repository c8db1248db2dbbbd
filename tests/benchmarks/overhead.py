"""Overhead of a trial besides sending, in a real search: on this machine, and over SSH."""

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import fmean
from typing import Any

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.benchmarks.local_cell import request
from tests.benchmarks.sides import figures

_GOAL_S, _LAB_GOAL_S = 0.015, 0.03
_READING_GOAL = 0.005
_POLLING = PROJECT / "topologies" / "local-ovs.yaml"
_MAX_S = 15.0
"""Time limit of the search."""


def measure(most_s: float = _MAX_S) -> dict[str, Any]:
    """Measure on the local topology; see `trial_overhead`."""
    return trial_overhead(load_topology(LOCAL_TOPOLOGY), _GOAL_S, most_s)


def measure_lab(most_s: float = _MAX_S) -> dict[str, Any]:
    """Measure over SSH, on nodes in network namespaces with an SSH server each; see `trial_overhead`."""
    # The testbed of the integration tests: imported here only, so that other benchmarks do not need it.
    from tests.integration.lab import Lab, missing

    if reason := missing():
        raise Unsupported(f"no testbed in network namespaces: {reason}")
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        path = lab.topology(Path(folder), nodes={"TG": {"cpus": [{"cpus": "0", "cores": "0"}]}})
        return trial_overhead(load_topology(path), _LAB_GOAL_S, most_s)


def trial_overhead(topology: Topology, goal_s: float, most_s: float) -> dict[str, Any]:
    """Search a CSC 1R1C; return wall time minus sending time, per trial, beside the goal.

    The locating trial of the search counts as a trial. The calibration of the highest load, once per test, comes
    before the search and is in the note only: it takes as long as several trials, and never twice the same.
    """
    experiment, wall_s, calibration_s = _searched(topology, most_s)
    trials = experiment.draft.trials
    ours_s = (wall_s - sum(trial.offered_duration_s for trial in trials)) / len(trials)
    inside_s = fmean(trial.total_duration_s - trial.offered_duration_s for trial in trials)
    note = f"peer is the goal; {len(trials)} trials, {inside_s * 1e3:.1f} ms of it in the generator; "
    return figures(ours_s, goal_s, "s", f"{note}calibration of the highest load {calibration_s:.1f} s")


def measure_reading(most_s: float = _MAX_S) -> dict[str, Any]:
    """Measure which share of a search the reading of costs by node takes, from the threads of a polling vSwitch.

    Reading is once per test, whatever its length: the share of a longer search is smaller.
    """
    experiment, wall_s, _ = _searched(load_topology(_POLLING), most_s)
    costs = experiment.draft.costs
    if costs is None:
        raise Unsupported("the vSwitch has no threads that count clocks, or no rate was found")
    trial_s = sum(each.total_duration_s for each in experiment.draft.trials if each.trial.purpose == "costs")
    note = f"peer is the goal; read in {costs.read_s * 1e3:.1f} ms, {len(costs.nodes)} rows, beside a trial of "
    note += f"{trial_s:.2f} s, in a search of {wall_s:.1f} s"
    return figures(costs.read_s / wall_s, _READING_GOAL, "of a search", note)


def _searched(topology: Topology, most_s: float) -> tuple[DensityTest, float, float]:
    """Search a CSC 1R1C; return the test, the wall time of its search and that of the calibration before it."""
    with closing(make_testbed(topology)) as world, ExitStack() as stack:
        if problems := world.problems():
            raise Unsupported("; ".join(map(str, problems)))
        world.open()
        asked = request(profile_text=f"quick,sum=1,time={most_s:g}")
        experiment = DensityTest(topology, world, asked, world.environment())
        stack.callback(experiment.remove)
        experiment.deploy()
        clock = experiment.deployment.parts.clock
        begin_s = clock()
        experiment.too_noisy()  # needs the highest load, which the search finds measured
        calibrated_s = clock()
        experiment.search(["NDR", "PDR"])
        wall_s = clock() - calibrated_s
    return experiment, wall_s, calibrated_s - begin_s
