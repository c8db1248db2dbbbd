"""The machine lock, in a directory of the test's own; removers of leftovers remove all that they can."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.containers import CONTAINERS, container_cleanup
from resources.libraries.python.drivers.containers.container_cleanup import Contained
from resources.libraries.python.drivers.containers.engine import Engine
from resources.libraries.python.drivers.functions.wireguard import driver as wireguard
from resources.libraries.python.drivers.generators.trex import driver as trex
from resources.libraries.python.drivers.host.cpu.memory import remove_files
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.nics import nic_driver
from resources.libraries.python.drivers.host.nics.handover import HandedOver
from resources.libraries.python.drivers.host.nics.nic_driver import USER_SPACE, Binding
from resources.libraries.python.drivers.host.ownership import ownership
from resources.libraries.python.drivers.host.ownership.cleanup_steps import remove_file, take_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.ownership_record import read_record
from resources.libraries.python.drivers.host.ownership.processes import process
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.vpp import SEGMENTS, instance
from resources.libraries.python.errors import CsitError, RunStopped
from resources.libraries.python.model.driver import Leftover
from resources.libraries.python.model.plan import Nic
from resources.libraries.python.paths import PROJECT
from tests.builders import raising
from tests.unit.drivers.host.fake_pci import GONE, FakePci
from tests.unit.testbed.node.machine_trees import tree

HOLDER = """
import os, sys, time
from pathlib import Path
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
with MachineLock(Path(sys.argv[1])) as machine:
    machine.claim_namespaces(["csit-never-made"])
    ready, go = os.pipe()
    worker = os.fork()
    if not worker:
        os.read(ready, 1)
        print("held", flush=True)
        time.sleep(60)
    machine.claim_process(worker)
    os.write(go, b"x")
    os.waitpid(worker, 0)
