"""Programs of this machine: their output, their end, also of stopped ones, waits for them, and endless answers."""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.dialogue import error_of, plain
from resources.libraries.python.drivers.functions.monitor import suricata
from resources.libraries.python.drivers.functions.vm.application_guests import GuestConnections
from resources.libraries.python.drivers.functions.vm.guest import Console
from resources.libraries.python.drivers.functions.vm.init import READY
from resources.libraries.python.drivers.functions.vm.qemu import Monitor
from resources.libraries.python.drivers.host.cgroups import cgroup_tree
from resources.libraries.python.drivers.host.ownership import processes
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.processes import (
    Process,
    end_group,
    end_of,
    exit_status,
    is_stopped,
    process,
)
from resources.libraries.python.drivers.host.programs import program_output
from resources.libraries.python.drivers.host.programs.daemons import NO_ENTRY, Daemon
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions, problems_at_an_end
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.drivers.host.programs.waiting import next_item, wait_for_event, wait_until
from resources.libraries.python.drivers.host.sockets import answers
from resources.libraries.python.drivers.vpp.cli import CommandLine
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.core_map import CoreMap
from tests.builders import raising
from tests.unit.drivers.vpp.vpp_stand_in import OPTIONS

NEVER_S = 60.0
"""A deadline that nothing here comes near."""
MASTER = """
import os, signal, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
def end(*_):
    child.terminate()
    child.wait()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print(child.pid, flush=True)
while True:
    signal.pause()
"""
"""As nginx: one process that ends when those it has started have ended."""
HOLDS_MEMORY = """
import threading
held = b"x" * 50_000_000
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(flush=True)
threading.Event().wait()
"""


def until_gone(program: Process) -> None:
    wait_until("its end", lambda: "it is there" if program.alive else "", NEVER_S, pause_s=0.005)


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until("its stop", lambda: "" if is_stopped(pid) else "it runs", NEVER_S, pause_s=0.005)


def started(argv: Sequence[str], folder: Path, machine: MachineLock) -> Daemon:
    """As drivers do: from a thread that ends."""
    daemon = Daemon(argv[0], argv, folder / "log")
    thread = Thread(target=daemon.start, args=(os.sched_getaffinity(0), machine))
    thread.start()
    thread.join()
    return daemon


def master(folder: Path, machine: MachineLock) -> tuple[Daemon, Process]:
    """One that has started another process, and that process."""
    daemon = started([sys.executable, "-c", MASTER], folder, machine)
    daemon.wait_for("its child", lambda: "" if daemon.output().endswith("\n") else "nothing", NEVER_S)
    return daemon, process(int(daemon.output()))


@pytest.mark.parametrize(("argv", "line"), [(("sleep", "600"), b""), (("cat",), b"\n")])
def test_a_stopped_program_is_continued_and_ends_as_asked(tmp_path: Path, argv: tuple[str, ...], line: bytes) -> None:
    with MachineLock(tmp_path) as machine:
        daemon = started(argv, tmp_path, machine)
        running = process(daemon.pid)
        stop(running.pid)
        assert "is stopped" in daemon.problem()
        daemon.request_end(line)
        until_gone(running)
        daemon.wait_end(NEVER_S)
        assert not machine.leftovers()


def test_what_a_program_has_started_is_continued_with_it(tmp_path: Path) -> None:
    with MachineLock(tmp_path) as machine:
        daemon, child = master(tmp_path, machine)
        stop(child.pid)
        begin = time.monotonic()
        daemon.request_end()
        daemon.wait_end(NEVER_S)
        assert time.monotonic() - begin < NEVER_S
    assert not child.alive


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_was_killed_has_ended_at_once(number: signal.Signals) -> None:
    """Although its memory is still to be freed, which takes some milliseconds."""
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", HOLDS_MEMORY], stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            running.stdout.readline()
            assert exit_status(running) is None
            running.send_signal(number)
            assert exit_status(running) == -number


def test_a_program_that_ends_while_it_is_asked_is_the_reason(tmp_path: Path) -> None:
    with MachineLock(tmp_path) as machine:
        daemon = started(["sleep", "600"], tmp_path, machine)

        def asked() -> str:
            os.kill(daemon.pid, signal.SIGKILL)
            raise CsitError("connection refused")

        with pytest.raises(CsitError, match=r"^sleep was killed by SIGKILL; it said last: nothing$"):
            daemon.wait_for("an answer", asked, NEVER_S)
        daemon.wait_end(NEVER_S)


@pytest.mark.parametrize("seen", ["its end", "its end unseen", "the record of a killed run"])
def test_what_a_killed_program_has_started_is_killed_also_if_both_are_stopped(tmp_path: Path, seen: str) -> None:
    """Whether or not its end was seen before, after which its pid may be another process's."""
    with MachineLock(tmp_path) as machine:
        daemon, child = master(tmp_path, machine)
        stop(child.pid)
        if seen.startswith("the record"):
            stop(daemon.pid)
            assert process(daemon.pid).kill()
            until_gone(child)
        else:
            os.kill(daemon.pid, signal.SIGKILL)
        if seen == "its end":
            wait_until("its end", lambda: "" if daemon.problem() else "it runs", NEVER_S, pause_s=0.005)
        daemon.wait_end(NEVER_S)
    until_gone(child)


