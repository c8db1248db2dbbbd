"""What the tests of vSwitches and NFs in user space share: a cell deployed through the drivers, frames sent by hand."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from resources.libraries.python.drivers.context import NO_CONTAINERS
from resources.libraries.python.drivers.functions.mixed_kinds import MixedKinds
from resources.libraries.python.drivers.functions.vpp.driver import VppRouters
from resources.libraries.python.drivers.functions.vpp.driver import missing as missing_vpp
from resources.libraries.python.drivers.functions.vpp_ipsec.driver import missing as missing_vpp_ipsec
from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY, MachineLock
from resources.libraries.python.drivers.host.ownership.ownership_record import OwnershipRecord
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.drivers.vswitches.ovs import Ovs
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.qualification import Qualification
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.nodes import Container, DutNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.testbed.deployment.cell import Deployment
from resources.libraries.python.testbed.deployment.loop_back import qualification_for_run
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.kinds.factory import located, make_testbed
from tests.builders import shipped
from tests.integration import machine_watch
from tests.integration.local_fabric import send
from tests.integration.robot_runs import PROJECT, network_state, wait_for_network_state
from tests.integration.traffic import when_free

FRAMES = 20
LOCAL_OVS = PROJECT / "topologies" / "local-ovs.yaml"
VPP_PREFIX = os.environ.get("CSIT_VPP_PREFIX", "/usr")
_AT_PREFIX = cast(DutNode, SimpleNamespace(settings=lambda _: Vpp(prefix=VPP_PREFIX)))
NO_VPP = "; ".join(map(str, missing_vpp(_AT_PREFIX, NfKind("vpp"))))
NO_VPP_IPSEC = "; ".join(map(str, missing_vpp_ipsec(_AT_PREFIX, NfKind("vpp_ipsec"))))


def topology_with(*, vswitch: str = "ovs", ports: str = "auto") -> Topology:
    """The testbed `local-ovs`, with another vSwitch or other ports."""
    topology = load_topology(LOCAL_OVS)
    dut = topology.dut.model_copy(
        update={"vswitch": vswitch, "ovs": topology.dut.settings(Ovs).model_copy(update={"ports": ports})}
    )
    names = {name: dut if node.type == "DUT" else node for name, node in topology.nodes.items()}
    return topology.model_copy(update={"nodes": names})


def with_tg(topology: Topology, driver: str) -> Topology:
    """The same testbed with another generator."""
    tg = topology.tg.model_copy(update={"generator": topology.tg.generator.model_copy(update={"driver": driver})})
    return topology.model_copy(update={"nodes": {**topology.nodes, topology.tg_name: tg}})


def vpp_topology(
    *, vswitch: str = "vpp", vms: NfKind | None = None, container: Container = NO_CONTAINERS, **settings: object
) -> Topology:
    """The testbed `local-vpp`, with the VPP that is here, in network namespaces unless a container is asked for."""
    read = shipped("local-vpp")
    vpp = read.dut.settings(Vpp).model_copy(update={"prefix": VPP_PREFIX, **settings})
    dut = read.dut.model_copy(update={"vswitch": vswitch, "vpp": vpp, "vms": vms, "container": container})
    return read.model_copy(update={"nodes": {**read.nodes, "DUT1": dut}})


def vpp_of(deployment: Deployment, name: str) -> tuple[VppRouters, int]:
    """The driver of VPP NFs, and the process id of one."""
    several = deployment.parts.functions
    assert isinstance(several, MixedKinds)
    (driver,) = (part for part in several._parts if isinstance(part, VppRouters))
    return driver, driver._members[name].instance.pid


def cell(service_type: str, rows: int, columns: int, kinds: tuple[NfKind, ...] = ()) -> Cell:
    """A cell with NFs of one core."""
    return Cell(service_type=ServiceType(service_type), nf_chains=rows, nf_nodes=columns, nf_kinds=kinds)


@contextmanager
def prepared(
    topology: Topology,
    asked_cell: Cell,
    plan: Plan | None = None,
    frame_name: str = "64B",
    generator: str | None = None,
) -> Iterator[Parts]:
    """The drivers of a cell in a world that is opened for it; the machine's lock is waited for."""
    world = make_testbed(topology)
    when_free(world.open)
    try:
        yield world.parts(
            plan or make_plan(topology, asked_cell, discover(), ip_version=frame(frame_name).ip_version),
            MeasurementRequest(
                test_type=TestType.MRR,
                cell=asked_cell,
                frame=frame(frame_name),
                profile=profile("quick"),
                generator=generator,
            ),
        )
    finally:
        world.close()


@contextmanager
def deployed(
    topology: Topology, asked_cell: Cell, frame_name: str = "64B", generator: str | None = None
) -> Iterator[Deployment]:
    """A running cell, for frames of a size; with another generator than the testbed's, if one is named."""
    with (
        prepared(topology, asked_cell, frame_name=frame_name, generator=generator) as parts,
        Deployment(
            make_plan(topology, asked_cell, discover(), ip_version=frame(frame_name).ip_version), parts
        ) as running,
    ):
        yield running


