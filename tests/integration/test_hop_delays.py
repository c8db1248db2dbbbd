"""Delay by part with real packets: that of the port that delays them, whichever it is, and nothing is left open."""

import ctypes
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.model.measurements.features import LINK, HopDelay
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.testbed.deployment.cell import Deployment
from resources.libraries.python.testbed.roles.watching import HopTimer
from tests.integration.lab import Lab
from tests.integration.lab_runs import cell_in, needs_lab
from tests.integration.local_functions import TOPOLOGY
from tests.integration.robot_runs import network_state, wait_for_network_state
from tests.integration.user_space import deployed

pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root]
DELAY_S, MIN_S = 0.5e-3, 20e-6
PROBES_PPS, DURATION_S = 200.0, 0.3
TURNS = 5
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


def probed(chain: tuple[Deployment, str]) -> tuple[HopDelay, ...]:
    """Delays of the probes of one trial."""
    deployment, name = chain
    hops = hops_of(chain)
    hops.start()
    try:
        trial = Trial(load_pps=0.0, duration_s=DURATION_S, frame=frame(name), probe_pps=PROBES_PPS, purpose="latency")
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


@needs_lab
def test_in_a_lab_the_dut_times_its_own_part_of_the_path(tmp_path: Path) -> None:
    """The first test: ports of the cell that all others share have the same names, on the same kernel."""
    with Lab(used=True) as lab:
        with cell_in(lab, tmp_path, ROUTERS) as made:
            deployment = made.deploy(plan := made.plan())
            (port,) = [hop.interface for hop in plan.paths[0].hops if (hop.owner, hop.counter) == ("nf-1-2", "tx")]
            with delayed("nf-1-2", port, DELAY_S, Path(f"/proc/{lab.nodes['DUT1'].pid}/root")):
                found = probed((deployment, "64B"))
        assert {row.owner for row in found} == PARTS - {LINK}, "the generator's ports have another clock"
        late = {(row.owner, row.direction) for row in found if row.median_s >= DELAY_S}
        assert late == {("nf-1-2", Direction.FORWARD)}, found


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


@pytest.mark.parametrize("owner", ["nf-1-1", "nf-1-2", "vswitch"])
def test_the_part_with_20_us_more_than_before_is_the_delayed_one(chain: tuple[Deployment, str], owner: str) -> None:
    path = next(path for path in chain[0].plan.paths if path.direction is Direction.FORWARD)
    port = next(hop.interface for hop in path.hops if (hop.owner, hop.counter) == (owner, "tx"))

    def medians_s() -> dict[str, float]:
        return {row.owner: row.median_s for row in probed(chain) if row.direction is Direction.FORWARD}

    # In turns, as a neighbour of the CPUs may cost one of them more than the delay.
    turns: list[tuple[dict[str, float], dict[str, float]]] = []
    for _ in range(TURNS):
        before = medians_s()
        with delayed(owner, port, MIN_S):
            turns.append((before, medians_s()))
    more = {name: median(after[name] - before[name] for before, after in turns) for name in PARTS}
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


_SCHED_CLS, _TCX_EGRESS = 3, 47
_MAX_LOOKS, _READINGS = 8_000, 16
"""Turns of the loop, and readings of the clock in each of them, of which the last one counts: the verifier follows no
more than 8,192 conditional jumps. That is enough for some milliseconds."""


def _instruction(code: int, registers: int = 0, offset: int = 0, operand: int = 0) -> bytes:
    return struct.pack("<BBhi", code, registers, offset, operand)


def _waiting(delay_s: float) -> bytes:
    """A program that looks at the clock until the time is over, and lets the packet pass."""
    ktime_get_ns = _instruction(0x85, operand=5)
    return b"".join(
        (
            ktime_get_ns,
            _instruction(0xBF, 0x06),  # r6 = r0
            _instruction(0x07, 0x06, operand=round(delay_s * 1e9)),  # r6 += delay
            _instruction(0xB7, 0x07),  # r7 = 0
            ktime_get_ns * _READINGS,
            _instruction(0x3D, 0x60, offset=2),  # if r0 >= r6, out
            _instruction(0x07, 0x07, operand=1),  # r7 += 1
            _instruction(0xA5, 0x07, offset=-3 - _READINGS, operand=_MAX_LOOKS),  # if r7 < most, look again
            _instruction(0xB7, 0x00, operand=-1),  # out: r0 = TCX_NEXT
            _instruction(0x95),
        )
    )


@contextmanager
def delayed(owner: str, interface: str, delay_s: float, root: Path = Path("/")) -> Iterator[None]:
    """Let each packet that an owner's port sends wait, on the CPU that sends it.

    Skips the test where the kernel has no such programs (before 6.6).
    """
    namespace = root / namespaces.path_of(namespaces.name_of(owner)).relative_to("/")

    def attach() -> int:
        return int(bpf.bpf_link_create(program, socket.if_nametoindex(interface), _TCX_EGRESS, None))

    try:
        bpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError:
        pytest.skip("libbpf.so.1 is not installed")
    code = _waiting(delay_s)
    program = bpf.bpf_prog_load(_SCHED_CLS, b"delay", b"GPL", code, ctypes.c_size_t(len(code) // 8), None)
    if program < 0:
        pytest.skip(f"the kernel loads no program that waits: {os.strerror(-program)}")
    try:
        link = namespaces.run_inside(str(namespace), attach)
        if link < 0:
            pytest.skip(f"the kernel attaches no program to what a port sends: {os.strerror(-link)}")
        try:
            yield
        finally:
            os.close(link)
    finally:
        os.close(program)
