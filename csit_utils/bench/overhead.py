"""Overhead of a trial besides sending, in a real search: on this machine, and over SSH."""

import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import Cell, Dimensions, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import LOCAL_TOPOLOGY
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.worlds.factory import world_of

GOAL_S = 0.015
LAB_GOAL_S = 0.03
_MOST_S = 15.0
"""Time limit of the search."""


def measure(most_s: float = _MOST_S) -> dict[str, Any]:
    """Measure on the local topology; see `_search`.

    Raises:
        Unsupported: This machine does not meet the requirements of local runs.
    """
    return _search("trial_overhead", load_topology(LOCAL_TOPOLOGY), GOAL_S, most_s, "")


def measure_lab(most_s: float = _MOST_S) -> dict[str, Any]:
    """Measure over SSH, on nodes in network namespaces with an SSH server each; see `_search`.

    Raises:
        Unsupported: This machine does not meet the requirements of such a testbed.
    """
    # The testbed of the integration tests: imported here only, so that other benchmarks do not need it.
    from tests.integration.lab import Lab, missing  # noqa: PLC0415

    if reason := missing():
        raise Unsupported(f"no testbed in network namespaces: {reason}")
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        path = lab.topology(Path(folder), nodes={"TG": {"cpus": [{"cpus": "0", "cores": "0"}]}})
        return _search(
            "trial_overhead_lab", load_topology(path), LAB_GOAL_S, most_s, "; over SSH to nodes in namespaces"
        )


def _search(name: str, topology: Topology, goal_s: float, most_s: float, where: str) -> dict[str, Any]:
    """Search a CSC 1R1C with real packets; return wall time minus sending time, per trial.

    The locating trial of the search counts as a trial. The calibration of the highest load, once per test, is reported
    in the note only.

    Returns:
        `ours` in seconds per trial; there is no peer, `ratio` is to the goal.
    """
    world = world_of(topology)
    if problems := world.problems():
        world.close()
        raise Unsupported("; ".join(map(str, problems)))
    cell = Cell(service_type=ServiceType.CSC, **Dimensions(1, 1).columns)
    asked = MeasurementRequest(
        test_type=TestType.NDRPDR, cell=cell, frame=frame("64B"), profile=profile(f"quick,sum=1,time={most_s:g}")
    )
    world.open()
    try:
        experiment = DensityTest(topology, world, asked, world.environment())
        experiment.deploy()
        try:
            clock, generator = experiment.deployment.parts.clock, experiment.deployment.parts.generator
            begin = clock()
            generator.highest_loads(Trial(load_pps=0.0, duration_s=0.3, frame=asked.frame, purpose="calibration"))
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
        "name": name,
        "ours": ours,
        "peer": None,
        "goal": goal_s,
        "ratio": ours / goal_s,
        "unit": "s",
        "note": f"{len(trials)} trials; no peer, ratio to the goal; {inside * 1e3:.1f} ms of it in the "
        f"generator; calibration of the highest load {once_s:.1f} s{where}",
    }
