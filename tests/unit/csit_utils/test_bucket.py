"""Tables in a bucket: copied once and imported. The store here answers the three requests that reading takes."""

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

from csit_utils.dataset.foreign import bucket
from csit_utils.dataset.foreign.bucket import Bucket
from resources.libraries.python.errors import ConfigError
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr, flat

_DATE = "2026-11-29T12:00:00.000Z"


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
            f"<Contents><Key>{key}</Key><LastModified>{_DATE}</LastModified>"
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
    row = flat(csit(csit_ndrpdr())) | {"job": "csit-vpp-perf-mrr-daily-master-2n-spr", "build": 17}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    made = Store({"csit/trending/1.parquet": content, "csit/trending/_SUCCESS": b"", "other/2.parquet": b"no table"})
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


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
    monkeypatch.setattr(bucket, "MAX_BUCKET_BYTES", 100)
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
