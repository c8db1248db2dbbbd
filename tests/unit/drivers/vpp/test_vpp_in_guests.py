"""The dialogue with the VPP of a guest, against bytes like VPP's, and VPPs that end early."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from resources.libraries.python.drivers.functions.vm_vpp.guest_software import GuestVpp, interfaces_inside, placement
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vpp import instance
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, IdleBehaviour, Startup, place, routing
from resources.libraries.python.drivers.vpp.instance import VppInstance, core_of
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cpus, plan_of, shipped
from tests.unit.drivers.vpp.vpp_stand_in import stand_in

_READ = shipped("local-vpp")
_NODES = {**_READ.nodes, "DUT1": _READ.dut.model_copy(update={"vms": NfKind("qemu_vpp")})}
PLAN = plan_of(_READ.model_copy(update={"nodes": _NODES}), "VSC", cores=cpus(16))
_NODES = {**_READ.nodes, "DUT1": _READ.dut.model_copy(update={"vms": NfKind("qemu_vpp")})}
PLAN = make_plan(
    _READ.model_copy(update={"nodes": _NODES}),
    Cell(service_type=ServiceType.VSC, nf_chains=1, nf_nodes=1),
    layout((cpu, cpu, 0, 0) for cpu in range(16)),
)
FUNCTION = PLAN.functions[0]
PLACED = """Thread 1 (vpp_wk_0):
 node virtio-input:
    csn1x1i1 queue 0 (polling)
    csn1x1i2 queue 0 (polling)
