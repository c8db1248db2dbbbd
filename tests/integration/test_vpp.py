"""VPP as vSwitch and as NF in the local world, the real program: packets, planned cores, and nothing left.

It is looked for where CSIT_VPP_PREFIX says, else in /usr. No stand-in can take its place here.
"""

import os
import shutil
import signal
from pathlib import Path

import pytest

from resources.libraries.python.drivers.containers.engine_choice import missing as missing_engine
from resources.libraries.python.drivers.functions.vm.accelerator import missing as vm_missing
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vpp import instance
from resources.libraries.python.drivers.vpp.cli import CommandLine
from resources.libraries.python.drivers.vswitches.vpp.driver import VppSwitch
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.model.testbed.nodes import Container
from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.robot_runs import PROJECT, results, run_robot
from tests.integration.user_space import (
    NO_VPP,
    VPP_PREFIX,
    cell,
    deployed,
    is_as_planned,
    kill_run,
    planned,
    send_and_count,
    vpp_of,
)
from tests.integration.user_space import vpp_topology as topology

pytestmark = [
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.leaves_no("vpp"),
    pytest.mark.skipif(bool(NO_VPP), reason=f"{NO_VPP} (CSIT_VPP_PREFIX={VPP_PREFIX})"),
]
NO_VMS = "; ".join(map(str, vm_missing()))
PODMAN = Container(engine="podman")
VPP, ROUTER = NfKind("vpp"), NfKind("linux_router")
VICTIM = """
import time
from tests.integration.test_vpp import topology
from tests.integration.user_space import cell, deployed
with deployed(topology(), cell("CSC", 1, 1)):
    print("deployed", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("vswitch", ["vpp", "linux_bridge"])
def test_in_containers_they_share_memory_with_the_vswitch_all_the_same(vswitch: str) -> None:
    """By memif whose sockets are in a shared folder, and by ports of the namespace that the container joins."""
    if reason := "; ".join(map(str, missing_engine(PODMAN))):
        pytest.skip(reason)
    with deployed(topology(vswitch=vswitch, container=PODMAN), cell("CSC", 1, 2)) as deployment:
        send_and_count(deployment)
        is_as_planned(deployment)
        assert deployment.facts()["functions"]["containers"].startswith("podman ")


@pytest.mark.parametrize(
    ("vswitch", "service_type", "rows", "kinds"),
    [
        ("vpp", "CSC", 1, (VPP,)),
        ("vpp", "CSC", 2, (VPP, VPP)),
        ("vpp", "CSP", 1, (VPP, VPP)),
        ("vpp", "CSC", 1, (ROUTER, VPP)),
        ("linux_bridge", "CSP", 1, (VPP, ROUTER, VPP)),
    ],
)
def test_packets_pass_in_their_instance_only_on_planned_cores(
    vswitch: str, service_type: str, rows: int, kinds: tuple[NfKind, ...]
) -> None:
    """Every hop sees each frame once, by memif and by ports of the kernel; queues are where they are planned."""
    with deployed(topology(vswitch=vswitch), cell(service_type, rows, len(kinds), kinds)) as deployment:
        assert {row.interface: row.actual_cpus for row in deployment.affinity()} == planned(deployment.plan)
        send_and_count(deployment)
        assert deployment.problems() == ()
        facts = deployment.facts()
        assert "containers" not in facts["functions"]
        if vswitch == "vpp":
            assert facts["vswitch"]["vswitch"].startswith("VPP 2")
            assert "csv1p1 worker 0 (interrupt)" in facts["vswitch"]["rx placement"]


def test_under_load_packets_come_back_and_the_work_is_reported() -> None:
    with deployed(topology(), cell("CSC", 1, 1)) as deployment:
        deployment.affinity()
        deployment.counters()
        trial = Trial(load_pps=20_000.0, duration_s=0.5, frame=frame("64B"), purpose="mrr")
        result = deployment.parts.generator.run(trial)
        deployment.counters()
        assert result.received > 0.5 * result.sent > 4000
        facts = deployment.facts()
        assert "packets per call" in facts["vswitch"]["work"]
        assert "packets per call" in facts["functions"]["nf-1-1 work"]


@pytest.mark.skipif(bool(NO_VMS), reason=NO_VMS)
def test_packets_pass_virtual_machines_over_vhost_user() -> None:
    """The guests' memory is the vSwitch's to copy from; what guests do themselves, only their neighbours see."""
    with deployed(topology(vms=NfKind("qemu")), cell("VSC", 1, 1)) as deployment:
        is_as_planned(deployment)
        send_and_count(deployment)
        assert deployment.facts()["functions"]["vhost"].startswith("user: ")
        assert "csv1x1i1 worker 0 (interrupt)" in deployment.facts()["vswitch"]["rx placement"]


@pytest.mark.skipif(bool(NO_VMS), reason=NO_VMS)
@pytest.mark.parametrize(("vswitch", "columns"), [("vpp", 1), ("vpp", 2), ("linux_bridge", 1)])
def test_packets_pass_vpps_in_virtual_machines(vswitch: str, columns: int) -> None:
    """Over vhost-user every hop is counted, inside of guests too; over taps the ports' counters are the kernel's."""
    with deployed(topology(vswitch=vswitch, vms=NfKind("qemu_vpp")), cell("VSC", 1, columns)) as deployment:
        is_as_planned(deployment)
        send_and_count(deployment)
        assert {f"csn1x{column + 1}i{side}" for column in range(columns) for side in (1, 2)} <= set(
            deployment.counters()
        )
        facts = deployment.facts()["functions"]
        assert facts["vpp"].startswith("VPP 2")
        assert "in virtual machines" in facts["vpp"]
        assert facts["nf-1-1 threads"].startswith("vCPUs: ")


@pytest.mark.skipif(bool(NO_VMS), reason=NO_VMS)
def test_a_vpp_that_cannot_start_in_a_guest_is_reported_with_its_last_output(tmp_path: Path) -> None:
    """A program that ends at once takes the place of the guest's VPP; the vSwitch is another one."""
    (tmp_path / "bin").mkdir()
    shutil.copy("/bin/false", tmp_path / "bin" / "vpp")
    (tmp_path / "lib" / "vpp_plugins").mkdir(parents=True)
    for name in ("memif", "af_packet"):  # which are looked for, and not loaded
        (tmp_path / "lib" / "vpp_plugins" / f"{name}_plugin.so").touch()
    with (
        pytest.raises(CsitError, match=r"(?s)the virtual machine of nf-1-1 ended.*VPP ended with 1"),
        deployed(topology(vswitch="linux_bridge", vms=NfKind("qemu_vpp"), prefix=str(tmp_path)), cell("VSC", 1, 1)),
    ):
        pass


