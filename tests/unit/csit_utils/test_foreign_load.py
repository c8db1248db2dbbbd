"""Files of other tools: counted once beside our own, copied once from a bucket, and never the end of a reader."""

import gzip
import io
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

from csit_utils.analysis.grouping import all_series
from csit_utils.commands.results import import_command
from csit_utils.commands.results.import_command import Bucket
from csit_utils.commands.results.inputs import opened
from csit_utils.dataset.items import ImportedTest, Problem
from csit_utils.dataset.load import read_foreign
from csit_utils.studies.density.analysis.density import matrices
from csit_utils.studies.density.blocks import loss_definition
from resources.libraries.python.errors import ConfigError
from tests.foreign_cases import CASES, failures, make_inputs
from tests.loaded import load
from tests.unit.csit_utils import foreign_files
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.foreign_files import DTS_ROW, csit, csit_ndrpdr, nfvbench, packed, plain, searched
from tests.unit.csit_utils.in_memory import InMemory

SOURCE = "/data/run-7/result.json"


def test_results_of_several_tools_are_read_together_once_and_never_share_a_series(tmp_path: Path) -> None:
    """Two runs of CSIT, one of NFVbench, one of ours, and a damaged file."""
    for night, value in ((1, 5e6), (2, 5.2e6)):
        tree = tmp_path / f"run-{night}" / "tests" / "vpp" / "perf"
        tree.mkdir(parents=True)
        found = csit(csit_ndrpdr(ndr={"lower": foreign_files.pps(value)}), start_time=f"2024-03-0{night}T01:00:00Z")
        (tree / "density.info.json").write_bytes(packed(found))
        other = packed(plain(start_time=f"2024-03-0{night}T00:00:00Z"))
        (tree / "plain.info.json.gz").write_bytes(gzip.compress(other))
    twice = tmp_path / "PVVP-3-10000-64-IMIX.json"
    twice.write_bytes(packed(nfvbench({"64": searched(), "IMIX": searched()})))
    (tmp_path / "own.json").write_text(result().model_dump_json(), encoding="utf-8")
    (tmp_path / "bad.info.json").write_bytes(packed(csit([])))  # type: ignore[arg-type]
    dataset = load([tmp_path, twice])
    assert (len(dataset.foreign), len(dataset.recorded), dataset.unrecorded) == (6, 1, [])
    assert {problem.source for problem in dataset.problems} == {str(tmp_path / "bad.info.json")}
    rows = InMemory(dataset).tests
    runs = {row.run for row in rows if row.origin == "fdio-csit"}
    assert runs == {str(tmp_path / "run-1"), str(tmp_path / "run-2")}, "a run of CSIT is its tree and not each file"
    series = all_series(rows)
    assert sorted(one.system.origin for one in series) == ["csit-density", "fdio-csit", "nfvbench", "nfvbench"]
    for origin, definitions in (
        ("fdio-csit", ["no packet lost", "loss ≤ 0.5 %"]),
        ("nfvbench", ["loss ≤ 0.001 %", "loss ≤ 0.1 %"]),
    ):
        of_tool = next(one for one in series if one.system.origin == origin and one.frame == "64B")
        assert [loss_definition(matrix) for matrix in matrices(rows, of_tool)] == definitions


def test_files_of_others_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    """With the commands that users type."""
    make_inputs(tmp_path)
    found = dict(failures(tmp_path))
    assert len(found) >= len(CASES)
    assert {command: what for command, what in found.items() if what} == {}
    (tmp_path / "one.json").write_bytes(packed(plain(version="3.0.0")))
    with pytest.raises(ConfigError, match=r"invalid result of FD\.io CSIT"):
        opened([tmp_path / "one.json"]).contents()


def dts(*rows: dict[str, Any]) -> list[Any]:
    return [*read_foreign(packed({"results": rows}), "perf.json")]


def test_frame_sizes_of_dts_are_tests_and_a_bad_value_costs_itself() -> None:
    good = {**DTS_ROW, "frame_size": 1518, "measured_mpps": 1.6, "performance_delta": 0.6, "pass": True}
    small, large = dts({**DTS_ROW, "performance_delta": -0.083, "pass": False}, good)
    assert (small.row.mrr_pps, small.row.frame, small.row.status) == (27.5e6, "68B", "FAIL")
    assert (large.row.mrr_pps, large.row.frame, large.row.status) == (1.6e6, "1522B", "PASS")
    assert small.row.mrr_l1_bps == pytest.approx(27.5e6 * 88 * 8)
    assert "30" in small.row.evidence and "27.5" in small.row.message and small.anchor != large.anchor
    (found, other) = dts({**DTS_ROW, "expected_mpps": "many"}, {**DTS_ROW, "frame_size": "64"})
    assert found.row.mrr_pps == other.row.mrr_pps == 27.5e6
    assert "expected_mpps" in found.row.evidence and "frame_size" in other.row.evidence and other.row.frame is None
    (problem,) = dts({"measured_mpps": 1.0})
    assert isinstance(problem, Problem) and "row 1: frame_size" in problem.text


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe{}", b"null", b"[1, 2]", b'"text"', b"<robot/>"),
        *(b'{"schema_version": 3}', b'{"test_id": 1}', b'{"version": "1.5.1", "test_id": "tests.a"}'),
        # Refused as JSON already; nothing overflows.
        packed(csit(csit_ndrpdr()))[:-1] + b', "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_what_is_of_no_known_tool_is_left_to_the_caller(content: bytes) -> None:
    assert read_foreign(content, SOURCE) is None


