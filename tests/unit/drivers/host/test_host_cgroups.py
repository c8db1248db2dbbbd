"""Control groups of both versions, on trees of files as the kernel makes them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.host import kernel_files
from resources.libraries.python.drivers.host.cgroups import cgroup_exec, cgroup_tree, cgroups
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import folders_of
from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, Controllers, GroupLimits, discover
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.errors import CsitError, NotReady, Unsupported
from resources.libraries.python.model.measurements.counters import Throttling
from tests.builders import raising
from tests.unit.testbed.node.machine_trees import tree

FILES = {
    "cpu": {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "-1",
        "cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 250000000\n",
    },
    "cpuacct": {"cpuacct.usage": "2500000000"},
    "memory": {
        "memory.limit_in_bytes": "9223372036854771712",
        "memory.usage_in_bytes": "70000",
        "memory.stat": "cache 30000\ninactive_file 20000\ntotal_inactive_file 25000\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    },
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
}
"""What the kernel puts into a new group of version 1."""
UNIFIED = {
    "cpu.max": "max 100000",
    "cpu.stat": "usage_usec 1250000\nuser_usec 1000000\nnr_periods 9\nnr_throttled 4\nthrottled_usec 250000\n",
    "memory.max": "max",
    "memory.current": "90000",
    "memory.stat": "anon 1\ninactive_file 40000\n",
    "memory.events": "low 0\noom 2\noom_kill 1\n",
    "cpuset.cpus": "",
}


@pytest.fixture(autouse=True)
def _kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is made in a hierarchy has its files at once, and is removed with them."""
    mkdir, rmdir = Path.mkdir, Path.rmdir

    def make(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        mkdir(self, mode, parents, exist_ok)
        if self.name.startswith("csit-"):
            of_version_1 = [files for row, files in FILES.items() if row in self.parent.name.split(",")]
            for files in ({"cgroup.procs": ""}, *(of_version_1 or [UNIFIED])):
                for name, text in files.items():
                    (self / name).write_text(text)

    def remove(self: Path) -> None:
        for file in self.iterdir() if self.exists() else ():
            file.unlink()
        rmdir(self)

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Path, "rmdir", remove)


def first(root: Path, *, together: bool = False) -> Controllers:
    """A machine with version 1, and a second hierarchy without controllers as systemd mounts it."""
    names = ["cpu,cpuacct", "memory", "cpuset"] if together else [*FILES]
    rows = [f"cgroup {root}/{name} cgroup rw,relatime,{name} 0 0" for name in names]
    mounts = "\n".join(["proc /proc proc rw 0 0", f"cgroup2 {root}/unified cgroup2 rw 0 0", *rows])
    tree(root, {"cpuset/cpuset.cpus": "0-1", "cpuset/cpuset.mems": "0", "unified/cgroup.controllers": ""})
    tree(root, {"mounts": mounts, **{f"{name}/tasks": "" for name in names}})
    return discover(root / "mounts")


def second(root: Path, controllers: str = "cpuset cpu io memory pids") -> Controllers:
    """A machine with version 2."""
    mounts = f"cgroup2 {root} cgroup2 rw,nosuid 0 0"
    tree(root, {"cgroup.controllers": controllers, "cgroup.subtree_control": "memory pids", "mounts": mounts})
    return discover(root / "mounts")


def test_versions_are_found_with_the_folders_of_a_group(tmp_path: Path) -> None:
    """Version 1 beside a second hierarchy without controllers, and where controllers are mounted together."""
    found = first(tmp_path / "1")
    assert (found.version, found.roots) == (1, {name: tmp_path / "1" / name for name in FILES})
    folders = first(tmp_path / "together", together=True).folders("csit-a-1")
    assert sorted(path.parent.name for path in folders) == ["cpu,cpuacct", "cpuset", "memory"]
    found = second(tmp_path / "2")
    assert (found.version, found.folders("csit-a-1")) == (2, (tmp_path / "2" / "csit-a-1",))
    with pytest.raises(Unsupported, match=r"cpu, cpuacct, memory is mounted; in a container, start it with"):
        second(tmp_path / "none", controllers="pids")