"""
INTERFACES = """              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count
csn1x1i1                          1      up          9000/0/0/0     rx packets                    20
csn1x1i2                          2     down         9000/0/0/0     tx packets                    20
"""
SAYS = {
    "show version": "vpp v26.10-rc0 built by somebody",
    "set interface default rx-mode interrupt": "Default interface rx-mode set to interrupt",
    "show interface rx-placement": PLACED,
    "show interface": INTERFACES,
    "show threads": "ID     Name                Type        LWP\n0      vpp_main                        300    other\n",
}


@contextmanager
def guest_vpp(path: Path, refuses: str = "never") -> Iterator[tuple[GuestVpp, list[bytes]]]:
    """A client of a VPP in a guest, and what it was asked over the relay."""

    def answer(line: bytes) -> list[bytes]:
        command = line.decode()
        return [b"virtio: no such device\0" if refuses in command else SAYS.get(command, "").encode() + b"\0"]

    with stand_in(path, answer, relay=True) as read, closing(vpp(path)) as guest:
        yield guest, read


def vpp(path: Path) -> GuestVpp:
    idle = IdleBehaviour("interrupt", 100)
    return GuestVpp(FUNCTION, interfaces_inside(PLAN, FUNCTION), placement(PLAN, FUNCTION.name), idle, path)


def test_a_router_is_configured_over_the_relay(tmp_path: Path) -> None:
    with guest_vpp(tmp_path / "cli") as (guest, read):
        guest.configure(1518)
        assert (guest.threads_of("csn1x1i1"), guest.threads_of("nope")) == ((1,), ())
        assert guest.version == "26.10-rc0"
    commands = [line.decode() for line in read[2:]]
    assert set(routing(FUNCTION)) <= set(commands)
    made = commands.index("create interface virtio 0000:00:11.0 bind")
    assert made < commands.index("set interface name virtio-0/0/11/0 csn1x1i1") < commands.index(routing(FUNCTION)[0])
    assert "set interface rx-mode csn1x1i1 queue 0 interrupt" in commands, "its queues were in another mode"


def test_a_command_that_vpp_refuses_is_reported_with_the_name_of_the_nf(tmp_path: Path) -> None:
    says = r"VPP in the virtual machine of nf-1-1: create interface virtio 0000:00:11.0 bind was.*no such device"
    with guest_vpp(tmp_path / "cli", "create interface") as (guest, _), pytest.raises(CommandFailed, match=says):
        guest.configure(1518)


def test_it_reports_counters_and_problems(tmp_path: Path) -> None:
    with guest_vpp(tmp_path / "cli") as (guest, _):
        counts = {"csn1x1i1": InterfaceCounters(20, 0, 0, 0), "csn1x1i2": InterfaceCounters(0, 20, 0, 0)}
        assert guest.counters() == counts
        assert guest.problems() == (
            "csn1x1i2 of VPP in the virtual machine of nf-1-1 is down",
            "worker 0 of VPP in the virtual machine of nf-1-1 is gone",
        )
        assert guest.facts()["threads"] == "vCPUs: main thread on CPU 0, workers on CPU 1"


def test_one_that_does_not_answer_is_named(tmp_path: Path) -> None:
    guest = vpp(tmp_path / "nobody")
    (problem,) = guest.problems()
    assert problem.startswith("VPP in the virtual machine of nf-1-1: VPP at ")
    with pytest.raises(CsitError, match="VPP in the virtual machine of nf-1-1"):
        guest.configure(1518)


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    folder = tmp_path / "nf-1-1"
    folder.mkdir()
    return folder


def core_said(
    folder: Path, pid: int, pattern: str = "core", uses_pid: str = "0", *, began_s: float = 0.0, ran: Path | None = None
) -> str:
    """What is said of the core file of a process under a kernel with these settings."""
    (folder / "core_pattern").write_text(f"{pattern}\n")
    (folder / "core_uses_pid").write_text(f"{uses_pid}\n")
    return core_of(pid, began_s, ran or folder / "nf-1-1", folder, folder / "kept")


def test_one_that_lies_where_the_program_ran_is_kept(tmp_path: Path, ran: Path) -> None:
    (ran / "core").write_bytes(b"x" * 4096)
    for _ in ("found", "asked for again"):
        assert core_said(tmp_path, 12) == f"core file {tmp_path}/kept/nf-1-1.12.core, 0 MB"
    assert not (ran / "core").exists()


def test_three_are_kept_the_newest_ones(tmp_path: Path, ran: Path) -> None:
    for pid in range(10, 15):
        (ran / "core").touch()
        os.utime(ran / "core", (pid, pid))
        core_said(tmp_path, pid)
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {f"nf-1-1.{pid}.core" for pid in (12, 13, 14)}


def test_of_another_process_or_older_it_is_left(tmp_path: Path, ran: Path) -> None:
    (ran / "core.12").touch()
    assert core_said(tmp_path, 13, uses_pid="1") == ""
    assert "nf-1-1.12.core" in core_said(tmp_path, 12, uses_pid="1")
    (ran / "core").touch()
    os.utime(ran / "core", (100.0, 100.0))
    assert core_said(tmp_path, 14, began_s=200.0) == ""


@pytest.mark.usefixtures("ran")
def test_somewhere_else_with_program_and_time_it_stays(tmp_path: Path) -> None:
    core = tmp_path / "vpp_main.12.1700000000"
    core.touch()
    assert core_said(tmp_path, 12, f"{tmp_path}/%e.%p.%t") == f"core file {core}, 0 MB"
    assert core.exists()
    taken = core_said(tmp_path, 12, "|/usr/lib/systemd/systemd-coredump %P %u")
    assert "went to /usr/lib/systemd/systemd-coredump" in taken, "a program that takes them"


def test_shared_memory_of_one_that_was_killed_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    startup = Startup(
        name="csit-nf-1-1", folder=tmp_path / "nf-1-1", placement=place(min(os.sched_getaffinity(0)), ()), heap_mb=512,
        buffers=1024, pages=HugePageChoice("4k", ""), waiting=IdleBehaviour("polling", 0), plugins=(),
    )  # fmt: skip
    monkeypatch.setattr(instance, "remove_segments", partial(instance.remove_segments, folder=tmp_path))
    left = tmp_path / "csit-nf-1-1-global_vm"
    with MachineLock(tmp_path / "lock") as lock:
        vpp = VppInstance("VPP of nf-1-1", startup, lock, lambda _: ("sleep", "60"))
        vpp.start(aside)
        assert "shared memory of VPP csit-nf-1-1" in lock.leftovers()
        left.touch()
        os.kill(vpp.pid, signal.SIGKILL)
        vpp.wait_end()
        vpp.wait_end()
        assert (left.exists(), lock.leftovers()) == (False, [])


def test_its_holes_take_no_space_where_it_is_kept(tmp_path: Path) -> None:
    """The folder of a run is in memory, that of core files on a disk."""
    with TemporaryDirectory(dir="/dev/shm") as memory:
        with (Path(memory) / "core").open("wb") as core:
            core.truncate(1 << 30)
        core_said(tmp_path, 12, ran=Path(memory))
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.stat().st_size == 1 << 30
    assert kept.stat().st_blocks * 512 < 1 << 20
