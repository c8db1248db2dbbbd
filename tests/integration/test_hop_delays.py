"""Delay by part with real packets: that of the port that delays them, whichever it is, and nothing is left open."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.delays import LINK, HopDelay
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.deployment import Deployment
from resources.libraries.python.testbed.kinds.factory import located, make_testbed
from resources.libraries.python.testbed.roles.watching import HopTimer
from tests.integration.lab import Lab
from tests.integration.lab_runs import needs_lab, state, topology_of, wait_for_state
from tests.integration.local_functions import TOPOLOGY
from tests.integration.port_delay import delayed
from tests.integration.robot_runs import network_state, wait_for_network_state
from tests.integration.user_space import deployed
from tests.realtime import CPU, realtime

pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root]
DELAY_S, MIN_S = 0.5e-3, 20e-6
PROBES_PPS, DURATION_S = 200.0, 0.3
ROUTERS = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2, nf_kinds=(NfKind("linux_router"),) * 2)
PARTS = {"vswitch", "nf-1-1", "nf-1-2", LINK}


@pytest.fixture(scope="module", params=["64B", "128B-ip6"])
def chain(request: pytest.FixtureRequest) -> Iterator[tuple[Deployment, str]]:
    """A chain of two routers, and the frames for which it is deployed."""
    before = network_state()
    with deployed(TOPOLOGY, ROUTERS, request.param) as deployment:
        yield deployment, request.param
    wait_for_network_state(before)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def hops_of(chain: tuple[Deployment, str]) -> HopTimer:
    hops = chain[0].parts.hops
    assert hops is not None
    return hops


def probed(chain: tuple[Deployment, str], probe_pps: float = PROBES_PPS) -> tuple[HopDelay, ...]:
    """Delays of the probes of one trial."""
    deployment, name = chain
    hops = hops_of(chain)
    hops.start()
    try:
        trial = Trial(
            load_pps=0.0 if probe_pps else 2 * PROBES_PPS,
            duration_s=DURATION_S,
            frame=frame(name),
            probe_pps=probe_pps,
            purpose="latency",
        )
        deployment.parts.generator.run(trial)
    finally:
        found = hops.stop()
    return found


def packet_sockets(deployment: Deployment) -> int:
    """Packet sockets in the namespaces of vSwitch and NFs."""

    def listed() -> int:
        return len(Path("/proc/thread-self/net/packet").read_text(encoding="ascii").splitlines()) - 1

    owners = {hop.owner for path in deployment.plan.paths for hop in path.hops} - {"generator"}
    return sum(namespaces.run_inside(namespaces.name_of(owner), listed) for owner in owners)


@realtime(CPU)
@needs_lab
def test_in_a_lab_the_dut_times_its_own_part_of_the_path(tmp_path: Path) -> None:
    """The first test: ports of the cell that all others share have the same names, on the same kernel."""
    with Lab(used=True) as lab:
        before = state(lab)
        topology = located(load_topology(topology_of(lab, tmp_path)))
        world = make_testbed(topology)
        world.open()
        asked = MeasurementRequest(test_type=TestType.MRR, cell=ROUTERS, frame=frame("64B"), profile=profile("quick"))
        made = CellUnderTest(topology, world, asked)
        plan = made.plan()
        try:
            deployment = made.deploy(plan)
            (port,) = [hop.interface for hop in plan.paths[0].hops if (hop.owner, hop.counter) == ("nf-1-2", "tx")]
            with delayed("nf-1-2", port, DELAY_S, Path(f"/proc/{lab.nodes['DUT1'].pid}/root")):
                found = probed((deployment, "64B"))
        finally:
            removal = made.remove()
            world.close()
        assert removal is None
        assert {row.owner for row in found} == PARTS - {LINK}, "the generator's ports have another clock"
        late = {(row.owner, row.direction) for row in found if row.median_s >= DELAY_S}
        assert late == {("nf-1-2", Direction.FORWARD)}, found
        wait_for_state(lab, before)


@realtime(CPU)
@pytest.mark.parametrize("run", [1, 2, 3])
@pytest.mark.parametrize("owner", ["nf-1-1", "nf-1-2", "vswitch"])
def test_a_delay_is_that_of_the_owner_of_the_port(chain: tuple[Deployment, str], owner: str, run: int) -> None:
    path = next(path for path in chain[0].plan.paths if path.direction is Direction.FORWARD)
    port = [hop.interface for hop in path.hops if (hop.owner, hop.counter) == (owner, "tx")][run % 2 - 1]
    with delayed(owner, port, DELAY_S):
        found = probed(chain)
    assert {row.owner for row in found} == PARTS
    for direction in Direction:
        rows = {row.owner: row for row in found if row.direction is direction}
        late = {name for name, row in rows.items() if row.median_s >= DELAY_S}
        assert late == ({owner} if direction is Direction.FORWARD else set()), f"run {run}: {rows}"
        assert len({row.packets for row in rows.values()}) == 1
        assert 0 < rows[LINK].packets <= PROBES_PPS * DURATION_S


@realtime(CPU)
@pytest.mark.parametrize("owner", ["nf-1-1", "nf-1-2", "vswitch"])
def test_the_part_with_20_us_more_than_before_is_the_delayed_one(chain: tuple[Deployment, str], owner: str) -> None:
    path = next(path for path in chain[0].plan.paths if path.direction is Direction.FORWARD)
    port = next(hop.interface for hop in path.hops if (hop.owner, hop.counter) == (owner, "tx"))

    def medians_s() -> dict[str, float]:
        return {row.owner: row.median_s for row in probed(chain) if row.direction is Direction.FORWARD}

    before = medians_s()
    with delayed(owner, port, MIN_S):
        after = medians_s()
    more = {name: after[name] - before[name] for name in PARTS}
    assert max(more, key=lambda name: more[name]) == owner, more
    assert MIN_S / 2 < more[owner] < 2 * MIN_S, more


def test_nothing_is_left_open(chain: tuple[Deployment, str]) -> None:
    deployment, _ = chain
    hops = hops_of(chain)
    probed(chain)  # what is loaded or started once
    before = packet_sockets(deployment), open_descriptors(), threading.active_count()
    hops.start()
    hops.start()  # another start replaces the first
    ports = {hop.interface for path in deployment.plan.paths for hop in path.hops if hop.owner != "generator"}
    assert packet_sockets(deployment) == before[0] + len(ports)
    hops.stop()
    assert (packet_sockets(deployment), open_descriptors(), threading.active_count()) == before
    assert hops.stop() == ()
