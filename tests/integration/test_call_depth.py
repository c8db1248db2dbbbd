"""How many calls there are between a keyword and the system call, in a measurement of real packets."""

import inspect
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.generators.builtin import driver
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess
from resources.libraries.python.drivers.generators.xdp.support import why_not
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.DensityLibrary import DensityLibrary
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.integration.profiled_worker import VARIABLE, depth

pytestmark = [pytest.mark.parallel, pytest.mark.root]
TOPOLOGY = load_topology(Path(__file__).parents[2] / "topologies" / "local.yaml")
MAX_DEPTH = 15
"""From the keyword to the system call that sends, through controller and worker."""


class Library(DensityLibrary):
    """The library with a test that is deployed."""

    def __init__(self, test: DensityTest) -> None:
        self._deployed = test

    @property
    def _running(self) -> DensityTest:
        return self._deployed


def test_a_keyword_is_few_calls_away_from_the_system_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := why_not():
        pytest.skip(reason)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "depth"))
    monkeypatch.setattr(driver, "WorkerProcess", partial(WorkerProcess, "tests.integration.profiled_worker"))
    depths: list[int] = []

    def watch(called: FrameType, event: str, _: Any) -> None:
        if event == "call" and called.f_code is WorkerProcess.send.__code__:
            depths.append(depth(called))

    asked = MeasurementRequest(
        test_type=TestType.MRR,
        cell=Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1),
        frame=frame("64B"),
        profile=profile("quick"),
    )
    world = make_testbed(TOPOLOGY)
    world.open()
    try:
        test = DensityTest(TOPOLOGY, world, asked, fingerprint())
        test.deploy()
        try:
            test.verify_traffic()
            library = Library(test)
            sys.setprofile(watch)
            try:
                inspect.unwrap(cast(Any, DensityLibrary.measure_mrr))(
                    library
                )  # the boundary of all keywords is around it
            finally:
                sys.setprofile(None)
        finally:
            assert test.remove() is None
    finally:
        world.close()
    worker = int((tmp_path / "depth").read_text(encoding="ascii"))
    print(f"{max(depths)} calls to the worker, {worker} calls in it")
    assert max(depths) + worker <= MAX_DEPTH
