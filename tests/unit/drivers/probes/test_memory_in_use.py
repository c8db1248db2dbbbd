"""Memory of network functions: of their control groups, or resident memory of their processes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup, Controllers
from resources.libraries.python.drivers.probes.sampler.host import HostSampler, available_bytes, memory_of
from resources.libraries.python.drivers.probes.sampler.tasks import Tasks

PAGE = os.sysconf("SC_PAGE_SIZE")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Two processes, and the memory of the machine."""
    write(tmp_path / "10" / "statm", "900 30 5 1 0 20 0\n")
    write(tmp_path / "11" / "statm", "900 12 5 1 0 20 0\n")
    write(tmp_path / "meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\nHugePages_Total: 0\n")
    write(tmp_path / "stat", "cpu 1 1 1 1 1 1 1 1 0 0\n")
    return tmp_path


def group_of_version(version: int, root: Path) -> ControlGroup:
    """A group with 50 kB in use, 10 kB of which are file pages that have not been used lately."""
    name = "memory.current" if version == 2 else "memory.usage_in_bytes"
    write(root / "nf-1-1" / name, "50000\n")
    write(root / "nf-1-1" / "memory.stat", "anon 40000\ninactive_file 10000\n")
    return ControlGroup(Controllers(2 if version == 2 else 1, {"memory": root}), "nf-1-1")


def test_an_owner_without_a_group_has_the_resident_memory_of_its_processes(proc: Path) -> None:
    assert memory_of(Tasks((10, 11)), None, proc) == 42 * PAGE
    assert memory_of(Tasks((10, 999)), None, proc) == 30 * PAGE, "one has ended"
    assert memory_of(Tasks((999,)), None, proc) is None


@pytest.mark.parametrize("version", [1, 2])
def test_an_owner_with_a_group_has_that_of_the_group(proc: Path, version: int) -> None:
    group = group_of_version(version, proc / "groups")
    assert memory_of(Tasks((10,)), group, proc) == 40_000
    unreadable = ControlGroup(Controllers(2, {"memory": proc / "none"}), "nf-1-1")
    assert memory_of(Tasks((10,)), unreadable, proc) == 30 * PAGE


def test_the_memory_of_threads_of_the_kernel_is_unknown(proc: Path) -> None:
    assert memory_of(Tasks(helpers=(20,)), group_of_version(2, proc / "groups"), proc) is None


def test_a_sample_has_the_memory_of_owners_and_what_is_left_on_the_machine(proc: Path) -> None:
    memory: Callable[[], dict[str, int]] = lambda: {"nf-1-1": 7}  # noqa: E731
    found = HostSampler({0}, dict, root=proc, memory=memory).read()
    assert (found.memory_bytes, found.available_bytes) == ({"nf-1-1": 7}, 40 * 1024)
    assert available_bytes(proc / "none") is None