JUNK: tuple[Any, ...] = (None, True, -1, 10**400, float("nan"), "x" * 2000, "\ud800", [[]], {"value": {}})


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a file; of a list the first."""
    children = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for key, value in children:
        yield (*path, key)
        yield from leaves(value, (*path, key))


IDLE = {"pdr_0": {"min": 5, "avg": 12, "max": 90, "hdrh": "", "unit": "us"}}
CSIT_FILE = csit(csit_ndrpdr(latency_forward=IDLE, latency_reverse={}))


def test_junk_at_any_place_gives_tests_or_one_problem() -> None:
    """A reader never raises, and a file with a problem gives no half of its tests."""
    for path in leaves(CSIT_FILE):
        for junk in JUNK:
            place = data = deepcopy(CSIT_FILE)
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = junk
            items = list(read_foreign(packed(data), SOURCE) or ())
            kinds = {type(item) for item in items}
            assert kinds <= {ImportedTest} or (kinds == {Problem} and len(items) == 1), (path, junk)


class Store(ThreadingHTTPServer):
    """Objects by their keys."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects, self.read = objects, list[str]()
        self.listed_bytes: int | None = None

    def folder(self, name: str = "csit") -> str:
        return f"s3://tables/{name}?endpoint=http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Store
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(self.server.objects.get(self._key), body=False)

    def do_GET(self) -> None:
        if self._key:
            self.server.read.append(self._key)
            self._answer(self.server.objects.get(self._key))
            return
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        rows = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-11-29T12:00:00.000Z</LastModified>"
            f"<Size>{self.server.listed_bytes or len(content)}</Size></Contents>"
            for key, content in self.server.objects.items()
            if key.startswith(prefix)
        )
        self._answer(f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/tables").strip("/")

    def _answer(self, content: bytes | None, *, body: bool = True) -> None:
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.send_header("Last-Modified", "Sun, 29 Nov 2026 12:00:00 GMT")
        self.end_headers()
        if body and content:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    row = foreign_files.flat(csit(csit_ndrpdr())) | {"job": "csit-vpp-perf-mrr-daily-master-2n-spr", "build": 17}
    pq.write_table(pa.Table.from_pylist([row]), content := io.BytesIO())
    tables = {"csit/trending/1.parquet": content.getvalue(), "csit/trending/_SUCCESS": b"", "other/2.parquet": b"none"}
    with Store(tables) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def imported(store: Store, output: Path, folder: str = "csit") -> Result:
    return invoked("import", store.folder(folder), "-o", output)


def test_tables_of_a_folder_are_imported_and_copied_once_unless_they_have_changed(store: Store, tmp_path: Path) -> None:
    first, again = (imported(store, tmp_path / "history") for _ in range(2))
    assert "1 test of 1 file added" in first.output, first.output
    assert "1 file already there" in again.output
    assert store.read == ["csit/trending/1.parquet"], "and nothing beside the folder"
    assert (tmp_path / "history" / "buckets" / "tables" / "csit" / "trending" / "1.parquet").exists()
    store.objects["csit/trending/1.parquet"] += b"\0"
    assert imported(store, tmp_path / "history").exit_code == 1, "it is damaged now"
    assert store.read == ["csit/trending/1.parquet"] * 2


@pytest.mark.parametrize(
    ("folder", "said"), [("nowhere", "has no table"), ("csit/trending/../..", "no address of a bucket")]
)
def test_what_cannot_be_read_is_refused_with_its_address(store: Store, tmp_path: Path, folder: str, said: str) -> None:
    done = imported(store, tmp_path / "history", folder)
    assert isinstance(done.exception, ConfigError)
    assert said in str(done.exception) and "s3:" in str(done.exception)


def test_what_leaves_the_folder_is_larger_than_listed_or_does_not_fit_is_not_copied(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, to = Bucket.parse(store.folder()), tmp_path / "to"
    store.objects["csit/../../../x.parquet"] = b""
    with pytest.raises(ConfigError, match="leaves its folder"):
        found.copy(to)
    del store.objects["csit/../../../x.parquet"]
    store.listed_bytes = 10
    with pytest.raises(ConfigError, match="larger than the 10 bytes"):
        found.copy(to)
    assert not [path for path in to.rglob("*") if path.is_file()]
    store.listed_bytes = None
    store.read.clear()
    monkeypatch.setattr(import_command, "MAX_BUCKET_BYTES", 100)
    with pytest.raises(ConfigError, match="GB of tables; at most"):
        found.copy(to)
    assert not store.read, "it is refused before anything is copied"


@pytest.mark.parametrize("name", ["to", "to/tables", "to/tables/csit/trending/.1.parquet.part"])
def test_copies_are_written_through_no_planted_link(store: Store, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious") if name.endswith("part") else victim.mkdir()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).symlink_to(victim)
    with nullcontext() if name.endswith("part") else pytest.raises(ConfigError, match="a link"):
        Bucket.parse(store.folder()).copy(tmp_path / "to")
    assert victim.read_text() == "precious" if name.endswith("part") else not list(victim.iterdir())


@pytest.mark.parametrize(
    "address",
    [
        *("s3://key:secret@tables/csit", "s3://", "s3://Tables/x", "s3://tables/x?token=secret", "s3://tables/a/../b"),
        *("s3://tables/x?endpoint=http://key:secret@store", "s3://[tables/x", "s3://tables/x#y"),
    ],
)
def test_an_address_with_credentials_or_of_another_form_is_refused_without_secrets(address: str) -> None:
    with pytest.raises(ConfigError) as error:
        Bucket.parse(address)
    assert "key:secret" not in str(error.value)