def test_a_process_that_does_not_end_is_killed_with_its_group() -> None:
    script = "trap '' TERM; sleep 600 & echo $!; wait; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, process_group=0) as running:
        assert running.stdout is not None
        child = process(int(running.stdout.readline()))
        running.terminate()
        assert not end_group(running, 0.05)
        assert running.returncode == -signal.SIGKILL
        until_gone(child)


def test_one_that_is_killed_after_it_was_looked_at_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "600"]) as running:
        really_ending = processes.is_ending
        looks = []

        def is_ending(pid: int) -> bool:
            looks.append(really_ending(pid))
            if len(looks) == 1:
                running.kill()
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            return looks[-1]

        monkeypatch.setattr(processes, "is_ending", is_ending)
        assert end_of(running) == "was killed by SIGKILL"
        assert looks[0] is False


@pytest.mark.parametrize(
    ("file", "frozen", "thawed"), [("freezer.state", "FROZEN\n", "THAWED"), ("cgroup.freeze", "1\n", "0")]
)
def test_frozen_groups_are_thawed_to_end_them(tmp_path: Path, file: str, frozen: str, thawed: str) -> None:
    """Of version 1, where a frozen process cannot even be killed, and of version 2."""
    group, other = tmp_path / "frozen", tmp_path / "other"
    for folder in (group, other):
        folder.mkdir()
    (group / file).write_text(frozen, encoding="ascii")
    assert cgroup_tree.frozen([other, group])
    assert not cgroup_tree.frozen([other, tmp_path / "gone"])
    assert cgroup_tree.end([group], 0) == ()
    assert (group / file).read_text(encoding="ascii") == thawed
    assert not cgroup_tree.frozen([group])
    assert list(other.iterdir()) == []


@pytest.fixture
def companions(tmp_path: Path) -> Iterator[Companions]:
    def run_inside(_: str, work: Callable[[], None]) -> None:
        """As a fabric does: in a thread that ends."""
        thread = Thread(target=work)
        thread.start()
        thread.join()

    cores = cast("CoreMap", SimpleNamespace(cpus=lambda _: tuple(os.sched_getaffinity(0))))
    fabric: Any = SimpleNamespace(run_inside=run_inside)
    groups: Any = SimpleNamespace(entry=lambda _: NO_ENTRY, allows_real_time=lambda _: False)
    with MachineLock(tmp_path) as machine:
        found = Companions("wireguard", cores, fabric, machine, groups)
        yield found
        found.stop()


