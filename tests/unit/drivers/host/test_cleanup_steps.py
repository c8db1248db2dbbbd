"""Removers of leftovers remove all that they can, and name what stays."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.functions.wireguard import driver as wireguard
from resources.libraries.python.drivers.generators.trex import driver as trex
from resources.libraries.python.drivers.host.cpu.memory import remove_files
from resources.libraries.python.drivers.host.ownership.cleanup_steps import remove_file, take_all
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.vpp.instance import remove_segments
from resources.libraries.python.errors import CsitError, RunStopped

FAILURES = {
    "in use": CsitError("one is in use"),
    "system": OSError(28, "No space left on device"),
    "defect": KeyError("colour"),
    "end of the run": RunStopped("Execution terminated by signal"),
}
SENTENCES = {
    "in use": "one is in use",
    "system": "cleanup failed: [Errno 28] No space left on device",
    "defect": "cleanup failed: KeyError: 'colour'",
}


@given(kinds=st.lists(st.sampled_from([*FAILURES, "done", "nothing"]), max_size=6))
def test_every_step_is_taken_and_all_failures_are_one_error(kinds: list[str]) -> None:
    taken: list[int] = []

    def step(number: int, kind: str) -> list[str] | None:
        taken.append(number)
        if kind in FAILURES:
            raise FAILURES[kind]
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
            assert str(error) == "; ".join(dict.fromkeys(SENTENCES[kind] for kind in failed))
    else:
        assert not failed
        assert done == [str(number) for number, kind in enumerate(kinds) if kind == "done"]
    assert taken == list(range(len(kinds)))


def test_steps_after_an_interrupt_are_taken() -> None:
    taken: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_all((interrupted, partial(taken.append, "two"), partial(taken.append, "three")))
    assert taken == ["two", "three"]


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
