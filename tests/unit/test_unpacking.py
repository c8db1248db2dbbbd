"""Archives and packed files that unpack to far more than results do: refused in the time and memory of a good file."""

import contextlib
import gzip
import io
import lzma
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from csit_utils.dataset import blocks, robot_output
from resources.libraries.python import unpacking
from resources.libraries.python.unpacking import (
    PACKED,
    Bounded,
    Budget,
    UnpackError,
    inflate,
    open_archive,
    open_member,
    read_packed,
    unpacked,
)
from tests.fuzz.oracle import run
from tests.unit.packers import PACKERS

HEAD = b"<robot><suite name='s'>"
SIZE = 40_000_000


def zipped(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return made.getvalue()


def repeated_directory(entries: int) -> bytes:
    """An archive whose directory names one file many times."""
    one = zipped(("output.xml", HEAD))
    end = one.rfind(b"PK\5\6")
    start = one.find(b"PK\1\2")
    entry = one[start:end]
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, len(entry) * entries, start, 0)
    return one[:start] + entry * entries + tail


BOMBS: dict[str, Callable[[], bytes]] = {
    "text.xml.gz": lambda: gzip.compress(HEAD + b"a" * 60_000_000),
    "test.xml.gz": lambda: gzip.compress(HEAD + b"<test name='t'>" + b"a" * SIZE),
    "tests.xml.gz": lambda: gzip.compress(HEAD + b"<test name='t'></test>" * (SIZE // 22)),
    "tags.xml.gz": lambda: gzip.compress(HEAD + b"<test " * (SIZE // 6)),
    "deep.xml.gz": lambda: gzip.compress(HEAD + b"<test name='t'>" + b"<kw>" * 1_000_000 + b"</test>"),
    "messages.xml.gz": lambda: gzip.compress(HEAD + b"<test name='t'>" + b"<msg>CSIT-RESULT {}</msg>" * 50_000),
    "quotes.xml.gz": lambda: gzip.compress(HEAD + b"<suite " + b"''" * (SIZE // 2)),
    "lists.json.gz": lambda: gzip.compress(b'{"version":1,"test_id":"a","result":[' + b"[]," * 1_300_000 + b"[]]}"),
    "wide.json.gz": lambda: gzip.compress(
        b'{"schema_version":"1.0",' + b",".join(b'"key%d":1' % number for number in range(150_000)) + b"}"
    ),
    "bzip2.zip": lambda: zipped(("output.xml", HEAD + b"a" * SIZE), method=zipfile.ZIP_BZIP2),  # a few hundred bytes
    "lzma.zip": lambda: zipped(("output.xml", HEAD + b"a" * SIZE), method=zipfile.ZIP_LZMA),
    "directory.zip": lambda: repeated_directory(200_000),
    "nested-directory.zip": lambda: zipped(("a.zip", repeated_directory(1_000_000))),
    "text.xml.xz": lambda: lzma.compress(HEAD + b"a" * 60_000_000),
    "text.xml.zst": lambda: PACKERS[".zst"](HEAD + b"a" * 60_000_000),
    "zips.zip": lambda: zipped(("a.zip", zipped(("b.zip", zipped(("output.xml", bytes(50_000_000))))))),
    "twice.zip": lambda: zipped(*((f"{each}/output.xml.gz", gzip.compress(HEAD + b"a" * SIZE)) for each in range(3))),
}
"""By the name of the file. Each took more than 10 s or 400 MB once, or would have."""


@pytest.fixture(scope="module")
def _imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a command imports at first counts for the command, not for its input."""
    file = tmp_path_factory.mktemp("first") / "output.xml"
    file.write_bytes(HEAD + b"<test name='t'><status status='FAIL'/></test></suite></robot>")
    with contextlib.suppress(AssertionError):
        run("first", "show", str(file))


@pytest.mark.slow
@pytest.mark.usefixtures("_imported")
@pytest.mark.parametrize("name", BOMBS)
def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With lower limits: a scan without them takes many times what is allowed, and one with them little of it."""
    monkeypatch.setattr(robot_output, "MAX_UNRECORDED", 2_000)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 12)  # an open test that is searched anew with each block takes long
    file = tmp_path / name
    file.write_bytes(BOMBS[name]())
    outcome = run("bombs", "show", str(file))
    assert outcome.status in (1, 2)
    assert name in outcome.stderr


def test_a_file_in_two_layers_is_counted_in_both() -> None:
    budget = Budget(1000)
    archive = zipfile.ZipFile(io.BytesIO(zipped(("a.gz", gzip.compress(bytes(30_000_000))))))
    with open_member(archive, archive.infolist()[0]) as packed:
        unpacked = Bounded(gzip.GzipFile(fileobj=Bounded(packed, budget)), budget)  # type: ignore[arg-type]
        with pytest.raises(UnpackError, match=r"1,000 packed bytes unpack to more than [45],\d{3},\d{3}"):
            while unpacked.read():
                pass


def test_many_files_files_that_share_their_bytes_and_long_decompression_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UnpackError, match=r"unpacking 1,000,000 bytes takes more than 26 s"):
        Budget(1_000_000).spend(1, 26.0)
    Budget(1_000_000).spend(1, 24.0)
    with pytest.raises(UnpackError, match=r"files of [\d,]+ bytes in an archive of 1,000"):
        open_archive(io.BytesIO(repeated_directory(100)), 1_000)
    with pytest.raises(UnpackError, match="ends too early"):
        inflate(b"")
    monkeypatch.setattr(unpacking, "MAX_FILES", 3)
    made = zipped(*((str(each), b"") for each in range(4)))
    with pytest.raises(UnpackError, match="more than 3 files"):
        open_archive(io.BytesIO(made), len(made))
    assert len(open_archive(io.BytesIO(zipped(("a", b""), ("b", b""), ("c", b""))), 1000).infolist()) == 3


@pytest.mark.parametrize("ending", PACKED)
def test_packed_files_are_unpacked_within_bounds(ending: str) -> None:
    """Also where several were joined, as `cat` does, and where a stream gives little at a time."""
    pack, content = PACKERS[ending], b"<robot/>" * 10_000
    assert _unpacked(pack(content)) == content
    assert _unpacked(pack(content) + pack(b"x")) == content + b"x"
    assert _unpacked(pack(b"")) == b""
    with pytest.raises(UnpackError, match=r"ends too early|Truncated compressed stream"):
        _unpacked(pack(content)[:-3])
    damaged = pack(bytes(random.Random(1).choices(b"0123456789abcdef", k=5_000)))
    with pytest.raises(UnpackError, match=r"damaged|too early"):
        _unpacked(damaged[:12] + b"\xff" * 40 + damaged[52:])
    with pytest.raises(UnpackError, match="unpack to more than"):
        _unpacked(pack(bytes(6_000_000)))


@pytest.mark.parametrize("content", [b"", b"a", b"<robot/>" * 1000, b"\x1f", b"\x28\xb5", b"{" * 2000])
def test_a_file_that_is_not_packed_stays_as_it_is(content: bytes) -> None:
    assert _unpacked(content) == content
    with unpacked(io.BytesIO(content), Budget(len(content))) as stream:
        assert stream.read() == content


def _unpacked(packed: bytes) -> bytes:
    with unpacked(cast(BinaryIO, Bounded(io.BytesIO(packed), Budget(10**9))), Budget(len(packed))) as stream:
        return b"".join(iter(lambda: stream.read(1000), b""))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_modules_of_the_kernel_are_unpacked_within_bounds(pack: Callable[[bytes], bytes]) -> None:
    opened = gzip.open if pack is gzip.compress else lzma.open
    packed = pack(b"module" * 1000)
    assert read_packed(opened(io.BytesIO(packed)), len(packed)) == b"module" * 1000
    with pytest.raises(UnpackError, match="too early"):
        read_packed(opened(io.BytesIO(packed[:-9])), len(packed))
    bomb = pack(bytes(20_000_000))
    with pytest.raises(UnpackError, match="unpack to more than"):
        read_packed(opened(io.BytesIO(bomb)), len(bomb))
