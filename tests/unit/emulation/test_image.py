"""The image of emulated machines: what its scripts and archives are, without making one."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs import image_cache
from resources.libraries.python.drivers.host.programs.image_cache import BUILDING, alone, make, newest
from resources.libraries.python.emulation import image
from resources.libraries.python.emulation.image import OWN, MachineImage
from resources.libraries.python.rendering import render
from tests.unit.drivers.functions.guest_archives import unpacked

VALUES = {"own": OWN, "drivers": ["virtio_net", "e1000e"], "control_mac": "02:c5:1e:ff:ff:ff", "modules": ["ext4"]}


@pytest.mark.parametrize("script", ["init.sh", "boot.sh"])
def test_scripts_are_sound(script: str) -> None:
    text = render(f"emulated/{script}.j2", VALUES)
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0
    assert text.startswith("#!/bin/busybox sh\n")


def test_a_machine_gets_its_own_files_and_only_it_can_read_its_key(tmp_path: Path) -> None:
    (tmp_path / "initramfs.cpio").write_bytes(b"")
    target = tmp_path / "TG.initramfs"
    boot = MachineImage(tmp_path).boot("TG", {"host_key": b"secret", "authorized_keys": b"public"}, target)
    assert boot.initramfs == target
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    files = unpacked(target.read_bytes())
    assert files["own/host_key"] == (0o100600, b"secret")
    assert files["own/hostname"] == (0o100644, b"tg\n")
    assert files["own/boot.sh"][0] == 0o100755
    assert b"::respawn:/usr/sbin/sshd" in files["own/inittab"][1]


def test_the_image_that_is_taken_is_of_this_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(image, "SHARED", tmp_path / "shared")
    folder = image_cache.cache_folder() / "emulated"
    (folder / "bookworm-6.1.0-1-amd64-000000000000").mkdir(parents=True)
    assert image.cached() is None
    shared = tmp_path / "shared" / "emulated" / f"bookworm-6.1.0-1-amd64-{image.recipe()}"
    shared.mkdir(parents=True)
    assert (found := image.cached()) and found.disk.parent == shared
    own = folder / shared.name
    own.mkdir()
    assert (found := image.cached()) and found.disk.parent == own


def test_an_image_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / f"{BUILDING}killed").mkdir()

    def broken(work: Path, made: Path) -> str:
        (work / "packages").touch()
        (made / "disk").touch()
        raise OSError("no space")

    with alone(tmp_path):
        with pytest.raises(OSError, match="no space"):
            make(tmp_path, broken)
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
        place = make(tmp_path, lambda _, made: (made / "disk").write_text("one") and "image-1")
        assert make(tmp_path, lambda _, made: (made / "disk").write_text("two") and "image-1") == place
    assert (place / "disk").read_text() == "two"
    older = tmp_path / "image-0"
    older.mkdir()
    os.utime(older, (0, 0))
    assert newest(tmp_path, "image-*") == [place, older]
    assert newest(tmp_path / "none", "*") == []


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_all_users_can_read_a_cache_and_only_its_owner_can_write_it(tmp_path: Path, umask: int) -> None:
    """Root starts machines from root's cache; others read it."""
    cache = tmp_path / "csit-density" / "emulated"
    before = os.umask(umask)
    try:
        with alone(cache):
            place = make(cache, lambda _, made: (made / "disk").write_text("one") and "image-1")
    finally:
        os.umask(before)
    paths = (cache.parent, cache, place, place / "disk", cache / "lock")
    assert [oct(stat.S_IMODE(path.stat().st_mode)) for path in paths] == ["0o755"] * 3 + ["0o644", "0o600"]


def test_a_cache_that_others_could_write_is_theirs_to_read_only(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for mode, expected in ((0o777, 0o755), (0o700, 0o700)):
        cache.chmod(mode)
        with alone(cache):
            assert stat.S_IMODE(cache.stat().st_mode) == expected
