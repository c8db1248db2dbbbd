"""Overhead of a trial besides sending, in a real search: on this machine, and over SSH."""

import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed

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
    return {
        "ours": ours_s,
        "peer": goal_s,
        "ratio": ours_s / goal_s,
        "unit": "s",
        "note": f"peer is the goal; {len(trials)} trials, {inside_s * 1e3:.1f} ms of it in the generator; "
        f"calibration of the highest load {calibration_s:.1f} s",
    }


def measure_reading(most_s: float = _MAX_S) -> dict[str, Any]:
    """Measure which share of a search the reading of costs by node takes, from the threads of a polling vSwitch.

    Reading is once per test, whatever its length: the share of a longer search is smaller.
    """
    experiment, wall_s, _ = _searched(load_topology(_POLLING), most_s)
    costs = experiment.draft.costs
    if costs is None:
        raise Unsupported("the vSwitch has no threads that count clocks, or no rate was found")
    trial_s = sum(each.total_duration_s for each in experiment.draft.trials if each.trial.purpose == "costs")
    share = costs.read_s / wall_s
    return {
        "ours": share,
        "peer": _READING_GOAL,
        "ratio": share / _READING_GOAL,
        "unit": "of a search",
        "note": f"peer is the goal; read in {costs.read_s * 1e3:.1f} ms, {len(costs.nodes)} rows, beside a trial of "
        f"{trial_s:.2f} s, in a search of {wall_s:.1f} s",
    }


def _searched(topology: Topology, most_s: float) -> tuple[DensityTest, float, float]:
    """Search a CSC 1R1C; return the test, the wall time of its search and that of the calibration before it."""
    world = make_testbed(topology)
    if problems := world.problems():
        world.close()
        raise Unsupported("; ".join(map(str, problems)))
    asked = MeasurementRequest(
        test_type=TestType.NDRPDR,
        cell=Cell(service_type=ServiceType.CSC, **Dimensions(1, 1).columns),
        frame=frame("64B"),
        profile=profile(f"quick,sum=1,time={most_s:g}"),
    )
    world.open()
    try:
        experiment = DensityTest(topology, world, asked, world.environment())
        experiment.deploy()
        try:
            clock = experiment.deployment.parts.clock
            begin_s = clock()
            experiment.too_noisy()  # needs the highest load, which the search finds measured
            calibrated_s = clock()
            experiment.search(["NDR", "PDR"])
            wall_s = clock() - calibrated_s
        finally:
            experiment.remove()
    finally:
        world.close()
    return experiment, wall_s, calibrated_s - begin_s