def test_a_killed_nf_is_named_and_comes_back_with_the_same_configuration() -> None:
    with deployed(topology(), cell("CSP", 1, 2)) as deployment:
        send_and_count(deployment)
        driver, pid = vpp_of(deployment, "nf-1-1")
        os.kill(pid, signal.SIGKILL)
        found = deployment.problems()
        assert any(text.startswith("VPP of nf-1-1 was killed by SIGKILL; it said last: ") for text in found), found
        for peer in ("VPP of the vSwitch: csv1x1i1 is not connected", "VPP of nf-1-2: csn1x2i1 is not connected"):
            wait_until(peer, lambda peer=peer: "" if peer in str(seen := deployment.problems()) else str(seen), 60.0)  # type: ignore[misc]
        lost = {row.interface for row in deployment.affinity() if row.actual_cpus == ()}
        assert {"csn1x1i1", "csn1x1i2"} <= lost
        driver.restart("nf-1-1")
        wait_until("shared memory", lambda: "; ".join(deployment.problems()), 60.0, pause_s=0.1)
        assert {row.interface: row.actual_cpus for row in deployment.affinity()} == planned(deployment.plan)
        send_and_count(deployment)
    with deployed(topology(), cell("CSP", 1, 2)) as deployment:
        send_and_count(deployment)


def test_a_crash_is_reported_with_its_core_file() -> None:
    """Where the kernel gives core files to a program, that one is named."""
    with deployed(topology(), cell("CSC", 1, 1)) as deployment:
        switch = deployment.parts.switch
        assert isinstance(switch, VppSwitch)
        assert switch._member is not None
        pid = switch._member.instance.pid
        os.kill(pid, signal.SIGABRT)
        wait_until(
            "its end", lambda: "" if "was killed" in str(switch.problems()) else "no problem", 20.0, pause_s=0.05
        )
        (problem,) = switch.problems()
        assert problem.startswith("VPP of the vSwitch was killed by SIGABRT")
        assert "core file" in problem
    (instance.KEPT / f"vswitch.{pid}.core").unlink(missing_ok=True)


def test_replies_longer_than_a_read_are_whole() -> None:
    """The client against the real socket: all commands that VPP has."""
    with deployed(topology(vswitch="linux_bridge"), cell("CSC", 1, 1, (VPP,))):
        cli = CommandLine(DIRECTORY / "run" / "shared_memory" / "nf-1-1" / "cli.sock")
        assert len(cli.ask("show cli")) > 4096
        assert cli.ask("show version").startswith("vpp v")
        cli.close()


def test_a_killed_run_leaves_none() -> None:
    kill_run(VICTIM, "vpp", str(DIRECTORY))


def test_the_suites_run_on_it(tmp_path: Path) -> None:
    row = suite(tmp_path, "csc-ndrpdr")
    assert row.pdr and row.pdr.lower_pps and row.pdr.lower_pps > 1000
    assert "1ch-2mif-1dcr" in row.test_name
    assert row.test_name.endswith("vppip4-ndrpdr")


@pytest.mark.skipif(bool(NO_VMS), reason=NO_VMS)
def test_the_suites_of_virtual_machines_run_with_vpp_in_them(tmp_path: Path) -> None:
    row = suite(tmp_path, "vsc-mrr")
    assert row.mrr and row.mrr.mean_pps > 0, "beyond what an emulated guest takes on shared cores little comes through"
    assert "1ch-2vh-1vm" in row.test_name
    assert row.test_name.endswith("vppip4-mrr")
    assert "clocks each" in row.facts["functions"]["nf-1-1 work"]
    assert (VerdictKind.EMULATED in row.verdict.kinds) == (row.facts["functions"]["accelerator"] == "tcg")


def suite(folder: Path, name: str) -> DensityRecord:
    """The record of a run of one suite, VMs with VPP in them."""
    file = folder / "local-vpp.yaml"
    text = (PROJECT / "topologies" / "local-vpp.yaml").read_text().replace("prefix: /usr ", f"prefix: {VPP_PREFIX} ")
    file.write_text(text.replace("vms: qemu  ", "vms: qemu_vpp  "))
    search = "SEARCH:quick,width=0.2,sum=1,time=12,latency=0.2,mrr=1"
    run_robot(
        folder, *("-v", f"TOPOLOGY:{file}", "-v", "NF_SIZES:1c", "-v", search, "-v", "CELLS:1x1", "--suite", name)
    )
    (row,) = results(folder)
    assert all(each.actual_cpus == (each.planned_cpu,) for each in row.affinity)
    return row
