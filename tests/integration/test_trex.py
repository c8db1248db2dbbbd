"""TRex for real, in software mode: exact counts on a cable, a search through a service, nothing left whatever happens.

It is looked for in the folder that the environment variable CSIT_TREX names, else in /opt/trex.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.trex import Trex
from resources.libraries.python.drivers.generators.trex.config import PROGRAM
from resources.libraries.python.drivers.generators.trex.driver import TrexGenerator, missing
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY, MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.plan import Link, Plan, Port
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.search.session import judged
from resources.libraries.python.search.throughput import search_throughput
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.builders import flow_of, shipped
from tests.integration.user_space import cell, deployed, processes, qualified_by_a_run, victim
from tests.veth_pair import plan as cabled_plan

SETTINGS = Trex(directory=os.environ.get("CSIT_TREX", "/opt/trex"), ports="af_packet")
pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.skipif(bool(list(missing(SETTINGS))), reason="; ".join(map(str, missing(SETTINGS)))),
]
B64 = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
IMIX = Frame(
    name="IMIX", parts=tuple(FramePart(frame_bytes=size, weight=n) for size, n in ((64, 7), (570, 4), (1518, 1)))
)
MACS = "02:00:00:00:01:01", "02:00:00:00:01:02"
LEFT, RIGHT = "csg1p1", "csg1p2"


def loop(vlan: int | None = None) -> Plan:
    """Both ports of the generator at one cable."""
    ends = [
        Port(owner="generator", interface=name, mac=mac, data_thread=0)
        for name, mac in zip((LEFT, RIGHT), MACS, strict=True)
    ]
    names = ("source_mac", "destination_mac", "source_ip", "destination_ip")
    forward = dict(zip(names, (*MACS, "10.1.0.1", "20.1.0.1"), strict=True))
    back = dict(zip(names, (*MACS[::-1], "20.1.0.1", "10.1.0.1"), strict=True))
    flows = (
        flow_of(ports=(LEFT, RIGHT), vlan=vlan, **forward),
        flow_of(Direction.REVERSE, (LEFT, RIGHT), vlan=vlan, **back),
    )
    return cabled_plan().model_copy(update={"links": (Link(instance=1, a=ends[0], b=ends[1]),), "flows": flows})


@pytest.fixture(scope="module", autouse=True)
def nothing_left() -> Iterator[None]:
    before = mine()
    yield
    assert mine() == before
    assert not (DIRECTORY / "run" / "trex").exists()


def mine() -> tuple[dict[int, str], set[str]]:
    """Servers and namespaces that are there."""
    names = {entry.name for entry in namespaces.DIRECTORY.iterdir()} if namespaces.DIRECTORY.is_dir() else set[str]()
    return processes(PROGRAM), {name for name in names if name.startswith(namespaces.PREFIX)}


@contextmanager
def started(plan: Plan) -> Iterator[TrexGenerator]:
    with ExitStack() as stack:
        lock = stack.enter_context(MachineLock())
        lock.remove_leftovers()
        fabric = Fabric(plan, lock)
        stack.callback(fabric.stop)
        fabric.start()
        node = cast(TgNode, SimpleNamespace(settings=lambda _: SETTINGS))
        generator = TrexGenerator(node, DriverContext(plan, fabric, lock, 1518))
        stack.callback(generator.stop)
        generator.start()
        yield generator
        generator.stop()
        assert not [each for each in lock.leftovers() if "process" in each]


@pytest.fixture(scope="class")
def generator() -> Iterator[TrexGenerator]:
    with started(loop()) as running:
        yield running


def trial(load_pps: float, duration_s: float = 0.5, frame: Frame = B64, probe_pps: float = 0.0) -> Trial:
    return Trial(load_pps=load_pps, duration_s=duration_s, frame=frame, probe_pps=probe_pps)


class TestOnACable:
    """One server for all of them."""

    @pytest.mark.parametrize("frame", [B64, IMIX], ids=["64B", "IMIX"])
    @pytest.mark.parametrize("load_pps", [2000.0, 40_000.0])
    def test_counts_are_exact_on_a_cable(self, generator: TrexGenerator, frame: Frame, load_pps: float) -> None:
        result = generator.run(trial(load_pps, frame=frame))
        for flow in result.flows:
            # Each of the streams of a flow, one per frame size, may send one packet more.
            assert 0 <= flow.sent - load_pps * 0.5 / 2 + 2 <= 2 + len(frame.parts)
            assert flow.received == flow.sent

    def test_what_cannot_be_offered_is_the_generators_fault(self, generator: TrexGenerator) -> None:
        result = generator.run(trial(20_000_000.0, duration_s=0.3))
        assert result.generator_limited
        assert result.offered_pps < 19_000_000
        assert "the generator" in (result.note or "")

    def test_the_highest_load_is_one_that_it_can_offer(self, generator: TrexGenerator) -> None:
        maximum_pps = generator.highest_loads(trial(0.0, duration_s=0.3)).search_pps
        assert maximum_pps > 20_000
        result = generator.run(trial(maximum_pps / 2))
        assert not result.generator_limited
        assert result.offered_pps == pytest.approx(maximum_pps / 2, rel=0.01)

    def test_latency_by_probes_of_all_sizes(self, generator: TrexGenerator) -> None:
        result = generator.run(trial(10_000.0, duration_s=1.0, frame=IMIX, probe_pps=240.0))
        for row in result.latency:
            assert row.sent == row.received
            assert 235 <= row.sent <= 243
            assert row.histogram is not None
            assert (
                row.min_ns is not None and row.p50_ns is not None and row.p99_ns is not None and row.max_ns is not None
            )
            assert 0 < row.min_ns <= row.p50_ns <= row.p99_ns <= row.max_ns
        # Probes are counted apart.
        assert all(4995 <= flow.sent <= 5003 for flow in result.flows)

    def test_two_trials_have_nothing_in_common(self, generator: TrexGenerator) -> None:
        first, second = (generator.run(trial(2000.0, duration_s=0.2, probe_pps=100.0)) for _ in range(2))
        assert [row.sent for row in first.latency] == [row.sent for row in second.latency]
        # Each of the two flows may send one packet more.
        assert abs(first.sent - second.sent) <= 2


def test_smallest_frames_with_a_tag_and_probes() -> None:
    with started(loop(vlan=101)) as generator:
        result = generator.run(trial(2000.0, probe_pps=100.0))
        assert [flow.received for flow in result.flows] == [flow.sent for flow in result.flows]
        assert all(flow.sent in (500, 501) for flow in result.flows)
        assert [row.received for row in result.latency] == [row.sent for row in result.latency]


@pytest.mark.parametrize("victim", ["server", "client"])
def test_a_dead_part_is_reported_and_nothing_is_left(victim: str) -> None:
    with started(loop()) as generator:
        assert generator.problems() == ()
        assert generator.facts()["generator"].startswith("TRex v")
        part = generator._server if victim == "server" else generator._client._running  # type: ignore[union-attr]
        assert part is not None
        os.kill(part.pid, signal.SIGKILL)
        assert "was killed by SIGKILL" in generator.problems()[0]
        with pytest.raises(CsitError, match="was killed by SIGKILL"):
            generator.run(trial(2000.0))


VICTIM = """
import time
from tests.integration.test_trex import topology
from tests.integration.user_space import cell, deployed
with deployed(topology(), cell("CSC", 1, 1)):
    print("deployed", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_run_left_the_next_one_removes() -> None:
    with victim(VICTIM) as run:
        left = set(processes(PROGRAM))
        assert left
        run.kill()
        run.wait()
        wait_until("its end", lambda: "" if run.poll() is not None else "it runs", 30.0)
    # The server does not end with the run: nobody told it to.
    assert left <= set(processes(PROGRAM))
    world = make_testbed(topology())
    removed = world.open()
    world.close()
    assert any(PROGRAM in sentence for sentence in removed)
    wait_until("the server's end", lambda: str(left & set(processes(PROGRAM)) or ""), 30.0)


def topology() -> Topology:
    found = shipped("local-trex")
    tg = found.tg.model_copy(update={"trex": SETTINGS})
    nodes = {name: tg if node.type == "TG" else node for name, node in found.nodes.items()}
    return found.model_copy(update={"nodes": nodes})


def test_a_search_through_a_service() -> None:
    with deployed(topology(), cell("CSC", 1, 1)) as deployment:
        connectivity = deployment.parts.generator.run(trial(2000.0, duration_s=0.2))
        assert connectivity.loss_ratio == pytest.approx(0, abs=0.01)
        most_pps = deployment.parts.generator.highest_loads(trial(0.0, duration_s=0.3)).search_pps
        asked = profile("quick")
        outcome = search_throughput(
            lambda each: judged(deployment.parts.generator.run(each)),
            asked.model_copy(update={"duration_max_s": 8.0}),
            B64,
            most_pps,
            deployment.parts.clock,
        )
        assert outcome.trials
        assert deployment.problems() == ()
        best = max((goal.lower_pps or 0.0) for goal in outcome.goals)
        assert 0 < best <= most_pps * 1.001


def test_a_run_qualifies_it_once_on_its_own_cpus(tmp_path: Path) -> None:
    found = qualified_by_a_run(topology(), tmp_path)
    assert found.sending.startswith("TRex v")
    assert [(point.frame.name, point.flows) for point in found.points] == [("64B", 2), ("1518B", 2)]
    for point in found.points:
        assert point.highest_pps is not None and 20_000 < point.highest_pps <= point.offered_pps * 1.01
        assert point.received_pps <= point.offered_pps * 1.001, "nothing comes back that was not sent"
        assert point.rate_error is not None and point.rate_error < 0.01
        assert point.floor_ns is not None and 1e3 < point.floor_ns < 1e6
        # It sends bursts: most frames follow at once, and the next burst comes up to a millisecond later.
        assert point.gap_load_pps is not None and point.gap_p50_ns is not None and point.gap_p999_ns is not None
        assert point.gap_p50_ns < 1e9 / point.gap_load_pps < point.gap_p999_ns


def test_two_instances_share_a_server() -> None:
    with deployed(topology(), cell("CSC", 2, 1)) as deployment:
        result = deployment.parts.generator.run(trial(8000.0, probe_pps=100.0))
        assert len(result.flows) == len(result.latency) == 4
        assert [flow.instance for flow in result.flows] == [1, 1, 2, 2]
        assert all(flow.sent >= 1000 for flow in result.flows)
        assert all(flow.received >= 0.99 * flow.sent for flow in result.flows)
