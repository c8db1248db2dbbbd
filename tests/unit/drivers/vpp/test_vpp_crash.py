"""What a VPP that crashes leaves: a core file, found by what the kernel says and kept, and shared memory."""

import os
import signal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vpp import instance
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, IdleBehaviour, Startup, place
from resources.libraries.python.drivers.vpp.instance import VppInstance, core_of


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    folder = tmp_path / "nf-1-1"
    folder.mkdir()
    return folder


def kernel(folder: Path, pattern: str, uses_pid: str = "0") -> Path:
    (folder / "core_pattern").write_text(f"{pattern}\n")
    (folder / "core_uses_pid").write_text(f"{uses_pid}\n")
    return folder


def test_one_that_lies_where_the_program_ran_is_kept(tmp_path: Path, ran: Path) -> None:
    (ran / "core").write_bytes(b"x" * 4096)
    kept = tmp_path / "kept"
    for _ in ("found", "asked for again"):
        said = core_of(12, 0.0, ran, kernel(tmp_path, "core"), kept)
        assert said == f"core file {kept}/nf-1-1.12.core, 0 MB"
    assert not (ran / "core").exists()


def test_three_are_kept_the_newest_ones(tmp_path: Path, ran: Path) -> None:
    kept = tmp_path / "kept"
    for pid in range(10, 15):
        core = ran / "core"
        core.touch()
        os.utime(core, (pid, pid))
        core_of(pid, 0.0, ran, kernel(tmp_path, "core"), kept)
    assert {path.name for path in kept.iterdir()} == {f"nf-1-1.{pid}.core" for pid in (12, 13, 14)}


def test_its_holes_take_no_space_where_it_is_kept(tmp_path: Path) -> None:
    """The folder of a run is in memory, that of core files on a disk."""
    with TemporaryDirectory(dir="/dev/shm") as memory:
        with (Path(memory) / "core").open("wb") as core:
            core.truncate(1 << 30)
        core_of(12, 0.0, Path(memory), kernel(tmp_path, "core"), tmp_path / "kept")
    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.stat().st_size == 1 << 30
    assert kept.stat().st_blocks * 512 < 1 << 20


def test_with_the_number_of_the_process(tmp_path: Path, ran: Path) -> None:
    (ran / "core.12").touch()
    assert core_of(13, 0.0, ran, kernel(tmp_path, "core", "1"), tmp_path / "kept") == ""
    assert "nf-1-1.12.core" in core_of(12, 0.0, ran, kernel(tmp_path, "core", "1"), tmp_path / "kept")


def test_somewhere_else_with_program_and_time_it_stays(tmp_path: Path, ran: Path) -> None:
    cores = tmp_path / "cores"
    cores.mkdir()
    core = cores / "vpp_main.12.1700000000"
    core.touch()
    said = core_of(12, 0.0, ran, kernel(tmp_path, f"{cores}/%e.%p.%t"), tmp_path / "kept")
    assert said == f"core file {core}, 0 MB"
    assert core.exists()


def test_an_older_one_is_of_another_process(tmp_path: Path, ran: Path) -> None:
    core = ran / "core"
    core.touch()
    os.utime(core, (100.0, 100.0))
    assert core_of(12, 200.0, ran, kernel(tmp_path, "core"), tmp_path / "kept") == ""


def test_a_program_that_takes_them(tmp_path: Path, ran: Path) -> None:
    pattern = "|/usr/lib/systemd/systemd-coredump %P %u"
    said = core_of(12, 0.0, ran, kernel(tmp_path, pattern), tmp_path / "kept")
    assert "went to /usr/lib/systemd/systemd-coredump" in said


def test_shared_memory_of_one_that_was_killed_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    startup = Startup(
        name="csit-nf-1-1",
        folder=tmp_path / "nf-1-1",
        placement=place(min(os.sched_getaffinity(0)), ()),
        heap_mb=512,
        buffers=1024,
        pages=HugePageChoice("4k", ""),
        waiting=IdleBehaviour("polling", 0),
        plugins=(),
    )
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
