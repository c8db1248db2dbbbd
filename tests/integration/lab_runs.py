"""Runs of the suites on a lab in namespaces, and what is on its nodes before, during and after them."""

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.kinds.factory import located, make_testbed
from tests.integration.lab import Lab, missing
from tests.integration.robot_runs import held_in_a_trial, network_state, sent_packets

needs_lab = pytest.mark.skipif(bool(missing()), reason=missing() or "it is all there")
RT_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")
TG_CPUS = [{"cpus": "0", "cores": "0"}]
"""The nodes' processor is one and the same. What the DUT does in real time is on the others, where there are any."""


def topology_of(lab: Lab, folder: Path, **nodes: dict[str, Any]) -> Path:
    """Its topology file, with what is said of other nodes than the TG."""
    return lab.topology(folder, nodes={"TG": {"cpus": TG_CPUS}, **nodes})


@contextmanager
def opened(path: Path) -> Iterator[Testbed]:
    """A testbed that this process has."""
    with closing(make_testbed(load_topology(path))) as world:
        world.open()
        yield world


@contextmanager
def cell_in(lab: Lab, folder: Path, cell: Cell) -> Iterator[CellUnderTest]:
    """A cell that is to be deployed on the nodes, and is removed without a trace."""
    before, topology = state(lab), located(load_topology(topology_of(lab, folder)))
    asked = MeasurementRequest(test_type=TestType.MRR, cell=cell, frame=frame("64B"), profile=profile("quick"))
    with closing(make_testbed(topology)) as world:
        world.open()
        made = CellUnderTest(topology, world, asked)
        try:
            yield made
        finally:
            removal = made.remove()
    assert removal is None
    wait_for_state(lab, before)


def options(topology: Path, *more: str) -> tuple[str, ...]:
    """Of a run on it that is over soon."""
    search = "SEARCH:quick,sum=1,time=10,mrr=1,mrr_trial=0.1"
    return ("-v", f"TOPOLOGY:{topology}", "-v", "NF_SIZES:1c", "-v", search, *more)


def state(lab: Lab) -> dict[str, dict[str, object]]:
    """What runs may leave on nodes."""
    return {name: _state(lab, name) for name in lab.nodes}


def _state(lab: Lab, name: str) -> dict[str, object]:
    node = lab.nodes[name]
    lines = filter(None, node.processes().values())  # one that is just ending has no command line any more
    return {
        "namespaces": sorted(node.run("sh", "-c", "ls /run/netns 2>/dev/null || true").split()),
        "links": sorted(node.run("ls", "/sys/class/net").split()),
        "processes": sorted({line.split()[0] for line in lines if "sshd" not in line}),
        "owner": node.run("sh", "-c", "cat /run/csit-density/owner.json 2>/dev/null || true"),
        "unfinished": node.run("sh", "-c", "ls -A /var/tmp/csit-density | grep '^[.]' || true"),
    }


def wait_for_state(lab: Lab, wanted: dict[str, dict[str, object]], seconds: float = 120) -> None:
    """Wait until nodes are as they were, and the data threads of cells have ended.

    Agents that were cut off need some time to find out, and the kernel ends threads in its own time: the next run would
    find them under the names of its own.
    """

    def missing() -> str:
        now, threads = state(lab), network_state()["threads"]
        return "" if now == wanted and not threads else f"{now}, data threads {sorted(threads)}"

    wait_until("nodes as they were", missing, seconds, pause_s=0.2)


def agents(lab: Lab, name: str) -> list[int]:
    """Pids of agents on a node, without what only started them."""
    return [
        pid for pid, line in lab.nodes[name].processes().items() if line.split()[1:2] == ["-I"] and "start.py" in line
    ]


def held_in_trial(lab: Lab, run: "subprocess.Popen[str]", output: Path, test: str) -> AbstractContextManager[None]:
    """Let a run stand still in the middle of a trial, its generator on the TG."""
    namespace = f"/proc/{lab.nodes['TG'].pid}/root/run/netns/csit-generator"
    # More than what verifies the paths sends, and neighbours say to each other.
    return held_in_a_trial(run, output, test, sent=lambda: sent_packets(namespace), at_least=500)
