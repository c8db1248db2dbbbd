"""`import`: add results to a dataset.

Parquet tables in a bucket of an object store that speaks S3, such as FD.io CSIT's, are copied, then read as files.
Credentials are those of the environment (`AWS_ACCESS_KEY_ID` …, or `~/.aws`), never part of an address; without any a
bucket is read anonymously.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, BinaryIO, Self
from urllib.parse import parse_qs, urlsplit

import typer

from csit_utils.commands.results.inputs import INPUTS, ReadingProgress, print_problems, shown_imports
from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, print_sentence
from csit_utils.dataset.items import ImportedTest
from resources.libraries.python.errors import ConfigError, message
from resources.libraries.python.model.bounds import MAX_BUCKET_BYTES, MAX_FILES, quoted
from resources.libraries.python.quantities import counted
from resources.libraries.python.whole_files import writing_whole

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, S3FileSystem


_ADDRESS = re.compile(r"s3:/+")
"""Begin of the address of a bucket and of no path, also where a path made one slash of two."""
_OPTIONS = frozenset({"region", "endpoint"})
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_BLOCK_BYTES = 1 << 20
_WITHIN_S = 30.0
_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, or a folder in it."""

    name: str
    prefix: str
    region: str | None
    endpoint: str | None
    """URL of another store than Amazon's."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address, `s3://BUCKET/FOLDER?region=REGION&endpoint=URL`.

        Raises:
            ConfigError: It is none; the text names it.
        """
        text = _ADDRESS.sub("s3://", text, count=1)
        wrong = ConfigError(
            f"{quoted(text)} is no address of a bucket; expected s3://BUCKET/FOLDER, with ?region=REGION or "
            "&endpoint=URL"
        )
        try:
            found = urlsplit(text)
        except ValueError as error:  # brackets of an IPv6 address that is none
            raise wrong from error
        options = parse_qs(found.query)
        host = found.netloc
        if "@" in host or "@" in "".join(options.get("endpoint", ())):
            raise ConfigError(
                "s3://…@…: credentials are no part of an address; set AWS_ACCESS_KEY_ID in the environment"
            )
        outside = ".." in PurePosixPath(found.path).parts
        unlike = found.fragment or not options.keys() <= _OPTIONS or any(len(row) > 1 for row in options.values())
        if _NAME.fullmatch(host) is None or outside or unlike:
            raise wrong
        region, endpoint = (options.get(name, [None])[0] for name in ("region", "endpoint"))
        # `s3:/` of a path has lost the second slash of the URL as well.
        address = re.sub(r"^(https?):/+", r"\1://", endpoint) if endpoint else None
        return cls(host, found.path.strip("/"), region, address)

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")

    def copy(self, folder: Path, report: Callable[[int, int], None] = lambda _done, _all: None) -> Path:
        """Copy its tables into a folder, those that are not there yet; return their folder.

        `report`: called with the bytes so far and those of all.

        Raises:
            ConfigError: The bucket cannot be read, has no table, or has too many or too large ones.
        """
        from pyarrow import ArrowException  # noqa: PLC0415 - as above

        try:
            return self._copy(self._store(), folder, report)
        except (OSError, ValueError, ArrowException) as error:  # a name with a zero byte is a ValueError
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ConfigError(f"{self}: {quoted(reason)}") from error

    def _store(self) -> "S3FileSystem":
        from pyarrow.fs import S3FileSystem  # noqa: PLC0415 - as above

        known = any(os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"))
        known = known or (Path.home() / ".aws" / "credentials").exists()
        scheme, _, host = (self.endpoint or "https://").partition("://")
        options = {"region": self.region} if self.region else {}
        options |= {"endpoint_override": host, "region": self.region or "us-east-1"} if host else {}
        return S3FileSystem(
            anonymous=not known, scheme=scheme, connect_timeout=_WITHIN_S, request_timeout=_WITHIN_S, **options
        )

    def _copy(self, store: "S3FileSystem", folder: Path, report: Callable[[int, int], None]) -> Path:
        top = PurePosixPath(self.name, self.prefix)
        tables = list(self._tables(store, str(top)))
        size = sum(each.size for each in tables)
        if not tables:
            raise ConfigError(f"{self} has no table: no file that ends in {_SUFFIX}")
        if size > MAX_BUCKET_BYTES:
            raise ConfigError(
                f"{self} has {size / 1e9:.3g} GB of tables; at most {MAX_BUCKET_BYTES / 1e9:g} GB are read"
            )
        done, own = 0, folder / self.name
        for each in tables:
            target = own / PurePosixPath(each.path).relative_to(self.name)
            if not _is_there(target, each):
                if link := next((place for place in _places(target, folder) if place.is_symlink()), None):
                    raise ConfigError(f"{link}: a link; replace it by what it leads to")
                with store.open_input_stream(each.path) as stream, writing_whole(target) as written:
                    _copy_to(written, stream, each)
                os.utime(target, ns=(each.mtime_ns, each.mtime_ns))
            done += each.size
            report(done, size)
        return own / self.prefix

    def _tables(self, store: "S3FileSystem", top: str) -> "Iterator[FileInfo]":
        """Tables of the folder and those below it; a table itself where the address is one's.

        Raises:
            ConfigError: There are too many.
        """
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - as above

        one = store.get_file_info(top)
        found = (
            [one]
            if one.type == FileType.File
            else store.get_file_info(FileSelector(top, allow_not_found=True, recursive=True))
        )
        tables = [each for each in found if each.type == FileType.File and each.path.endswith(_SUFFIX)]
        if len(tables) > MAX_FILES:
            raise ConfigError(f"{self} has {len(tables):,} tables; at most {MAX_FILES:,} are read")
        unsafe = [each.path for each in tables if ".." in PurePosixPath(each.path).parts]
        if unsafe:
            raise ConfigError(f"{self}: {quoted(unsafe[0])} leaves its folder")
        yield from tables


def _places(target: Path, folder: Path) -> Iterator[Path]:
    """Folders of a table, in which another user may have put links."""
    return (place for place in target.parents if place.is_relative_to(folder))


def _copy_to(file: BinaryIO, stream: "NativeFile", table: "FileInfo") -> None:
    left = table.size
    while block := stream.read(_BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            raise ConfigError(f"{quoted(table.path)} is larger than the {table.size:,} bytes that the bucket lists")
        file.write(block)


def _is_there(target: Path, table: "FileInfo") -> bool:
    if not target.is_file():
        return False
    there = target.stat()
    return bool(there.st_size == table.size and there.st_mtime_ns == table.mtime_ns)


def import_(
    inputs: INPUTS,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the dataset, created if missing.")
    ],
    label: Annotated[
        str | None, typer.Option(help="Label of the runs, such as a release; a run keeps its first label.")
    ] = None,
    place: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="Pattern of file names that state the cell, for tests that do not: {service}, {instances}, {nfs}, "
            "{vswitch_cores}, {nf_cores}; * is any text, and {nf_cores=1} the same for all.",
        ),
    ] = None,
    form: TABLE_OR_JSON = TableForm.TABLE,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of worker processes; default: one per CPU.")
    ] = None,
) -> None:
    """Add results to a dataset, which is read faster than files.

    Reads outputs of Robot Framework (XML or JSON, also compressed), result records (.json), result files and Parquet
    tables of FD.io CSIT, results of NFVbench and DPDK's DTS, ZIP archives, and folders of these. Tables in a bucket
    (S3) are copied into the dataset's folder `buckets` first, those that are new or have changed. Files with the same
    content are added once, whatever their names. Files that cannot be read in full are reported, and the others are
    imported; the exit status is then 1.

    \b
    Examples:
    ./csit import results/ -o history --label nightly
    ./csit import /archive/2026-11.zip -o history
    ./csit import nfv/ -o density --place '{service}_{instances}c{nfs}n'
    ./csit import 's3://BUCKET/csit/parquet?region=eu-central-1' -o history
    ./csit report history -o site
    """  # noqa: D301 - \b keeps the lines of the examples apart
    from csit_utils.dataset.foreign.place import NameTemplate  # noqa: PLC0415 - pydantic costs time of every --help
    from csit_utils.dataset.store.batch import imported_twice  # noqa: PLC0415 - pyarrow costs time of every --help
    from csit_utils.dataset.store.layout import Layout  # noqa: PLC0415 - as above
    from csit_utils.dataset.store.tables import convert_without_pandas  # noqa: PLC0415 - as above

    convert_without_pandas()
    buckets = {path: Bucket.parse(str(path)) for path in inputs if _ADDRESS.match(str(path))}
    if missing := [path for path in inputs if path not in buckets and not path.exists()]:
        raise ConfigError(f"{quoted(str(missing[0]))} does not exist; nothing was imported")
    template = NameTemplate(place) if place is not None else None
    layout = Layout.make(output)
    inputs = [_copied(buckets[path], output / "buckets") if path in buckets else path for path in inputs]
    run = os.path.commonpath([path.resolve() for path in inputs])
    frames, others = Counter[str](), list[str]()

    def placed(item: ImportedTest) -> ImportedTest:
        if template is None or item.row.service_type is not None:
            return item
        found = template.placed(item, run)
        if found.row.service_type is None:
            others.append(item.row.source)
            return found
        frames[found.row.frame or "unknown"] += 1
        # A file for each test: commands that read the newest run read the whole matrix.
        return replace(found, row=replace(found.row, run=run))

    before = layout.digests()
    tests, files, problems = 0, Counter[str](), list[str]()
    with layout.writing(lambda: typer.echo(f"{output}: waiting for another import to finish", err=True)):
        for outcome in shown_imports(layout, inputs, label, processes, placed=placed):
            files.update({name: int(getattr(outcome, name)) for name in ("files", "added", "earlier", "repeated")})
            tests += 0 if outcome.known else outcome.tests
            problems += outcome.problems
        twice = imported_twice(layout, before)
    print_problems([message(text) for text in problems])
    if form is TableForm.JSON:
        figures = {"dataset": str(output), "files": files["files"], "known": files["earlier"]}
        figures |= {"repeated": files["repeated"], "tests": tests - twice, "same_tests": twice, "problems": problems}
        figures |= {"placed": frames.total(), "not_placed": len(others)}
        typer.echo(json.dumps(figures))
    else:
        print_sentence(f"{output}: {'; '.join(_done(tests - twice, twice, files))}")
        if template is not None:
            for sentence in _placed(template.text, frames, others, files["earlier"]):
                print_sentence(sentence)
    if problems:
        raise typer.Exit(1)