"""


@pytest.fixture(autouse=True)
def _no_namespaces_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "DIRECTORY", tmp_path / "netns")
    monkeypatch.setattr(namespaces, "remove", lambda name: namespaces.path_of(name).unlink())


def make_namespaces(*names: str) -> None:
    namespaces.DIRECTORY.mkdir()
    for name in names:
        namespaces.path_of(name).touch()


def test_a_second_holder_is_refused_and_claims_of_a_killed_one_outlive_it_but_not_the_lock(tmp_path: Path) -> None:
    """Nor does its forked worker hold the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)}, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(CsitError, match=rf"in use by pid {holder.pid} \(user \S+\) since \S+: \S*python"):
            MachineLock(tmp_path).__enter__()
        holder.kill()
    with MachineLock(tmp_path) as machine, pytest.raises(CsitError, match="left by an earlier run"):
        machine.claim_namespaces(["csit-never-made"])
    assert "csit-never-made" in json.loads((tmp_path / "owner.json").read_text())["namespaces"]
    with MachineLock(tmp_path) as machine:
        (said,) = machine.remove_leftovers()
        assert said.startswith("killed worker process")
        machine.claim_namespaces(["csit-never-made"])
        machine.release_namespaces(["csit-never-made"])
    assert [path.name for path in tmp_path.iterdir()] == ["lock"], "nothing is on record after a clean end"


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_all_users_can_read_the_record_and_only_the_owner_can_open_the_lock(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "run"
    before = os.umask(umask)
    try:
        with MachineLock(folder) as machine:
            machine.claim_namespaces(["csit-never-made"])
            paths = (folder, folder / "owner.json", folder / "lock")
            assert [oct(path.stat().st_mode & 0o7777) for path in paths] == ["0o755", "0o644", "0o600"]
    finally:
        os.umask(before)


def test_a_foreign_namespace_is_not_claimed_and_nothing_without_the_lock(tmp_path: Path) -> None:
    make_namespaces("csit-foo")
    with MachineLock(tmp_path) as machine, pytest.raises(CsitError, match="csit-foo already, not ours"):
        machine.claim_namespaces(["csit-bar", "csit-foo"])
    with pytest.raises(CsitError, match="not held"):
        MachineLock(tmp_path).claim_namespaces(["csit-a"])


@pytest.mark.parametrize("reused", [False, True])
def test_a_worker_that_outlived_its_run_is_killed_and_no_other_process(tmp_path: Path, *, reused: bool) -> None:
    worker = subprocess.Popen(["sleep", "60"])
    with MachineLock(tmp_path) as machine:
        machine.claim_process(worker.pid)
    record = json.loads((tmp_path / "owner.json").read_text())
    record["workers"][0]["start_ticks"] -= reused
    (tmp_path / "owner.json").write_text(json.dumps(record))
    with MachineLock(tmp_path) as machine:
        said = machine.remove_leftovers()
    assert [f"killed worker process {worker.pid}" in each for each in said] == [True] * (not reused)
    assert (worker.poll() is None) is reused
    worker.kill()
    assert worker.wait() == -signal.SIGKILL


def test_a_zombie_is_not_alive_and_needs_no_record(tmp_path: Path) -> None:
    """As a program that refuses its arguments: its owner reports what it said."""
    child = subprocess.Popen(["sleep", "60"])
    described = process(child.pid)
    assert described.alive
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not described.alive
    with MachineLock(tmp_path) as machine:
        machine.claim_process(child.pid)
        machine.release_process(child.pid)
        assert machine.leftovers() == []
    assert child.wait() == -signal.SIGKILL


DEAD = {"pid": 4194304, "start_ticks": 1, "command": "robot"}


@pytest.mark.parametrize(
    "record",
    ["no json", json.dumps({"owner": DEAD, "user": "me", "since": "2026-01-01T00:00:00+00:00", "rockets": ["a"]})],
)
def test_a_record_that_cannot_be_understood_is_an_error_with_its_path(tmp_path: Path, record: str) -> None:
    (tmp_path / "owner.json").write_text(record)
    with pytest.raises(CsitError, match=rf"{tmp_path}/owner\.json is no record of this program"):
        MachineLock(tmp_path).__enter__()


LIMIT = "kernel/limit"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tree(tmp_path / "sys", {LIMIT: "950000", "kernel/other": "1"})


def test_a_setting_is_changed_for_the_run_and_put_back(tmp_path: Path, settings: Path) -> None:
    with MachineLock(tmp_path / "lock", settings) as machine:
        assert machine.set_for_run(LIMIT, "-1") == "950000"
        assert machine.set_for_run(LIMIT, "-2") == "-1"
        assert (settings / LIMIT).read_text(encoding="ascii") == "-2"
    assert (settings / LIMIT).read_text(encoding="ascii") == "950000"
    assert not (tmp_path / "lock" / "owner.json").exists()


def test_a_setting_that_a_killed_run_changed_is_put_back_by_the_next(tmp_path: Path, settings: Path) -> None:
    if not (child := os.fork()):
        MachineLock(tmp_path / "lock", settings).__enter__().set_for_run(LIMIT, "-1")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (settings / LIMIT).read_text(encoding="ascii") == "-1"
    with MachineLock(tmp_path / "lock", settings) as machine:
        (sentence,) = machine.remove_leftovers()
        assert sentence.startswith("set kernel/limit back to 950000, changed by pid")
    assert (settings / LIMIT).read_text(encoding="ascii") == "950000"


def refuse_writes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let files of a name be read and not written, as the kernel does with settings in some containers."""
    write = Path.write_text

    def written(path: Path, *args: str, **options: str) -> int:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied")
        return write(path, *args, **options)

    monkeypatch.setattr(Path, "write_text", written)


def test_a_setting_that_stays_keeps_no_other_and_not_the_lock(
    tmp_path: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = MachineLock(tmp_path / "lock", settings)
    with monkeypatch.context() as patched:
        refuse_writes(patched, "limit")
        with machine:
            assert machine.set_for_run(LIMIT, "-1") is None
    assert not (tmp_path / "lock" / "owner.json").exists()
    reason = "limit could not be set back to 950000"
    with monkeypatch.context() as patched, pytest.raises(CsitError, match=reason), machine:
        machine.set_for_run("kernel/other", "2")
        machine.set_for_run(LIMIT, "-1")
        refuse_writes(patched, "limit")
    assert (settings / "kernel" / "other").read_text(encoding="ascii") == "1"
    with MachineLock(tmp_path / "lock", settings) as following:
        (sentence,) = following.remove_leftovers()
        assert sentence.startswith("set kernel/limit back to 950000")


def test_groups_containers_and_folders_that_stay_keep_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not end, an engine that does not answer, a busy mount: PCI ports are given back anyway."""
    pci = FakePci(tmp_path / "sys", "ice", USER_SPACE)
    pci.add("0000:3b:00.0", "ice", port="nosuch0", group=1)
    monkeypatch.setattr(nic_driver, "PciDrivers", pci.host)
    monkeypatch.setattr(container_cleanup, "remove", raising(CsitError("the engine does not answer")))
    busy, free = tmp_path / "groups" / "busy", tmp_path / "groups" / "free"
    mounted, loose = tmp_path / "mounted", tmp_path / "loose"
    remove = shutil.rmtree

    def removed(folder: Path, **options: bool) -> None:
        if folder == mounted:
            raise OSError(errno.EBUSY, "Device or resource busy")
        remove(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", removed)
    with MachineLock(tmp_path / "lock") as machine:
        machine.claim_groups([busy, free])
        (busy / "child").mkdir(parents=True)
        free.mkdir()
        machine.claim(CONTAINERS, Contained(name="csit-nf-1-1", engine=Engine(name="docker")))
        for folder in (mounted, loose):
            machine.claim_folder(folder)
            folder.mkdir()
        machine.claim_namespaces(["csit-left"])
        make_namespaces("csit-left")
        HandedOver([Nic(port="port1", pci_address="0000:3b:00.0")], machine, pci.host()).start()
        with pytest.raises(CsitError) as failed:
            machine.remove_claimed()
        text = str(failed.value)
        assert all(reason in text for reason in (str(busy), "the engine does not answer", str(mounted)))
        assert pci.driver("0000:3b:00.0") == "ice"
        assert [free.exists(), loose.exists(), list(namespaces.DIRECTORY.iterdir())] == [False, False, []]
        assert machine.leftovers() == [
            f"control group {busy}", "docker container csit-nf-1-1", f"folder {mounted}",
        ]  # fmt: skip


def test_ports_of_a_killed_run_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NIC may be unplugged or fail, or a program of a user may have it open: the others are given back."""
    pci = FakePci(tmp_path / "sys", "ice", USER_SPACE)
    for group, address in enumerate(("0000:3b:00.0", "0000:3b:00.1")):
        pci.add(address, "ice", port=f"nosuch{group}", group=group)
    monkeypatch.setattr(nic_driver, "PciDrivers", pci.host)
    nics = [Nic(port=f"port{number}", pci_address=f"0000:3b:00.{number}") for number in range(2)]
    with MachineLock(tmp_path / "lock") as killed:
        killed.claim("bindings", Binding(pci_address="0000:99:00.0", driver="ice", override=None))
        killed.claim_namespaces(["csit-left"])
        killed.claim_ports([GONE])
        HandedOver(nics, killed, pci.host()).start()
    monkeypatch.setattr(ownership, "give_back", lambda ports: [f"{port} is gone" for port in ports])  # needs root
    make_namespaces("csit-left")
    monkeypatch.setattr(pci, "users_of", lambda device: ["pid 17 (vpp)"] if device.name.endswith(".0") else [])
    with MachineLock(tmp_path / "lock") as machine, pytest.raises(CsitError, match=r"3b:00.0 is in use by pid 17"):
        machine.remove_leftovers()
    assert pci.drivers("0000:3b:00.0", "0000:3b:00.1") == [USER_SPACE, "ice"]
    left = read_record(tmp_path / "lock" / "owner.json")
    assert left is not None
    assert [binding.pci_address for binding in left.bindings] == ["0000:3b:00.0"]
    assert (left.namespaces, left.ports, list(namespaces.DIRECTORY.iterdir())) == ({}, (), [])
    monkeypatch.setattr(pci, "users_of", lambda _: [])
    with MachineLock(tmp_path / "lock") as machine:
        assert len(machine.remove_leftovers()) == 1
        assert machine.leftovers() == []
    assert pci.driver("0000:3b:00.0") == "ice"


def test_the_namespace_of_a_port_that_is_left_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state is restored from there by the next run: else the kernel moves it to the machine's first one."""
    monkeypatch.setattr(ownership, "give_back", raising(CsitError("another port is called eth1 now")))
    with MachineLock(tmp_path / "lock") as machine:
        machine.claim_namespaces([GONE.inside, "csit-left"])
        machine.claim_ports([GONE])
        make_namespaces(GONE.inside, "csit-left")
        with pytest.raises(CsitError, match="another port is called eth1 now"):
            machine.remove_claimed()
        assert [path.name for path in namespaces.DIRECTORY.iterdir()] == [GONE.inside]
        monkeypatch.setattr(ownership, "give_back", lambda _: [])
        assert machine.remove_claimed() == [f"removed network namespace {GONE.inside}"]
        assert machine.leftovers() == []


def test_a_folder_of_files_is_removed_by_the_next_run_and_a_foreign_one_left_alone(tmp_path: Path) -> None:
    folder, foreign = tmp_path / "service", tmp_path / "theirs"
    foreign.mkdir()
    with MachineLock(tmp_path / "lock") as machine:
        machine.claim_folder(folder)
        (folder / "deployment").mkdir(parents=True)
        (folder / "deployment" / "install.sh").touch()
        with pytest.raises(CsitError, match=rf"there is a folder {foreign} already, not ours; look at it"):
            machine.claim_folder(foreign)
        assert machine.leftovers() == [f"folder {folder}"]
    with MachineLock(tmp_path / "lock") as machine:
        (sentence,) = machine.remove_leftovers()
        assert sentence.startswith(f"removed folder {folder} of pid ")
        assert (folder.exists(), foreign.is_dir(), machine.leftovers()) == (False, True, [])


@pytest.mark.parametrize("taken", range(3))
def test_a_killed_cleanup_goes_on_in_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    with MachineLock(tmp_path / "lock") as machine:
        for folder in folders:
            machine.claim_folder(folder)
            folder.mkdir()
    done: list[Path] = []
    whole = MachineLock.remove_folder

    def killed(self: MachineLock, folder: Path) -> list[str]:
        if len(done) == taken:
            os._exit(0)
        done.append(folder)
        return whole(self, folder)

    if not (pid := os.fork()):
        try:
            monkeypatch.setattr(MachineLock, "remove_folder", killed)
            with MachineLock(tmp_path / "lock") as machine:
                machine.remove_leftovers()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sum(folder.exists() for folder in folders) == 3 - taken
    with MachineLock(tmp_path / "lock") as machine:
        assert len(machine.remove_leftovers()) == 3 - taken
        assert machine.leftovers() == []
    assert not any(folder.exists() for folder in folders)


def test_containers_and_shared_memory_of_a_killed_run_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers are on record before they are made, with their engine; memory of VPP stays until a restart."""
    monkeypatch.setattr(instance, "remove_segments", partial(instance.remove_segments, folder=tmp_path))
    call = Mock(side_effect=lambda engine, argv, **_: "abc" * ("ps" in argv and engine.name == "podman"))
    monkeypatch.setattr(container_cleanup, "call", call)
    mine = Contained(engine=Engine(name="podman", store=tmp_path / "store", runtime="runc"), name="csit-nf-1-1")
    gone = Contained(engine=Engine(name="docker"), name="csit-nf-1-2")
    files = [tmp_path / f"csit-nf-1-1-{name}" for name in ("global_vm", "vpe-api")]
    other = tmp_path / "csit-other-global_vm"
    with MachineLock(tmp_path / "lock") as machine:
        machine.claim(CONTAINERS, mine)
        machine.claim(CONTAINERS, gone)
        assert machine.leftovers() == ["podman container csit-nf-1-1", "docker container csit-nf-1-2"]
        machine.claim(SEGMENTS, "csit-nf-1-1")
        for file in (*files, other):
            file.touch()
    with MachineLock(tmp_path / "lock") as machine:
        removed = {sentence.partition(" of pid")[0] for sentence in machine.remove_leftovers()}
        assert removed == {"removed podman container csit-nf-1-1", *(f"removed shared memory {file}" for file in files)}
        assert machine.leftovers() == []
    assert [*mine.engine.command, "rm", "--force", "--time", "0", "abc"] in [each.args[1] for each in call.mock_calls]
    assert [file.exists() for file in (*files, other, tmp_path / "lock" / "owner.json")] == [False, False, True, False]


@pytest.mark.parametrize("declared", driver_registry.leftovers().values(), ids=lambda declared: declared.key)
def test_what_declarations_of_leftovers_name_is_there(declared: Leftover) -> None:
    assert callable(driver_registry.load(declared.remove))
    assert declared.entry is None or callable(driver_registry.load(declared.entry))


FAILURES = {
    "in use": (CsitError("one is in use"), "one is in use"),
    "system": (OSError(28, "No space left on device"), "cleanup failed: [Errno 28] No space left on device"),
    "defect": (KeyError("colour"), "cleanup failed: KeyError: 'colour'"),
    "end of the run": (RunStopped("Execution terminated by signal"), ""),
}


@given(kinds=st.lists(st.sampled_from([*FAILURES, "done", "nothing"]), max_size=6))
def test_every_step_is_taken_and_all_failures_are_one_error(kinds: list[str]) -> None:
    taken: list[int] = []

    def step(number: int, kind: str) -> list[str] | None:
        taken.append(number)
        if kind in FAILURES:
            raise FAILURES[kind][0]
        return [str(number)] if kind == "done" else None

    failed = [kind for kind in kinds if kind in FAILURES]
    try:
        done = take_all(partial(step, number, kind) for number, kind in enumerate(kinds))
    except (CsitError, OSError, KeyError) as error:
        if "end of the run" in failed:
            assert isinstance(error, RunStopped), "whatever else failed"
        elif failed == ["defect"]:
            assert isinstance(error, KeyError), "its traceback is logged"
        else:
            assert str(error) == "; ".join(dict.fromkeys(FAILURES[kind][1] for kind in failed))
    else:
        assert not failed
        assert done == [str(number) for number, kind in enumerate(kinds) if kind == "done"]
    assert taken == list(range(len(kinds)))


def test_steps_after_an_interrupt_are_taken() -> None:
    taken: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        take_all((raising(KeyboardInterrupt()), partial(taken.append, "two"), partial(taken.append, "three")))
    assert taken == ["two", "three"]


NAMES = ("one", "two", "three")


@pytest.mark.parametrize("name", ["{}.sock", "{}map_0", "{}-vpe-api"], ids=["sockets", "huge files", "segments"])
def test_files_after_one_that_cannot_be_removed_are_removed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"none {tmp_path} hugetlbfs rw,pagesize=2M 0 0\n", encoding="utf-8")
    monkeypatch.setattr(wireguard, "_SOCKETS", tmp_path)
    monkeypatch.setattr(trex, "remove_files", partial(remove_files, mounts=mounts))
    segments = partial(instance.remove_segments, folder=tmp_path)
    remove = {"{}.sock": wireguard.remove_left, "{}map_0": trex.remove_left}.get(name, segments)
    one, two, three = (tmp_path / name.format(each) for each in NAMES)
    for folder in (one, two):
        folder.mkdir()  # which no removal of files can remove
    three.touch()
    with pytest.raises(CsitError, match=rf"{one.name}'; .*{two.name}'"):
        remove(NAMES)
    assert not three.exists()
    one.rmdir()
    two.rmdir()
    one.touch()
    (sentence,) = remove(NAMES)
    assert sentence.startswith("removed ")


def test_tracing_instances_after_one_in_use_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = {"one", "two", "three"}

    def remove(name: str) -> list[str]:
        if name == "one":
            raise CsitError("one is in use")
        there = name in left
        left.discard(name)
        return [f"removed {name}"] if there else []

    monkeypatch.setattr(tracefs, "_remove_left", remove)
    with pytest.raises(CsitError, match=r"^one is in use$"):
        tracefs.remove_left(NAMES)
    assert left == {"one"}
    assert tracefs.remove_left(("two",)) == []
    file = tmp_path / "file"
    file.touch()
    assert [remove_file(file, "the file") for _ in range(2)] == [["removed the file"], []]
