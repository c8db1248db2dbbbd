"""Scripts of users end with the process that started them when that is killed, with all that they have started."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cgroups.cgroup_tree import end
from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, discover
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.paths import PROJECT

pytestmark = [pytest.mark.parallel, pytest.mark.root]
WITHIN_S = 30.0
SCRIPT = "setsid sh -c 'sleep 1000; true' & sleep 1000 & echo started; wait"
"""One of its processes leaves group and session."""
IN_A_NAMESPACE = f"""
supervisor = Supervisor()
script = subprocess.Popen(["unshare", "--net", "sh", "-c", {SCRIPT!r}], stdout=subprocess.PIPE)
script.stdout.readline()
supervisor.add(Path(f"/proc/{{script.pid}}/ns/net"))
"""
OUTSIDE = f"/proc/{os.getpid()}/ns/net"
LEAVES_ITS_NAMESPACE = f"nsenter --net={OUTSIDE} setsid sh -c 'sleep 1000 & sleep 1000' & echo started; wait"
IN_A_GROUP = f"""
supervisor = Supervisor()
program = ["unshare", "--net", "sh", "-c", {LEAVES_ITS_NAMESPACE!r}]
script = subprocess.Popen(entering([folder / "cgroup.procs" for folder in GROUP], program), stdout=subprocess.PIPE)
script.stdout.readline()
for place in (Path(f"/proc/{{script.pid}}/ns/net"), *GROUP):
    supervisor.add(place)
"""
AS_A_CHILD = f"""
script = subprocess.Popen(supervised(["sh", "-c", {SCRIPT!r}]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
script.stdout.readline()
"""


def marked(folder: Path, *, but: int = 0) -> list[int]:
    """Processes that a test has started, by a variable of their environment."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdecimal() and f"STARTED_BY={folder}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return [pid for pid in found if pid != but]


@contextmanager
def parent(folder: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has started a script, and waits."""
    head = "import subprocess, sys\nfrom pathlib import Path\n"
    head += "from resources.libraries.python.drivers.host.cgroups.cgroup_exec import entering\n"
    head += "from resources.libraries.python.supervisor import Supervisor, supervised\n"
    argv = [sys.executable, "-c", f"{head}{code}\nprint('ready', flush=True)\nsys.stdin.read()"]
    mark, pipe = {**os.environ, "STARTED_BY": str(folder)}, subprocess.PIPE
    made = subprocess.Popen(argv, cwd=PROJECT, env=mark, stdin=pipe, stdout=pipe, text=True)
    try:
        assert made.stdout is not None
        assert made.stdout.readline() == "ready\n"
        yield made
    finally:
        made.kill()
        made.communicate()
        for pid in marked(folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [IN_A_NAMESPACE, AS_A_CHILD], ids=["in a namespace", "as a child"])
def test_after_kill_9_of_the_parent_nothing_of_its_script_runs(tmp_path: Path, code: str) -> None:
    with parent(tmp_path, code) as made:
        # Supervisor, script, and two that it starts.
        wait_until("four processes", lambda: "" if len(marked(tmp_path, but=made.pid)) >= 4 else "fewer", WITHIN_S)
        made.kill()
        made.wait()
        wait_until("end of the script", lambda: " ".join(map(str, marked(tmp_path))), WITHIN_S)


def test_a_process_that_left_its_namespace_is_found_by_its_control_group(tmp_path: Path) -> None:
    group = ControlGroup(discover(), f"supervised-{os.getpid()}")
    try:
        group.make()
        folders = ", ".join(f"Path({str(folder)!r})" for folder in group.folders)
        with parent(tmp_path, f"GROUP = ({folders},)\n{IN_A_GROUP}") as made:
            outside = Path(OUTSIDE).stat().st_ino

            def missing() -> str:
                left = [pid for pid in group.processes() if Path(f"/proc/{pid}/ns/net").stat().st_ino == outside]
                return "" if len(left) >= 2 else f"{len(left)} of 2"

            wait_until("processes outside of the namespace", missing, WITHIN_S)
            made.kill()
            made.wait()
            wait_until("end of the script", lambda: " ".join(map(str, marked(tmp_path))), WITHIN_S)
    finally:
        end(group.folders, 0)
        group.remove()


def test_a_supervisor_that_is_closed_has_ended_the_script(tmp_path: Path) -> None:
    with parent(tmp_path, f"{IN_A_NAMESPACE}supervisor.close()\nscript.wait()\n") as made:
        assert marked(tmp_path, but=made.pid) == []