def test_one_that_hangs_up_and_ends_later_is_named(companions: Companions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.libraries.python.drivers.host.programs.namespace_programs._ENDING_S", 60.0)
    companions.start("nf-1-1", ["sh", "-c", "sleep 0.3; exit 7"])
    companions.start("nf-1-2", ["sleep", "600"])
    assert problems_at_an_end([companions]) == ("wireguard of nf-1-1 ended with 7; it said last: nothing",)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_output_input_folder_and_environment(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ.get('A'), 'HOME' in os.environ)"
    done = completed(python(code), 20, stdin="key", folder=tmp_path, environment={"A": "b"})
    assert done.stdout.split() == ["key", str(tmp_path), "b", "False"]
    assert completed(["cat"], 20, stdin=b"\xff\n").stdout == "\ufffd\n"
    assert completed(["cat"], 20).stdout == ""
    assert len(completed(["cat"], 20, stdin=b"x" * (1 << 20)).stdout) == 1 << 20
    assert completed(["true"], 20, stdin=b"x" * (1 << 20)).returncode == 0, "input that is not read is no error"


def test_status_and_the_end_of_what_a_failing_program_printed() -> None:
    failing = python("import sys; print('out'); sys.exit('a frame of the traceback\\n' * 9000 + 'why')")
    with pytest.raises(CommandFailed, match=r"(?s)ended with 1: .*why$") as raised:
        completed(failing, 20)
    assert raised.value.status == 1 and raised.value.argv == tuple(failing)
    done = completed(failing, 20, check=False)
    assert (done.returncode, done.stdout) == (1, "out\n")
    assert done.stderr.endswith("a frame of the traceback\nwhy\n")
    received = error_of(plain(raised.value), "DUT1")
    assert isinstance(received, CommandFailed), "a node passes it on"
    assert received.stderr.endswith("a frame of the traceback\nwhy\n") and str(received).endswith("why")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_that_speaks_without_end_is_ended(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_output, "LARGEST_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(CsitError, match=r"was ended: it wrote more than 1 MB"):
        completed(["sh", "-c", f"exec cat /dev/zero >/dev/{stream}"], 600)


def test_deadline_and_missing_program() -> None:
    with pytest.raises(NotReady, match=r"sleep 30 not ready after 0\.1 s; last seen: still running"):
        completed(["sleep", "30"], 0.1)
    with pytest.raises(NotReady, match=r"^a certificate not ready"):
        completed(["sleep", "30"], 0.1, what="a certificate")
    with pytest.raises(CsitError, match=r"^/no/such/program cannot be run: No such file or directory$"):
        completed(["/no/such/program"], 20)


class _Handled(Exception):
    """Raised by the handler of a signal."""


def waits() -> list[tuple[Callable[[], object], Callable[[], object]]]:
    """Waits for an item or an event, each with what ends it."""
    queues: list[queue.Queue[int] | queue.SimpleQueue[int]] = [queue.Queue(), queue.SimpleQueue()]
    event = threading.Event()
    return [
        *((partial(next_item, each), partial(each.put, 7)) for each in queues),
        (partial(wait_for_event, event, 600.0), event.set),
    ]


@pytest.mark.parametrize(("wait", "end"), waits(), ids=["queue", "simple queue", "event"])
def test_a_signal_that_wakes_no_thread_is_handled(wait: Callable[[], object], end: Callable[[], object]) -> None:
    """One that the kernel gives to another thread wakes the main thread no more than one that came too early."""
    before = signal.signal(signal.SIGUSR1, raising(_Handled()))
    other = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    too_late = threading.Timer(30, end)
    try:
        too_late.start()
        with pytest.raises(_Handled):
            other.start()
            wait()
        assert too_late.is_alive(), "no item woke it"
    finally:
        too_late.cancel()
        signal.signal(signal.SIGUSR1, before)
    end()
    assert wait() in (7, True)
    assert not wait_for_event(threading.Event(), 0.01)


@pytest.mark.slow
def test_of_logs_that_grow_without_end_as_much_is_read_as_is_needed(tmp_path: Path) -> None:
    log = tmp_path / "endless.log"
    with log.open("wb") as file:
        file.write(f"{READY} after 1 s\n".encode())
        file.truncate(8 << 30)  # a hole: as a whole it would not fit into memory
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    console = Console(log)
    assert console.ready and console.tail().endswith("the end")
    assert Daemon("endless", ["true"], log).last_output().endswith("the end")
    console.expect_boot()
    assert not console.ready
    with log.open("ab") as file:
        file.write(READY.encode())
    assert console.ready


_EVENT = b'{"event":"RESET"}\n'
_GREETING = b'{"QMP":{"version":{"qemu":{"major":8,"minor":0,"micro":0},"package":""}}}\n'


@contextmanager
def speaking(path: Path, first: bytes, piece: bytes, pause_s: float) -> Iterator[None]:
    """Serve one connection that gets the same piece over and over."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            with suppress(OSError), server.accept()[0] as connection:
                connection.sendall(first)
                while True:
                    connection.sendall(piece)
                    time.sleep(pause_s)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(20.0)
        assert not thread.is_alive(), "its connection is still open"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_REPLY_BYTES", 1 << 20)
    monkeypatch.setattr(suricata, "_ANSWER_S", 0.5)


def _of_vpp(path: Path) -> object:
    with closing(CommandLine(path, 0.5)) as cli:
        return cli.ask("show version")


def _of_guest(path: Path) -> object:
    with closing(GuestConnections("nf-1-1", path, 0.5)) as guest:
        return guest.ask("counts")


def _of_qemu(path: Path) -> object:
    with socket.socket(socket.AF_UNIX) as near:
        near.connect(str(path))
        return Monitor("nf-1-1", near, 0.5)


def _of_suricata(path: Path) -> object:
    return suricata.taken(path, "lan")


@pytest.mark.slow
@pytest.mark.parametrize("pause_s", [0.0, 0.0002])
@pytest.mark.parametrize(
    ("ask", "first", "piece"),
    [
        (_of_vpp, OPTIONS, b"x" * 1000),
        (_of_guest, b"", b"x\n" * 500),
        (_of_qemu, _GREETING, _EVENT),
        (_of_qemu, b"", b"x" * 1000),
        (_of_suricata, b"", b"{}}"),
    ],
)
@pytest.mark.usefixtures("soon")
def test_endless_answers_end(
    ask: Callable[[Path], object], first: bytes, piece: bytes, pause_s: float, tmp_path: Path
) -> None:
    with speaking(tmp_path / "socket", first, piece, pause_s), pytest.raises((CsitError, NotReady)):
        ask(tmp_path / "socket")


@pytest.mark.usefixtures("soon")
def test_an_answer_is_bounded_by_its_size() -> None:
    near, far = socket.socketpair()

    def send_all() -> None:
        with suppress(OSError):
            far.sendall(bytes(2 << 20))

    with near, far, pytest.raises(CsitError, match="more than 1 MB"):
        threading.Thread(target=send_all, daemon=True).start()
        answers.receive(near, "an answer", lambda _: False, 60.0)
