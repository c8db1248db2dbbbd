"""The local world with real namespaces: packets get through, threads are where they should be, nothing is left."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

import pytest

from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import check
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.planning.names import GENERATOR, VSWITCH
from tests.builders import plan_of
from tests.integration.local_fabric import FRAMES, deployed, difference, send
from tests.integration.robot_runs import network_state, wait_for_network_state
from tests.integration.user_space import victim

pytestmark = [pytest.mark.parallel, pytest.mark.root]
VICTIM = """
import sys, time
from tests.builders import plan_of
from tests.integration.local_fabric import deployed
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
with MachineLock() as machine, deployed(plan_of("local", "CSC", 1, 2), machine):
    print("deployed", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("service_type", "rows", "columns"), [("CSC", 1, 1), ("CSC", 2, 2), ("CSP", 1, 3)])
def test_packets_pass_in_their_instance_only(machine: MachineLock, service_type: str, rows: int, columns: int) -> None:
    plan = plan_of("local", service_type, rows, columns)
    with deployed(plan, machine) as (fabric, switch, routers):
        for flow in plan.flows:
            before = fabric.counters([GENERATOR])
            wanted = {name: FRAMES if name == flow.rx_interface else 0 for name in before}
            fabric.run_inside(GENERATOR, partial(send, flow, FRAMES))
            wait_until(f"frames of {flow}", partial(difference, fabric, before, wanted), 30.0)
        # Every hop has seen all frames of its instance and nothing else: no ARP, no IPv6, no frame of a neighbour.
        for counters in (*switch.counters().values(), *routers.counters().values()):
            assert counters == InterfaceCounters(FRAMES, FRAMES, 0, 0)


def test_programs_see_the_ports_of_their_namespace_in_sysfs_where_they_need_it(machine: MachineLock) -> None:
    """VPP's rdma driver finds the PCI device of a port there."""

    def shown() -> set[str]:
        names = subprocess.run(["ls", "/sys/class/net"], capture_output=True, text=True, check=True).stdout.split()
        return {name for name in names if not name.startswith("csl")}  # of labs, which may be beside this test

    def mounts() -> list[str]:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        return [line for line in lines if PurePosixPath(line.split()[1]).is_relative_to("/sys")]

    here = shown()
    plan = plan_of("local", "CSC", 1, 1)
    ports = {port.interface for port in plan.ports(VSWITCH)}
    with deployed(plan, machine) as (fabric, _, _):
        before = mounts()
        assert fabric.run_inside(VSWITCH, shown, sysfs=True) >= ports
        assert fabric.run_inside(VSWITCH, shown) == here
        assert shown() == here
        assert mounts() == before


def test_data_threads_work_where_they_were_planned(machine: MachineLock) -> None:
    plan = plan_of("local", "CSC", 1, 2)
    with deployed(plan, machine) as (fabric, switch, routers):
        owners = (GENERATOR, VSWITCH, *(function.name for function in plan.functions))
        ports = [port for owner in owners for port in plan.ports(owner)]
        planned = {port.interface: frozenset({plan.cores.cpus(port.owner)[port.data_thread]}) for port in ports}
        assert fabric.affinity(owners) == planned
        assert {**switch.affinity(), **routers.affinity(), **fabric.affinity([GENERATOR])} == planned
        found = data_threads.find(planned)
        assert {os.sched_getscheduler(thread) for thread in found.values()} == {os.SCHED_FIFO}
        before = {name: switches(thread) for name, thread in found.items()}
        for flow in plan.flows:
            fabric.run_inside(GENERATOR, partial(send, flow, FRAMES))
        # That they are there and pinned says nothing: a port may receive past its thread.
        wait_until(
            "work of every data thread",
            lambda: ", ".join(name for name, thread in found.items() if switches(thread) <= before[name]),
            2.0,
        )


def switches(thread: int) -> int:
    """How often a thread has slept after work."""
    rows = Path(f"/proc/{thread}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("voluntary_ctxt_switches")).split()[1])


def test_refused_changes_are_named_and_the_machine_is_as_it_was_afterwards(machine: MachineLock) -> None:
    before, plan = network_state(), plan_of("local", "CSP", 2, 2)
    with deployed(plan, machine) as (fabric, switch, _):
        during = network_state()
        assert during["namespaces"] - before["namespaces"] >= {"csit-generator", "csit-vswitch", "csit-nf-2-2"}
        assert during["links"] == before["links"]
        with pytest.raises(CommandFailed, match=r"make bridge csb1x1 .*exists"):
            switch.start()
        fabric.stop()
        fabric.stop()  # safe to repeat
    wait_for_network_state(before)
    link = plan.links[-1]
    wrong = plan.model_copy(update={"links": (*plan.links, link)})
    with pytest.raises(CommandFailed, match="make veth pair"), deployed(wrong, machine):
        pass
    wait_for_network_state(before)


def test_a_foreign_namespace_survives(machine: MachineLock) -> None:
    with foreign("csit-foo"):
        with deployed(plan_of("local", "CSC", 1, 1), machine):
            pass
        machine.remove_leftovers()
        assert namespaces.inode("csit-foo") is not None
    with foreign("csit-vswitch"):
        with (
            pytest.raises(CsitError, match="csit-vswitch already, not ours"),
            deployed(plan_of("local", "CSC", 1, 1), machine),
        ):
            pass
        assert namespaces.inode("csit-vswitch") is not None
        assert namespaces.inode("csit-generator") is None


@contextmanager
def foreign(name: str) -> Iterator[None]:
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_what_a_killed_run_left_is_removed_by_the_next(machine: MachineLock) -> None:
    before = network_state()
    machine.__exit__(None, None, None)
    with victim(VICTIM) as run:
        with pytest.raises(CsitError, match=f"in use by pid {run.pid} "):
            MachineLock().__enter__()
        run.kill()
    with foreign("csit-foo"):
        machine.__enter__()
        removed = machine.remove_leftovers()
        assert namespaces.inode("csit-foo") is not None
    assert [row.split()[3] for row in removed] == ["csit-generator", "csit-vswitch", "csit-nf-1-1", "csit-nf-1-2"]
    assert all(f"of pid {run.pid} " in row for row in removed)
    wait_until("data threads gone", lambda: str(network_state()["threads"] - before["threads"] or ""), 30.0)
    wait_for_network_state(before)
    with deployed(plan_of("local", "CSC", 1, 2), machine):
        pass


def test_a_check_finds_the_same_again_and_leaves_nothing() -> None:
    before = network_state()
    assert [check() for _ in range(3)] == [(), (), ()]
    wait_for_network_state(before)