def test_limits_of_version_1_are_quota_memory_and_cpus(tmp_path: Path) -> None:
    group = ControlGroup(first(tmp_path), "csit-edge-1")
    group.make(GroupLimits(0.25, 64 << 20, frozenset({1})))
    said = {name: (tmp_path / row / "csit-edge-1" / name).read_text() for row in FILES for name in FILES[row]}
    assert (said["cpu.cfs_quota_us"], said["cpu.cfs_period_us"]) == ("25000", "100000")
    assert (said["memory.limit_in_bytes"], said["cpuset.cpus"]) == (str(64 << 20), "1")
    assert said["cpuset.mems"] == "0\n", "a group of version 1 takes no process before it has memory nodes"


def test_version_2_hands_missing_controllers_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed, write = "cgroup.subtree_control", kernel_files.write
    writes = Mock(side_effect=lambda path, value: path.name == handed or write(path, value))
    monkeypatch.setattr(cgroups, "write", writes)
    ControlGroup(second(tmp_path), "csit-edge-1").make(GroupLimits(2.0, 1 << 20, frozenset({0, 3})))
    assert [(call.args[0].name, call.args[1]) for call in writes.call_args_list] == [
        (handed, "+cpu"), (handed, "+cpuset"), ("cpu.max", "200000 100000"), ("memory.max", str(1 << 20)),
        ("cpuset.cpus", "0,3"),
    ]  # fmt: skip


@pytest.mark.parametrize(("machine", "cpu_s", "killed"), [(first, 2.5, 3), (second, 1.25, 1)])
def test_use_is_cpu_seconds_memory_without_unused_file_pages_and_how_long_a_quota_throttled(
    tmp_path: Path, machine: Callable[[Path], Controllers], cpu_s: float, killed: int
) -> None:
    group = ControlGroup(machine(tmp_path), "csit-edge-1")
    assert (group.cpu_s(), group.memory_bytes(), group.killed_for_memory()) == (None, None, 0)
    assert group.throttling() is None
    group.make(GroupLimits(0.5))
    assert (group.cpu_s(), group.memory_bytes(), group.killed_for_memory()) == (cpu_s, 50_000, killed)
    assert group.throttling() == Throttling(periods=9, throttled=4, still_s=0.25)
    assert Throttling(9, 4, 0.25) - Throttling(5, 1, 0.125) == Throttling(4, 3, 0.125)


@pytest.mark.parametrize(("machine", "doors"), [(first, {"cpu", "cpuacct"}), (second, {""})])
def test_threads_of_the_kernel_have_their_cpu_time_from_a_group_and_nothing_else(
    tmp_path: Path, machine: Callable[[Path], Controllers], doors: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, mine = machine(tmp_path), os.getpid()
    group = ControlGroup(found, "csit-nf-1-1")
    group.make(GroupLimits(0.5))
    group.take_in_threads([mine])
    entered = {folder for folder in group.folders if (folder / "cgroup.procs").read_text() == str(mine)}
    assert entered == {tmp_path / door / "csit-nf-1-1" for door in doors}
    for folder in group.folders:
        (folder.parent / "cgroup.procs").write_text("")
    monkeypatch.setattr(cgroup_tree, "_is_of_the_kernel", lambda pid: pid == mine)
    cgroup_tree.let_threads_go(group.folders)
    assert {folder for folder in entered if (folder.parent / "cgroup.procs").read_text() == str(mine)} == entered


@pytest.mark.parametrize("machine", [first, second])
def test_a_foreign_group_is_kept_and_ours_goes_whole(tmp_path: Path, machine: Callable[[Path], Controllers]) -> None:
    found = machine(tmp_path)
    group = ControlGroup(found, "csit-edge-1")
    group.make()
    with pytest.raises(CsitError, match=r"there is a control group .*csit-edge-1 already"):
        ControlGroup(found, "csit-edge-1").make()
    group.remove()
    group.remove()
    assert not list(tmp_path.rglob("csit-*"))


@given(cpus=st.floats(min_value=0.001, max_value=64))
def test_any_share_becomes_a_quota_that_the_kernel_takes(cpus: float) -> None:
    quota, period = cgroups.quota_us(cpus)
    assert quota >= 1_000
    assert 1_000 <= period <= 1_000_000
    assert abs(quota / period - cpus) <= 1 / period + 1e-9
    with pytest.raises(Unsupported, match=r"0\.0005 CPUs cannot be had"):
        cgroups.quota_us(0.0005)


SLEEPER = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"


def test_a_group_that_cannot_go_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_tree, "end", raising(NotReady("the end of killed processes", 5.0, "processes 17")))
    (tmp_path / "empty").mkdir()
    (tmp_path / "used" / "file").mkdir(parents=True)
    with pytest.raises(CsitError):
        cgroup_tree.end_and_remove([tmp_path / "used", tmp_path / "empty"])
    assert [each.name for each in tmp_path.iterdir()] == ["used"]


