"""Folders with fixed names in folders that everybody can write to, when another user has made them first."""

import fcntl
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.vpp.instance import core_of
from resources.libraries.python.testbed.connection import runtime
from resources.libraries.python.testbed.node.scripts import leftovers, runtimes

pytestmark = [pytest.mark.parallel, pytest.mark.root]
ATTACKS = {
    "folder": "mkdir {folder}",
    "open folder": "mkdir -m 777 {folder}",
    "link to a folder": "mkdir {trap} && ln -s {trap} {folder}",
    "link to a folder of root": "ln -s {root} {folder}",
    "link to nothing": "ln -s {trap} {folder}",
    "file": "touch {folder}",
}
"""What another user does to have a say in what is there."""


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """As /var/tmp is."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o1777)
    yield place


@pytest.fixture(params=sorted(ATTACKS))
def folder(request: pytest.FixtureRequest, shared: Path) -> Path:
    """A folder of ours that another user has made before."""
    found = shared / "csit-density"
    root = shared.parent / "root"
    root.mkdir()
    (root / "abc").mkdir()
    as_another(ATTACKS[request.param].format(folder=found, trap=shared / "trap", root=root))
    return found


def as_another(line: str) -> None:
    subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", line], check=True, timeout=30
    )


def untouched(folder: Path) -> bool:
    """Whether nothing was written through what the other user has made."""
    found = [path for path in folder.parent.rglob("*") if path.is_file() and path != folder]
    return not found and (folder.parent.parent / "root" / "abc").is_dir()


def test_core_files_are_not_kept_there(folder: Path, tmp_path: Path) -> None:
    ran = tmp_path / "nf-1-1"
    ran.mkdir()
    (ran / "core").write_bytes(b"memory")
    (tmp_path / "core_pattern").write_text("core\n")
    (tmp_path / "core_uses_pid").write_text("0\n")
    said = core_of(12, 0.0, ran, tmp_path, folder)
    assert str(ran / "core") in said and str(folder) in said
    assert (ran / "core").read_bytes() == b"memory"
    assert untouched(folder)


def test_a_link_that_another_user_has_made_is_no_core_file(shared: Path, tmp_path: Path) -> None:
    (ran := tmp_path / "nf-1-1").mkdir()
    (tmp_path / "core_pattern").write_text(f"{shared}/core.%p\n")
    (tmp_path / "core_uses_pid").write_text("0\n")
    as_another(f"ln -s {tmp_path}/nothing {shared}/core.12; ln -s /etc/shadow {shared}/core.13")
    assert [core_of(pid, 0.0, ran, tmp_path, tmp_path / "kept") for pid in (12, 13)] == ["", ""]
    (shared / "core.14").write_bytes(b"memory")
    assert core_of(14, 0.0, ran, tmp_path, tmp_path / "kept").startswith(f"core file {shared}/core.14")


def program(path: Path, *words: str, stdin: bytes = b"") -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-I", "-", *words] if not stdin else [sys.executable, "-I", str(path), *words],
        input=stdin or path.read_bytes(), capture_output=True, check=True, timeout=600,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_no_runtime_is_used_from_there(folder: Path) -> None:
    found = program(runtime._PROBE, str(folder))
    assert found["have"] == []
    assert "look at it and remove it" in found["problem"]


def test_no_runtime_is_unpacked_there(folder: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("packages-1/x.py"))
    words = (str(folder), "", "packages-1", "1", "3")
    assert program(runtime._UNPACK, *words, stdin=packed.getvalue())["problem"] == "system"
    assert untouched(folder)


def test_nothing_is_removed_or_listed_there(folder: Path) -> None:
    assert "failed" in runtimes.answer({"folder": str(folder), "names": ["abc"]})
    nowhere = {"record": "/nowhere", "namespaces": "/nowhere", "prepared": "/nowhere"}
    assert leftovers.answer({**nowhere, "runtimes": str(folder)})["runtimes"] == []
    assert untouched(folder)


def test_files_beside_runtimes_are_none_and_those_in_use_stay(tmp_path: Path) -> None:
    """Core files were taken for the newest runtimes, and agents lost what they ran on."""
    folder = tmp_path / "csit-density"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("new/x.py"))
        archive.addfile(tarfile.TarInfo("packages-2/x.py"))
    for name in ("packages-1", "used", "unused", "older"):
        (folder / name).mkdir(parents=True)
    for name in ("used", "unused", "older"):
        (folder / name / "packages").symlink_to("../packages-1")
        os.utime(folder / name, (1, 1))
    os.utime(folder / "unused", (2, 2))
    for pid in range(3):
        (folder / f"nf-1-1.{pid}.core").write_bytes(b"memory")
    used = os.open(folder / "used", os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_SH)
    words = (str(folder), "new", "packages-2", "1", "2")
    assert program(runtime._UNPACK, *words, stdin=packed.getvalue()) == {}
    assert {path.name for path in folder.iterdir() if path.is_dir()} >= {"new", "unused", "used", "packages-1"}
    assert not (folder / "older").exists()
    nowhere = {"record": "/nowhere", "namespaces": "/nowhere", "prepared": "/nowhere"}
    listed = {row["name"] for row in leftovers.answer({**nowhere, "runtimes": str(folder)})["runtimes"]}
    assert listed == {"new", "unused", "used", "packages-1", "packages-2"}
    refused = runtimes.answer({"folder": str(folder), "names": ["used", "unused"]})
    assert refused == {"failed": f"{folder}/used: an agent runs on it"}
    os.close(used)
    assert runtimes.answer({"folder": str(folder), "names": ["used"]}) == {"removed": ["used"]}
