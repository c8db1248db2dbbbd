"""Whose processes a supervisor ends: neither those of its own namespace, nor of one that has another number now."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

from resources.libraries.python import supervisor
from resources.libraries.python.drivers.host.programs.waiting import wait_until


def _found(known: dict[Path, int]) -> set[int]:
    with ExitStack() as held:
        return supervisor._inside(*supervisor._existing(known, held))


def test_a_supervisor_never_ends_the_processes_around_it() -> None:
    own = Path("/proc/self/ns/net")
    assert _found({own: own.stat().st_ino}) == set()
    assert _found({own: 1, Path("/run/netns/of-no-run"): 2}) == set()


def test_processes_of_a_control_group_are_those_of_its_groups_too(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with subprocess.Popen(["sleep", "1000"]) as one, subprocess.Popen(["sleep", "1000"]) as other:
        for folder, process in ((tmp_path, one), (inside, other)):
            (folder / "cgroup.procs").write_text(f"{process.pid}\n", encoding="ascii")
        try:
            assert _found({tmp_path: tmp_path.stat().st_ino}) == {one.pid, other.pid}
            assert _found({tmp_path: 1}) == set()
        finally:
            one.kill()
            other.kill()
    assert _found({tmp_path: tmp_path.stat().st_ino}) == set(), "they have ended"


def test_a_script_does_not_go_on_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    script = ["sh", "-c", f"echo $$ >{tmp_path}/pid; for i in 1 2 3 4 5 6; do sleep 10; done"]
    with subprocess.Popen(supervisor.supervised(script), stdin=subprocess.PIPE) as process:
        noted = tmp_path / "pid"
        wait_until("the script", lambda: "" if noted.exists() and noted.read_text() else "not there", 30.0)
        process.kill()
    pid = int(noted.read_text(encoding="ascii"))
    wait_until("its end", lambda: "runs" if is_alive(pid) else "", 30.0)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and bool(Path(f"/proc/{pid}/cmdline").read_bytes())
