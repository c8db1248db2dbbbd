"""A program enters control groups before it becomes what is limited there."""

import os
import subprocess
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cgroups import cgroup_exec


def test_it_enters_every_group_and_becomes_the_program(tmp_path: Path) -> None:
    doors = [tmp_path / "cpu", tmp_path / "memory"]
    done = subprocess.run(
        cgroup_exec.entering(doors, ["/bin/sh", "-c", "echo $$"]),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert {door.read_text(encoding="ascii") for door in doors} == {done.stdout.strip()}
    assert cgroup_exec.entering([], ["true"]) == ["true"]


@pytest.mark.parametrize(
    ("before", "of_group", "after"), [({1}, {0, 1}, {1}), ({0, 1}, {0}, {0}), ({1}, {0}, None)], ids=str
)
def test_cpus_that_a_kernel_forgets_are_set_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: set[int], of_group: set[int], after: set[int] | None
) -> None:
    """Linux before 6.2: whoever enters a group may run on all of the group's CPUs."""
    answers = iter([before, of_group])
    told: list[set[int]] = []
    became: list[str] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: next(answers))
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: told.append(cpus))
    monkeypatch.setattr(os, "execvp", lambda program, _: became.append(program))
    cgroup_exec.main([str(tmp_path / "door"), "--", "program"])
    assert told == ([] if after is None else [after])
    assert became == ["program"]


def test_a_container_is_entered_after_the_groups_and_before_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Doors are files of the machine, which are not to be seen inside; the program is one of the container."""
    steps: list[str] = []
    door = tmp_path / "door"
    monkeypatch.setattr(cgroup_exec, "_join", lambda pid: steps.append(f"join {pid}, door {door.exists()}"))
    monkeypatch.setattr(os, "execvp", lambda program, words: steps.append(" ".join([program, *words[1:]])))
    argv = cgroup_exec.entering([door], ["program", "--container", "7"], 42)
    cgroup_exec.main(argv[argv.index(str(door)) :])
    assert steps == ["join 42, door True", "program --container 7"]


def test_a_container_that_has_ended_is_named() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    with pytest.raises(SystemExit, match=f"the container has ended: process {gone.pid}"):
        cgroup_exec._join(gone.pid)