def planned(plan: Plan) -> dict[str, tuple[int, ...]]:
    """The CPU of every port of the system under test."""
    return {
        port.interface: (plan.cores.cpus(port.owner)[port.data_thread],)
        for link in plan.links
        for port in (link.a, link.b)
        if port.owner != GENERATOR
    }


def is_as_planned(deployment: Deployment) -> None:
    """See no problem, and every data thread on its planned CPU."""
    assert not (problems := deployment.problems()), "; ".join(problems)
    assert {row.interface: row.actual_cpus for row in deployment.affinity()} == planned(deployment.plan)


def send_and_count(deployment: Deployment) -> None:
    """Send frames of every flow one after the other, and see exactly these at every hop of its path and nowhere else.

    Raises:
        NotReady: They do not arrive; the text has all counters that differ.
    """
    for flow in deployment.plan.flows:
        before = counters(deployment)
        wanted = {name: [0, 0] for name in before}
        path = next(
            path for path in deployment.plan.paths if (path.instance, path.direction) == (flow.instance, flow.direction)
        )
        for hop in path.hops:
            if hop.interface not in wanted:  # a guest's end of shared memory has no counter outside of the guest
                continue
            wanted[hop.interface][hop.counter == "tx"] += FRAMES
        namespaces.run_inside("csit-generator", partial(send, flow, FRAMES))
        wait_until(f"{FRAMES} frames of {_name(flow)}", partial(_difference, deployment, before, wanted), 30.0)


def counters(deployment: Deployment) -> Mapping[str, InterfaceCounters]:
    """Counters of all ports, those of the generator among them."""
    return {**deployment.counters(), **deployment.parts.generator.counters()}


def _difference(
    deployment: Deployment, before: Mapping[str, InterfaceCounters], wanted: Mapping[str, list[int]]
) -> str:
    now = counters(deployment)
    found = {
        name: [now[name].rx_packets - before[name].rx_packets, now[name].tx_packets - before[name].tx_packets]
        for name in wanted
    }
    return ", ".join(
        f"{name} rx, tx {found[name]}, not {wanted[name]}" for name in wanted if found[name] != wanted[name]
    )


def _name(flow: Flow) -> str:
    return f"instance {flow.instance} {flow.direction}"


@contextmanager
def machine_stays_as_it_was(program: str) -> Iterator[None]:
    """Afterwards no process of a program, no namespace and no folder is left that was not there before."""
    before, running, folders = network_state(), processes(program), run_folders()
    yield

    def left() -> dict[int, str]:
        """Without what ran before: that may have been a program of another test, which has ended since."""
        return {pid: line for pid, line in processes(program).items() if pid not in running}

    wait_until(f"end of {program}", lambda: str(left() or ""), 30.0)
    wait_for_network_state(before)
    assert run_folders() <= folders


def run_folders() -> set[str]:
    """Names of the folders that drivers have made for programs, which are there as long as a cell is."""
    folder = DIRECTORY / "run"
    return {entry.name for entry in folder.iterdir()} if folder.exists() else set()


def processes(word: str) -> dict[int, str]:
    """Command lines of this machine's processes that run a program with a word in its name, by pid."""
    return machine_watch.processes(lambda words: word in Path(words[0]).name)


@contextmanager
def victim(source: str, *arguments: str, says: str = "deployed") -> Iterator[subprocess.Popen[str]]:
    """A Python process that says when it is ready, and goes on until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", source, *arguments],
        cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)}, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"{says}\n"
            yield process
        finally:
            process.kill()


def kill_run(source: str, program: str, mark: str) -> None:
    """Kill a `victim` whose two processes of a program are on the machine's record, and remove what it has left."""
    with victim(source) as run:
        pids = {pid for pid, line in processes(program).items() if mark in line}
        record = OwnershipRecord.model_validate_json((DIRECTORY / "owner.json").read_text())
        assert len(pids) == 2
        assert pids <= {worker.pid for worker in record.workers}
        run.send_signal(signal.SIGKILL)
        run.wait()
    with MachineLock() as machine:
        machine.remove_leftovers()


def qualified_by_a_run(topology: Topology, folder: Path) -> Qualification:
    """Qualify a generator as the first run of a machine does; check that the second run has the one that was kept."""
    said: list[str] = []
    asked = located(topology)
    with closing(make_testbed(asked)) as world:
        world.open()
        environment = world.environment()
        found = qualification_for_run(asked, world, environment, said.append, folder)
        again = qualification_for_run(asked, world, environment, said.append, folder)
    assert found is not None and not found.simulated and found.key.generator == topology.tg.generator.driver
    assert again == found
    (line,) = said
    assert line.startswith("qualifying the generator, once for this machine")
    return found