def _copied(bucket: Bucket, folder: Path) -> Path:
    with ReadingProgress("MB") as progress:
        return bucket.copy(folder, lambda done, size: progress(done / 1e6, max(1, round(size / 1e6))))


def _done(tests: int, twice: int, files: Mapping[str, int]) -> Iterator[str]:
    added, earlier, repeated = (counted(files[name], "file") for name in ("added", "earlier", "repeated"))
    yield f"{counted(tests, 'test')} of {added} added" if files["added"] else "nothing added"
    if twice:
        yield f"{counted(twice, 'test')} the same as in another file"
    if files["repeated"]:
        yield f"{repeated} with the same results as others of this import"
    if files["earlier"]:
        yield f"{earlier} already there"


def _placed(template: str, frames: Mapping[str, int], others: Sequence[str], earlier: int) -> Iterator[str]:
    """Yield what became of the tests: those placed by frame, and the files of the others."""
    text = f"{counted(sum(frames.values()), 'test')} placed, {len(others)} not"
    yield f"{text}: names of files that are not of the form {template}, such as {quoted(others[0])}" if others else text
    if len(frames) > 1:
        counts = (f"{frame} in {counted(count, 'test')}" for frame, count in sorted(frames.items()))
        yield f"frame sizes, as the files state them: {'; '.join(counts)}"
    if earlier:
        yield "files already there keep their places; another template needs a new folder"
