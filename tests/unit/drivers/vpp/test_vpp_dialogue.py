"""Our client of the CLI socket against bytes like VPP's. That VPP sends such bytes, the integration tests see."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from resources.libraries.python.drivers.functions.vm_vpp.guest_software import GuestVpp, interfaces_inside, placement
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.sockets import answers as reading
from resources.libraries.python.drivers.vpp import instance
from resources.libraries.python.drivers.vpp.cli import CommandLine, check, check_shown
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, IdleBehaviour, Startup, place, routing
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.request.kinds import NfKind
from tests.builders import cpus, plan_of, shipped
from tests.unit.drivers.vpp.vpp_stand_in import OPTIONS, TERMINAL, stand_in


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cli.sock"


def test_it_says_that_it_is_no_person_and_takes_a_line_at_a_time(path: Path) -> None:
    with (
        stand_in(path, lambda line: [b"you said " + line + b"\r\n", b"\0"]) as read,
        closing(CommandLine(path)) as cli,
    ):
        assert cli.ask("show version") == "you said show version"
        assert cli.ask("show errors") == "you said show errors"
    assert read == [TERMINAL, b"", b"show version", b"show errors"], "one connection, and its type before any command"


ROW = b"csv1p1   1   up\n"


@pytest.mark.parametrize(
    ("options", "reply", "expected"),
    [
        (tuple(bytes([byte]) for byte in OPTIONS), [b"fine\0"], "fine"),  # byte by byte
        ((OPTIONS,), [ROW * 5000, ROW * 5000, b"\0"], (ROW.decode() * 10_000).rstrip()),  # in pieces, and long
        ((OPTIONS, b"    _______    _\r\n", b"vpp# "), [b"fine\0"], "fine"),  # banner and prompt came too early
        ((OPTIONS,), [b"\x1b[33mID\x1b[0m name\n\0"], "ID name"),  # colours
    ],
    ids=["bytes", "pieces", "banner", "colours"],
)
def test_a_reply_is_what_came_between_options_and_end(
    path: Path, options: tuple[bytes, ...], reply: list[bytes], expected: str
) -> None:
    with stand_in(path, lambda _: reply, options), closing(CommandLine(path)) as cli:
        assert cli.ask("show version") == expected


def test_a_refused_command_is_reported_and_later_ones_are_not_sent(path: Path) -> None:
    refused = b"set interface state: unknown interface `nope up'\n\0"
    commands = [f"set interface state {name} up" for name in ("a", "nope", "b")]
    said = r"set interface state nope up was refused: .*unknown interface `nope up'"
    with (
        stand_in(path, lambda line: [refused if b"nope" in line else b"\0"]) as read,
        closing(CommandLine(path)) as cli,
        pytest.raises(CommandFailed, match=said),
    ):
        cli.do(commands)
    assert b"set interface state b up" not in read


def test_a_sudden_end_is_reported_and_the_next_command_reconnects(path: Path) -> None:
    answers = iter([[b"half a rep", b""], [b"fine\0"]])
    with stand_in(path, lambda _: next(answers)) as read, closing(CommandLine(path)) as cli:
        with pytest.raises(CsitError, match=r"a reply to 'show version'.* closed"):
            cli.ask("show version")
        assert cli.ask("show version") == "fine"
    assert read.count(TERMINAL) == 2


def test_a_late_reply_is_not_taken_for_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = threading.Event()

    def answer(line: bytes) -> list[bytes]:
        if line == b"show slow":
            late.wait(60.0)
        return [line + b"\0"]

    with stand_in(path, answer), closing(CommandLine(path, 60.0)) as cli:
        cli.ask("show version")
        with monkeypatch.context() as patch, pytest.raises(NotReady):
            # The client finds these times, so the stand-in may wait for a CPU as long as it has to.
            patch.setattr(reading, "time", SimpleNamespace(monotonic=iter((0.0, 59.9)).__next__))
            cli.ask("show slow")
        late.set()
        assert cli.ask("show version") == "show version"


def test_one_that_never_speaks_or_is_not_there_is_reported(path: Path) -> None:
    with pytest.raises(CsitError, match=r"cannot be asked 'show version': No such file"):
        CommandLine(path).ask("show version")
    with stand_in(path, lambda _: [b"\0"], ()), pytest.raises(NotReady, match=r"telnet options .*last seen: nothing"):
        CommandLine(path, within_s=0.1).ask("show version")


@pytest.mark.parametrize("command", ["", "show version\nquit", "x" * 3000, "show \0"])
def test_what_is_not_one_line_is_not_sent(path: Path, command: str) -> None:
    with pytest.raises(CsitError, match="no command line for VPP"):
        CommandLine(path).ask(command)


def test_keys_are_in_no_error_of_a_connection_that_ends(path: Path) -> None:
    key = "0a" * 16
    command = f"ipsec sa add 10 crypto-key {key}"
    with pytest.raises(CsitError, match="cannot be asked") as refused:
        CommandLine(path).do([command])
    said = r"a reply to 'ipsec sa add 10 crypto-key \*\*\*'"
    with stand_in(path, lambda _: [b""]), pytest.raises(CsitError, match=said) as failed:
        CommandLine(path).do([command])
    assert key not in str(failed.value) + str(refused.value)


@pytest.mark.parametrize(
    ("command", "refused", "done"),
    [
        ("set interface l2 bridge nope 10", "set interface l2 bridge: unknown interface `nope 10'", ""),
        ("create host-interface name nope", "create host-interface: No such device (errno 19)", "host-nope"),
        (
            "create interface vmxnet3 0:b:0.0",
            "create interface vmxnet3: device does not support ...",
            "vmxnet3-0/b/0/0",
        ),
        ("ip route add 10.0.0.0/8 via 1.1.1.1 nope", "ip route: parse error: 'nope'", ""),
        ("create host-interface name csv1p1", "", "host-csv1p1"),
        ("create bridge-domain 10", "create bridge-domain: bridge domain already exists", "bridge-domain 10"),
        ("create interface memif id 0", "create interface memif: interface already exists", ""),
        ("create interface rdma host-if csv1p1", "create interface rdma: no such device", ""),
        ("create vhost-user socket /tmp/x server", "", "VirtualEthernet0/0/12"),
        ("create sub-interfaces csv1p1 101", "", "csv1p1.101"),
        ("set interface default rx-mode interrupt", "", "Default interface rx-mode set to interrupt"),
        ("pipe create instance 0", "", "pipe0"),
        ("ipsec itf create instance 1", "", "ipsec1"),
    ],
)
def test_a_refusal_is_told_from_what_was_done(command: str, refused: str, done: str) -> None:
    check(command, done)
    with pytest.raises(CommandFailed) as failed:
        check(command, refused)
    assert command in str(failed.value) and refused in str(failed.value)


def test_what_is_not_known_cannot_be_shown() -> None:
    with pytest.raises(CommandFailed, match="show foo was refused: show: unknown input `foo'"):
        check_shown("show foo", "show: unknown input `foo'")
    check_shown("show errors", "   Count   Node  Reason\n  3  x-tx  unknown interface type  error")


def test_keys_are_in_no_message() -> None:
    command = f"ipsec sa add 10 spi 4097 esp crypto-alg aes-gcm-128 crypto-key {'0a' * 16} salt 0x01020304 use-esn"
    reply = f"ipsec sa: parse error: 'crypto-key {'0a' * 16} salt 0x01020304'"
    refused = r"crypto-key \*\*\* salt \*\*\* use-esn was refused: .*parse error"
    with pytest.raises(CommandFailed, match=refused) as failed:
        check(command, reply)
    said = f"{failed.value!r} {failed.value.whole} {failed.value.argv} {failed.value.stderr}"
    assert "0a0a" not in said and "01020304" not in said


_READ = shipped("local-vpp")
_NODES = {**_READ.nodes, "DUT1": _READ.dut.model_copy(update={"vms": NfKind("qemu_vpp")})}
PLAN = plan_of(_READ.model_copy(update={"nodes": _NODES}), "VSC", cores=cpus(16))
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
    "show version": "vpp v26.10-rc0 built by root",
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
    guest = vpp(tmp_path / "absent")
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
    return instance.core_of(pid, began_s, ran or folder / "nf-1-1", folder, folder / "kept")


def test_three_are_kept_the_newest_ones(tmp_path: Path, ran: Path) -> None:
    for pid in range(10, 15):
        (ran / "core").touch()
        os.utime(ran / "core", (pid, pid))
        assert core_said(tmp_path, pid) == f"core file {tmp_path}/kept/nf-1-1.{pid}.core, 0 MB"
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
        vpp = instance.VppInstance("VPP of nf-1-1", startup, lock, lambda _: ("sleep", "60"))
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
