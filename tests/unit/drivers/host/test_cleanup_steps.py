"""Removers of leftovers remove all that they can, and name what stays."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.wireguard import driver as wireguard
from resources.libraries.python.drivers.generators.trex import server as trex
from resources.libraries.python.drivers.host.cpu.memory import remove_files
from resources.libraries.python.drivers.host.ownership.cleanup_steps import remove_file
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.vpp.instance import remove_segments
from resources.libraries.python.errors import CsitError

NAMES = ("one", "two", "three")
Remover = Callable[[Iterable[str]], list[str]]


def sockets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Remover:
    monkeypatch.setattr(wireguard, "_SOCKETS", folder)
    return wireguard.remove_left


def huge_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Remover:
    mounts = folder / "mounts"
    mounts.write_text(f"none {folder} hugetlbfs rw,pagesize=2M 0 0\n", encoding="utf-8")
    monkeypatch.setattr(trex, "remove_files", partial(remove_files, mounts=mounts))
    return trex.remove_left


def segments(folder: Path, _: pytest.MonkeyPatch) -> Remover:
    return partial(remove_segments, folder=folder)


@pytest.mark.parametrize(
    ("remover", "name"),
    [(sockets, "{}.sock"), (huge_files, "{}map_0"), (segments, "{}-vpe-api")],
    ids=["sockets", "huge files", "segments"],
)
def test_files_after_one_that_cannot_be_removed_are_removed(
    remover: Callable[[Path, pytest.MonkeyPatch], Remover], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = (tmp_path / name.format(each) for each in NAMES)
    remove = remover(tmp_path, monkeypatch)
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


def test_tracing_instances_after_one_in_use_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    left = {"one", "two", "three"}

    def remove(name: str) -> bool:
        if name == "one":
            raise CsitError("one is in use")
        there = name in left
        left.discard(name)
        return there

    monkeypatch.setattr(tracefs, "remove", remove)
    with pytest.raises(CsitError, match=r"^one is in use$"):
        tracefs.remove_left(NAMES)
    assert left == {"one"}
    assert tracefs.remove_left(("two",)) == []


def test_a_file_that_is_gone_is_not_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert remove_file(file, "the file") == ["removed the file"]
    assert remove_file(file, "the file") == []