@pytest.mark.parametrize(
    ("program", "status", "grace_s", "stopped"),
    [(SLEEPER, signal.SIGTERM, 60.0, False), (SLEEPER, signal.SIGTERM, 60.0, True),
     (STUBBORN, signal.SIGKILL, 0.2, False)],
)  # fmt: skip
def test_processes_are_asked_to_end_and_killed_when_they_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, program: str, status: int, grace_s: float, stopped: bool
) -> None:
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        if stopped:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        there = lambda _: (process.pid,) if process.poll() is None else ()  # noqa: E731
        monkeypatch.setattr(cgroup_tree, "processes_of", there)
        killed = cgroup_tree.end([tmp_path], grace_s)
    assert process.returncode == -status
    assert killed == ((process.pid,) if status == signal.SIGKILL else ())


def test_the_groups_of_a_process_are_found_in_both_versions(tmp_path: Path) -> None:
    """As /proc/PID/cgroup and the mounts say; one mounted with another, one not mounted."""
    top, groups = tmp_path / "cgroup", ("cpu,cpuacct/libpod-1", "cpuset/libpod-1", "unified/libpod-1")
    mounts = f"cgroup {top}/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\ncgroup {top}/cpuset cgroup rw,cpuset 0 0\n"
    its = "4:cpu,cpuacct:/libpod-1\n3:cpuset:/libpod-1\n2:pids:/libpod-1\n1:name=systemd:/x\n0::/libpod-1"
    tree(top, {f"{name}/cgroup.procs": "" for name in (*groups, "cpuset/other")})
    tree(tmp_path, {"self/mounts": f"{mounts}cgroup2 {top}/unified cgroup2 rw 0 0", "7/cgroup": its})
    assert folders_of(7, tmp_path) == dict(zip(("cpu,cpuacct", "cpuset", ""), map(top.joinpath, groups), strict=True))
    with pytest.raises(CsitError, match="control groups of process 8 cannot be read"):
        folders_of(8, tmp_path)


def test_a_program_enters_every_group_before_it_becomes_what_is_limited_there(tmp_path: Path) -> None:
    doors = [tmp_path / "cpu", tmp_path / "memory"]
    done = completed(cgroup_exec.entering(doors, ["/bin/sh", "-c", "echo $$"]), 300)
    assert {door.read_text(encoding="ascii") for door in doors} == {done.stdout.strip()}
    assert cgroup_exec.entering([], ["true"]) == ["true"]
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    with pytest.raises(SystemExit, match=f"the container has ended: process {gone.pid}"):
        cgroup_exec._join(gone.pid)


@pytest.mark.parametrize(
    ("before", "of_group", "told"), [({1}, {0, 1}, [{1}]), ({0, 1}, {0}, [{0}]), ({1}, {0}, [])], ids=str
)
def test_cpus_that_a_kernel_forgets_are_set_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: set[int], of_group: set[int], told: list[set[int]]
) -> None:
    """Linux before 6.2: a process that enters a group may run on all of the group's CPUs."""
    calls = Mock(sched_getaffinity=Mock(side_effect=[before, of_group]))
    for name in ("sched_getaffinity", "sched_setaffinity", "execvp"):
        monkeypatch.setattr(os, name, getattr(calls, name))
    cgroup_exec.main([str(tmp_path / "door"), "--", "program"])
    assert [call.args[1] for call in calls.sched_setaffinity.call_args_list] == told
    assert [call.args[0] for call in calls.execvp.call_args_list] == ["program"]


def test_a_container_is_entered_between_groups_and_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Doors are files of the machine, which are not to be seen inside; the program is one of the container."""
    steps: list[str] = []
    door = tmp_path / "door"
    monkeypatch.setattr(cgroup_exec, "_join", lambda pid: steps.append(f"join {pid}, door {door.exists()}"))
    monkeypatch.setattr(os, "execvp", lambda program, words: steps.append(" ".join([program, *words[1:]])))
    argv = cgroup_exec.entering([door], ["program", "--container", "7"], 42)
    cgroup_exec.main(argv[argv.index(str(door)) :])
    assert steps == ["join 42, door True", "program --container 7"]
