"""Nodes and programs that speak without end, folders with planted links, and parts of datasets that are damaged."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.dataset.store.bounded_files import DETAIL_COLUMNS, opened
from csit_utils.dataset.store.tables import OPTIONAL, TEST_COLUMNS, TEST_NAMES
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.remote.link import AgentLink
from tests.fuzz.damage import mutated
from tests.fuzz.oracle import ATTEMPTS, refused, run
from tests.unit.csit_utils.bombs import BOMBS, one_text_in_all_records, packed_details, part_of
from tests.unit.testbed.scripted_channel import ScriptedChannel

PRIVATE = "what-only-the-user-may-read"
_PARTS = {
    ".parquet": (b"PAR1", b"\x15\x00\x15", b"\x00", b"\xff", b"\x80" * 9),
    ".arrow": (b"ARROW1", b"\xff" * 4, b"\x00" * 8),
}
_MUTANTS = 300
_DAMAGED = [
    *((suffix, None) for suffix in _PARTS),
    *((".parquet", bomb) for bomb in BOMBS if bomb is not one_text_in_all_records),
    (".arrow", packed_details),
]
"""Ordinary parts, and those that stand for far more than they are."""


class Endless(ScriptedChannel):
    """A node that says the same over and over."""

    def __init__(self, piece: bytes) -> None:
        super().__init__()
        self._piece = piece

    def receive(self, _within_s: float) -> bytes:
        return self._piece


def ask(node: Endless) -> None:
    link = AgentLink("DUT1", node, silence_s=30.0)
    try:
        link.call(calls.LEFTOVERS, None)
    finally:
        link.close()


@pytest.mark.parametrize("piece", [b"x", b"[", b'"', b"\0", b"\xff", b'{"id":1,"value":"'], ids=repr)
def test_nodes_that_speak_without_end(piece: bytes) -> None:
    assert refused("nodes without end", lambda: ask(Endless(piece * (65_536 // len(piece)))))


@pytest.mark.parametrize("value", [b"[],", b'{"a":1},', b'"",'], ids=repr)
def test_answers_that_stand_for_far_more_than_their_bytes(value: bytes) -> None:
    said = b'{"id":1,"value":[' + value * (60_000_000 // len(value)) + b"0]}\n"

    assert refused("nodes without end", lambda: ask(Endless(said)))


@pytest.mark.parametrize("script", ["yes", "cat /dev/zero", "yes >&2", "cat /dev/urandom"])
def test_programs_that_speak_without_end(script: str) -> None:
    assert refused("programs without end", lambda: completed(["sh", "-c", f"exec {script}"], 30.0), attempts=ATTEMPTS)


@pytest.mark.parametrize(("suffix", "bomb"), _DAMAGED)
def test_damaged_parts(
    results: Path, tmp_path: Path, suffix: str, bomb: Callable[[Path], None] | None, pytestconfig: pytest.Config
) -> None:
    """All groups are read: what the footer does not say is found only then."""
    folder = Path(shutil.copytree(results / "history", tmp_path / "d"))
    if bomb is not None:
        bomb(folder)
    part = part_of(folder, "tests" if suffix == ".parquet" else "details")
    schema, names = (TEST_COLUMNS, TEST_NAMES) if suffix == ".parquet" else (DETAIL_COLUMNS, DETAIL_COLUMNS.names)
    asked = pytestconfig.getoption("--inputs")
    chance = random.Random(random.SystemRandom().getrandbits(64) if asked else crc32(suffix.encode()))
    whole, file = part.read_bytes(), tmp_path / part.name

    def read() -> None:
        with opened(file, schema, names, optional=OPTIONAL) as found:
            for group in range(found.count):
                found.read(group).to_pylist()

    file.write_bytes(whole)
    assert bool(refused(f"{suffix} parts", read, str(tmp_path), attempts=ATTEMPTS)) == (bomb is not None)
    for _ in range(asked * 10 if asked else _MUTANTS if bomb is None else _MUTANTS // 10):
        file.write_bytes(mutated(chance, whole, _PARTS[suffix]))
        refused(f"{suffix} parts", read, str(tmp_path), attempts=ATTEMPTS)


@given(data=st.data())
def test_planted_links(results: Path, tmp_path: Path, data: st.DataObject) -> None:
    """What they lead to is neither shown nor changed, also where it is good."""
    victim, kept, gone = (tmp_path / name for name in ("victim", "kept", "gone"))
    shutil.rmtree(tmp_path / "d", ignore_errors=True)
    for each in (kept, gone):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    victim.write_text(f"{PRIVATE}\n", encoding="ascii")
    name, commands = data.draw(
        st.sampled_from(
            [
                ("history", [("show",), ("answer", "--rate", "100kpps"), ("report", "-o", str(tmp_path / "site"))]),
                ("run", [("show",), ("outcome",)]),
            ]
        )
    )
    folder = Path(shutil.copytree(results / name, tmp_path / "d"))
    planted = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*"))))
    is_read = planted.relative_to(folder).parts[0] in ("tests", "details", "imports")
    to = data.draw(st.sampled_from([gone / planted.name, kept if planted.is_dir() else victim]))
    planted.rename(gone / planted.name)
    planted.symlink_to(to)
    command, *options = data.draw(st.sampled_from(commands))
    done = run("planted links", command, str(folder), *options)
    assert not (is_read and command == "show" and done.stdout), "they are all of its tests"
    assert PRIVATE not in done.stdout + done.stderr
    assert victim.read_text(encoding="ascii") == f"{PRIVATE}\n"
    assert not list(kept.iterdir())
