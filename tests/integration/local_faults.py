"""What tests break on this machine: parts of the cell that a run has deployed."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.containers.container_cleanup import Contained, call
from resources.libraries.python.drivers.host.programs.waiting import wait_until

Fault = Callable[[], None]
_BY_CONTROLLER = Path("/sys/fs/cgroup/memory")
"""Of control groups of version 1."""
TINY = (_BY_CONTROLLER if _BY_CONTROLLER.is_dir() else _BY_CONTROLLER.parent) / "tests-tiny"
"""A control group without memory."""
OWNER = Path("/run/csit-density/owner.json")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=600)


def record() -> dict[str, Any]:
    """The machine's record of what the run has made."""
    found: dict[str, Any] = json.loads(OWNER.read_text(encoding="utf-8"))
    return found


def pids_of(program: str) -> list[int]:
    """Processes of the run that run a program now: the record may have seen one between fork and exec."""
    running = {
        worker["pid"]: Path(f"/proc/{worker['pid']}/cmdline").read_bytes().decode() for worker in record()["workers"]
    }
    found = [pid for pid, command in running.items() if program in command]
    assert found, running
    return found


def generator_gets(number: signal.Signals) -> None:
    for pid in pids_of("drivers.generator"):
        os.kill(pid, number)


def kill(pid: int) -> None:
    """Kill a process and wait for its end, which for one with much memory takes a while."""
    os.kill(pid, signal.SIGKILL)

    def runs() -> str:
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
        except (FileNotFoundError, ProcessLookupError):  # its parent has waited for it
            return ""
        return "" if ") Z " in status else "it is there"

    wait_until("its end", runs, 30.0)


def pid_of(program: str) -> int:
    """One of the run's processes."""
    return pids_of(program)[0]


def bridge_is_deleted() -> None:
    ip("-n", "csit-vswitch", "link", "del", "csb1x1")


def generator_is_killed() -> None:
    generator_gets(signal.SIGKILL)


def loses_port(node: str, port: str) -> Fault:
    return lambda: ip("-n", f"csit-{node}", "link", "del", port)


nf_loses_its_port = loses_port("nf-1-1", "csn1x1i1")


def link_goes_down() -> None:
    ip("-n", "csit-vswitch", "link", "set", "csv1p1", "down")


def generator_is_stopped() -> None:
    generator_gets(signal.SIGSTOP)


def generator_has_no_memory() -> None:
    """The kernel kills it as soon as it needs another page."""
    TINY.mkdir(exist_ok=True)
    (TINY / ("memory.limit_in_bytes" if _BY_CONTROLLER.is_dir() else "memory.max")).write_text("4096", encoding="ascii")
    for pid in pids_of("drivers.generator"):
        (TINY / "cgroup.procs").write_text(str(pid), encoding="ascii")


def killed(program: str) -> Fault:
    return lambda: kill(pid_of(program))


def stopped(program: str) -> Fault:
    return lambda: os.kill(pid_of(program), signal.SIGSTOP)


def container_is_killed() -> None:
    """Its first process, with which it ends."""
    kill(first_process())


def container_is_stopped() -> None:
    os.kill(first_process(), signal.SIGSTOP)


def container_is_paused() -> None:
    """As its administrator does it."""
    (row,) = record()["containers"]
    contained = Contained.model_validate(row)
    call(contained.engine, [*contained.engine.command, "pause", contained.name])


def groups() -> list[Path]:
    """Control groups of containers that the run has on the machine's record."""
    return [Path(folder) for folder in record()["groups"]]


def first_process() -> int:
    """Of the only container."""
    pids = {int(word) for folder in groups() for word in (folder / "cgroup.procs").read_text(encoding="ascii").split()}
    (pid,) = (pid for pid in pids if Path(f"/proc/{pid}/comm").read_text(encoding="ascii") == "sleep\n")
    return pid
