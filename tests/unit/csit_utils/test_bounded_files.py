"""Files of a dataset that stand for far more than they are, and paths that lead out of it, are refused."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.dataset.inputs import sources_of_file
from csit_utils.dataset.items import Problem, ReadError
from csit_utils.dataset.store import arrow_blocks, bounded_files, columns, parquet_pages
from csit_utils.dataset.store.batch import import_all
from csit_utils.dataset.store.layout import Layout
from csit_utils.dataset.store.stored_contents import Stored
from csit_utils.dataset.store.views import files_of
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.bombs import BOMBS, packed_details, part_of, say
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.characterization_records import burst
from tests.unit.csit_utils.datasets import imported
from tests.unit.csit_utils.robot_output import write_output_xml


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test, and a record of another study."""
    folder = tmp_path_factory.mktemp("dataset")
    output = write_output_xml(folder / "output.xml", [result(ServiceType.CSC, 1, 1), burst()], [])
    imported(folder / "d", output)
    return folder / "d"


@pytest.fixture
def folder(dataset: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset, tmp_path / "d"))


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_left_out_by_readers_and_engines(folder: Path, bomb: Callable[[Path], None]) -> None:
    """The other file is read."""
    bomb(folder)
    before = pa.default_memory_pool().bytes_allocated()
    stored, files = Stored(Layout(folder)), files_of(Layout(folder))
    left = len(stored.tests) + len(stored.characterizations)
    assert left == len(files.tests) + len(files.characterizations) == 1
    for (problem,) in (stored.problems, files.problems):
        assert BOMBS[bomb] in problem.text
    assert pa.default_memory_pool().bytes_allocated() - before < 10_000_000


def test_a_footer_whose_statistics_contradict_its_schema_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3], "y": [1, 2, 3]}), path)
    optional, required = b"\x25\x02\x18\x01y", b"\x25\x00\x18\x01y"
    whole = path.read_bytes()
    assert whole.count(optional) == 1
    content = whole.replace(optional, required)
    with pytest.raises(ReadError, match="histogram"), bounded_files.opened_table(content, lambda _: True) as file:
        file.read(0)
    with bounded_files.opened_table(content, "x".__eq__) as file:
        assert file.read(0).to_pydict() == {"x": [1, 2, 3]}


def test_packed_details_are_refused_where_they_are_read(folder: Path) -> None:
    packed_details(folder)
    with pytest.raises(ReadError, match="a group that is packed"):
        list(Stored(Layout(folder)).items())


SHOW = """
import sys
from csit_utils.cli import main
sys.argv = ["csit", "show", sys.argv[1]]
try:
    main()
finally:
    (peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print("peak", peak.split()[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [*BOMBS, packed_details])
def test_memory_of_show_is_about_that_of_an_ordinary_dataset(folder: Path, bomb: Callable[[Path], None]) -> None:
    def peak_mb() -> float:
        command = [sys.executable, "-c", SHOW, str(folder)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
        return int(done.stdout.rsplit("peak ", 1)[1]) / 1000

    ordinary = peak_mb()
    bomb(folder)
    assert peak_mb() < ordinary + 200


def test_more_rows_than_the_import_says(folder: Path) -> None:
    say(folder, tests=2)
    assert "it has 1 rows, and its import says 2" in Stored(Layout(folder)).problems[0].text


PLACE = "testbed=a/night=b/0123456789abcdef.parquet"
PATHS = ("../../../etc/passwd", "/etc/passwd", f"s3://bucket/{PLACE}", f"{PLACE}\n", PLACE.replace("a/", "*/"))


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": "../../../../etc/passwd", "parts": []},
        *({"path": path} for path in (*PATHS, f"testbed=a/{PATHS[0]}")),
    ],
)
def test_paths_and_digests_that_lead_out_of_the_dataset(folder: Path, changes: dict[str, object]) -> None:
    say(folder, **changes)
    (problem,) = Stored(Layout(folder)).problems
    assert "damaged; remove it and import its file again" in problem.text
    assert "etc/passwd" not in problem.text.replace(str(folder), "")
    with pytest.raises(ConfigError):
        Layout(folder).imports()


@pytest.mark.parametrize(("name", "left"), [("tests", 1), ("details", 1), ("characterizations", 1), ("imports", 0)])
@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_links_are_not_followed(folder: Path, tmp_path: Path, name: str, left: int, *, whole: bool) -> None:
    there = folder / name if whole else part_of(folder, name)
    there.rename(tmp_path / "elsewhere")
    there.symlink_to(tmp_path / "elsewhere")
    stored = Stored(Layout(folder))
    assert len(stored.tests) + len(stored.characterizations) == left
    (problem,) = stored.problems
    assert str(there) in problem.text and "a link; replace it by what it leads to" in problem.text


@pytest.mark.parametrize("name", ["tests", "details", "imports", ".importing"])
def test_an_import_writes_through_no_link(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    output = write_output_xml(tmp_path / "output.xml", [result(ServiceType.CSC, 2, 1)], [])
    layout = Layout(folder)
    with pytest.raises(ReadError, match=f"{name}: a link"), layout.writing(lambda: None):
        list(import_all(layout, [output], None))
    assert not list((tmp_path / "elsewhere").iterdir())


@given(data=st.binary(max_size=200))
def test_headers_of_pages_are_read_or_refused(data: bytes) -> None:
    with suppress(ReadError):
        assert parquet_pages.chunk_of(data).unpacked_bytes >= 0


@given(data=st.binary(max_size=200), length=st.integers(0, 300))
def test_footers_of_arrow_files_are_read_or_refused(data: bytes, length: int) -> None:
    file = pa.BufferReader(data + length.to_bytes(4, "little") + b"ARROW1")
    with suppress(ReadError):
        assert all(each.offset >= 0 for each in arrow_blocks.blocks_of(file.read_at, file.size()))


def test_pipes_are_not_waited_for(folder: Path, tmp_path: Path) -> None:
    part, output = part_of(folder, "tests"), tmp_path / "output.xml"
    part.unlink()
    for path in (part, output):
        os.mkfifo(path)
    with pytest.raises(ReadError, match="no regular file"), bounded_files.opened(part, columns.TESTS, columns.NAMES):
        pass
    (found,) = sources_of_file(output)
    assert isinstance(found, Problem) and "not a regular file" in found.text
