"""Import of result files into a dataset, in constant memory.

Known files are skipped, output.xml files are read by several processes.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from blake3 import blake3

from csit_utils.dataset.blocks import BLOCK_BYTES
from csit_utils.dataset.foreign.csit import read_table
from csit_utils.dataset.inputs import Kind, Source, content_of, files_of, sources_of_file
from csit_utils.dataset.items import ImportedTest, Problem, ReadError
from csit_utils.dataset.load import named_problem, read_json
from csit_utils.dataset.store.bounded_files import (
    DETAIL_COLUMNS,
    check_details,
    detail_digests,
    opened,
)
from csit_utils.dataset.store.layout import CHARACTERIZATIONS, DETAILS, TESTS, Import, Layout
from csit_utils.dataset.store.staging import stage
from csit_utils.dataset.store.tables import OPTIONAL, TEST_COLUMNS, TEST_NAMES
from csit_utils.dataset.testrows import Entry, item_row, rows_of_output
from csit_utils.processes import shared


def _digest_of_source(source: Source) -> str:
    """Return the digest of the unpacked content of a file.

    Raises:
        ReadError: The file is unreadable.
    """
    digest = blake3()
    with source.open() as stream:
        try:
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
        except (ReadError, OSError) as error:
            # The part before the damage is imported, which is not the whole file.
            digest.update(f"\0{error}".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Target:
    """Where files are imported, and how."""

    layout: Layout
    label: str | None
    validated: bool
    reading: Callable[[float], object]


@dataclass
class _Counted:
    """A stream that reports which share of its file has been read."""

    stream: BinaryIO
    size: int
    """That of the file, which may be packed."""
    reading: Callable[[float], object]
    count: int = 0

    def read(self, size: int = -1) -> bytes:
        """Read at most so many bytes."""
        block = self.stream.read(size)
        self.count += len(block)
        self.reading(min(0.99, self.count / max(1, self.size)))
        return block


def _import_source(into: _Target, source: Source, digest: str) -> Import:
    """Stage the contents of a file; `Layout.commit` adds them to the dataset.

    Raises:
        ReadError: The file is unreadable.
    """
    with source.open() as stream:
        if source.kind is Kind.PARQUET:
            rows: Iterator[Entry] = (item_row(item, digest) for item in read_table(content_of(stream), source.name))
        else:
            counted = cast(BinaryIO, _Counted(stream, _size(source), into.reading))
            rows = rows_of_output(counted, source, validated=into.validated)
        return stage(into.layout, rows, source.name, digest, into.label)


Placing = Callable[[ImportedTest], ImportedTest]
"""Gives a test of another tool its place in the matrix."""


def _known_records(layout: Layout, imports: Collection[Import]) -> set[str]:
    """Return the digests of all records of a dataset.

    Raises:
        ReadError: A file of it is damaged.
    """
    paths = [layout.path(DETAILS, part) for each in imports for part in each.parts]
    paths += [layout.characterizations(each) for each in imports if each.characterizations]
    found: set[str] = set()
    for path in paths:
        try:
            found |= detail_digests(path)
        except ReadError as error:
            raise ReadError(f"{path}: damaged; import its file again: {error}") from error
    return found


def imported_twice(layout: Layout, before: Collection[str]) -> int:
    """Return the number of tests of new imports that the dataset has from another file, too.

    A test is in one night of one testbed: only files of these are read, and those with records of other studies.

    `before`: digests of the imports that were there.
    """
    imports = sorted(layout.imports(damaged=[]), key=lambda each: each.digest not in before)
    files: dict[object, list[tuple[bool, Callable[[], Path]]]] = defaultdict(list)
    for each in imports:
        is_new = each.digest not in before
        for part in each.parts:
            files[part.testbed, part.night].append((is_new, partial(layout.path, DETAILS, part)))
        if each.characterizations:
            files[CHARACTERIZATIONS].append((is_new, partial(layout.characterizations, each)))
    twice = 0
    for group in files.values():
        known: set[str] = set()
        for is_new, path in group if group[-1][0] and len(group) > 1 else ():
            with suppress(ReadError):  # one that is damaged is named when it is read
                found = detail_digests(path())
                twice += len(found & known) if is_new else 0
                known |= found
    return twice


def is_whole(layout: Layout, made: Import) -> bool:
    """Whether the files of an import can be read; where not, it is imported again."""
    try:
        for part in made.parts:
            check_details(layout.path(DETAILS, part))
            path = layout.path(TESTS, part)
            with opened(path, TEST_COLUMNS, TEST_NAMES, optional=OPTIONAL, rows=part.tests):
                pass
        if made.characterizations:
            path, needed = layout.characterizations(made), ("digest", "record")
            with opened(path, DETAIL_COLUMNS, needed, rows=made.characterizations):
                pass
    except ReadError:
        return False
    return True


PARALLEL_BYTES = 32 * 1024 * 1024
"""Size below which starting several processes takes longer than reading by one."""
_COMMITS = 8
"""Number of parallel commits: each waits for the disk, which serves several at once."""


@dataclass(frozen=True)
class FileImport:
    """Outcome of the import of one file."""

    source: str
    tests: int
    problems: tuple[str, ...]
    files: int = 1
    """More than 1 for record files, which are imported by folder."""
    added: int = 0
    """Files of which something was added."""
    earlier: int = 0
    """Files whose results were there before this import."""
    repeated: int = 0
    """Files whose results another file of this import has, too."""

    @property
    def known(self) -> bool:
        """Whether nothing was to be done."""
        return self.earlier + self.repeated == self.files


_Staged = FileImport | tuple[str, Import | str]
"""An outcome; or the name of a file, with the import to commit or the digest of an existing one."""


def import_all(
    layout: Layout,
    paths: Iterable[Path],
    label: str | None,
    processes: int = 1,
    meanwhile: Callable[[], object] | None = None,
    *,
    validated: bool = False,
    placed: Placing = lambda item: item,
    reading: Callable[[float], object] = lambda _: None,
) -> Iterator[FileImport | int]:
    """Import files, folders and archives; the caller holds the lock of `Layout.writing`.

    Record files come last, and only records without an output.xml are imported, which has more data on a test.

    `meanwhile`: called by this process while others read; not called where it reads alone.
    `validated`: whether details of records are validated too, which takes ten times as long. Else those that are
      damaged are found when they are read.
    `placed`: called with each test of another tool that has a file of its own.
    `reading`: called with the share of the present output.xml that this process has read.

    Yields:
        The number of files, then the outcome of each.
    """
    into = _Target(layout, label, validated, reading)
    places, number = _places(paths)
    yield number
    before = layout.digests()
    on_disk: list[Source] = []
    yield from _committed(layout, before, _staged_alone(into, _opened(places), on_disk))
    yield from _committed(layout, before, _staged(into, on_disk, processes, meanwhile))
    every = (each for each in _opened(places) if isinstance(each, Source) and each.is_json)
    yield from _import_records(layout, before, every, label, placed)


_Place = Source | Problem | Path
"""A file; or the path of an archive, whose files are readable only while it is open."""


def _places(paths: Iterable[Path]) -> tuple[list[_Place], int]:
    """Return what is at paths, each file opened once to see what it is, and the number of files."""
    places: list[_Place] = []
    number = 0
    for place in chain.from_iterable(map(files_of, paths)):
        found = list(sources_of_file(place))
        number += len(found)
        single = len(found) == 1 and (isinstance(found[0], Problem) or found[0].path is not None)
        places += found if single else (place,)
    return places, number


def _opened(places: Iterable[_Place]) -> Iterator[Source | Problem]:
    for each in places:
        yield from sources_of_file(each) if isinstance(each, Path) else (each,)


def _staged_alone(into: _Target, every: Iterable[Source | Problem], on_disk: list[Source]) -> Iterator[_Staged]:
    """Stage files in archives, which are readable only while the archive is open; collect the others in `on_disk`."""
    for each in every:
        if isinstance(each, Problem):
            yield FileImport(each.source, 0, (each.text,))
        elif each.path is not None and not each.is_json:
            on_disk.append(each)
        elif not each.is_json:
            yield _stage(into, each)


def _staged(
    into: _Target, files: list[Source], processes: int, meanwhile: Callable[[], object] | None
) -> Iterator[_Staged]:
    """Stage files, by several processes if that is faster."""
    if processes == 1 or len(files) < 2 or sum(map(_size, files)) < PARALLEL_BYTES:
        yield from _staged_in_turn(into, files)
        return
    largest_first = sorted(files, key=_size, reverse=True)
    quiet = replace(into, reading=lambda _: None)  # of several at once there is no present one
    yield from shared(partial(_stage, quiet), largest_first, processes, meanwhile=meanwhile)


def _size(source: Source) -> int:
    with suppress(OSError):
        return source.path.stat().st_size if source.path is not None else 0
    return 0


def _staged_in_turn(into: _Target, files: list[Source]) -> Iterator[_Staged]:
    """Stage files by this process; a thread makes the digest of the next one meanwhile, mostly without the GIL."""
    ahead: deque[Future[str]] = deque()
    later = iter(files)
    with ThreadPoolExecutor(1) as thread:
        for each in files:
            ahead.extend(thread.submit(_digest_of_source, one) for one in islice(later, 2 - len(ahead)))
            yield _stage(into, each, ahead.popleft())


def _stage(into: _Target, source: Source, known: Future[str] | None = None) -> _Staged:
    layout = into.layout
    try:
        digest = _digest_of_source(source) if known is None else known.result()
        earlier = layout.find(digest)
        if (earlier is None or not is_whole(layout, earlier)) and layout.claim(digest):
            return source.name, _import_source(into, source, digest)
    except ReadError as error:
        return FileImport(source.name, 0, (named_problem(source, error).text,))
    return source.name, digest


def _committed(layout: Layout, before: Collection[str], staged: Iterator[_Staged]) -> Iterator[FileImport]:
    """Commit staged files while the next ones are read: waiting for the disk takes a tenth of the reading time."""
    known: list[tuple[str, str]] = []
    under_way: deque[Future[FileImport]] = deque()
    with ThreadPoolExecutor(_COMMITS) as committer:
        for each in staged:
            while under_way and under_way[0].done():
                yield under_way.popleft().result()
            if isinstance(each, FileImport):
                yield each
            elif isinstance(each[1], Import):
                under_way.append(committer.submit(_commit, layout, each[0], each[1]))
            else:
                known.append((each[0], each[1]))
        yield from (each.result() for each in under_way)
    for name, digest in known:
        # Two files with the same content may have been staged concurrently.
        made = layout.find(digest)
        earlier = digest in before
        tests = made.tests if made else 0
        problems = tuple(text.replace(made.source, name) for text in made.problems) if made else ()
        yield FileImport(name, tests, problems, earlier=earlier, repeated=not earlier)


def _commit(layout: Layout, name: str, made: Import) -> FileImport:
    layout.commit(made)
    return FileImport(name, made.tests, made.problems, added=1)


@dataclass
class _Folder:
    count: int = 0
    earlier: int = 0
    repeated: int = 0
    fresh: dict[str, list[Entry]] = field(default_factory=dict)
    """By digest of the file."""
    problems: list[str] = field(default_factory=list)


def _import_records(
    layout: Layout, before: Collection[str], files: Iterator[Source], label: str | None, placed: Placing
) -> Iterator[FileImport]:
    """Import record files by folder: a dataset file per record would be slow to read.

    In a temporary dataset each is a run of its own, since nothing says that those of a folder belong together.
    """
    first = next(files, None)
    if first is None:
        return
    imports = [each for each in layout.imports(damaged=[]) if is_whole(layout, each)]
    earlier, seen = (
        _known_records(layout, some) | {digest for each in some for digest in each.files}
        for some in ([each for each in imports if (each.digest in before) is there] for there in (True, False))
    )
    folders: dict[str, _Folder] = defaultdict(_Folder)
    for source in chain((first,), files):
        folder = folders[source.name if layout.temporary else str(PurePath(source.name).parent)]
        folder.count += 1
        try:
            with source.open() as stream:
                content = content_of(stream)
        except ReadError as error:
            folder.problems.append(f"{source.name}: {error}")
            continue
        digest = hashlib.sha256(content).hexdigest()
        if digest in earlier:
            folder.earlier += 1
        elif digest in seen:
            folder.repeated += 1
        else:
            seen.add(digest)
            folder.fresh[digest] = list(_json_rows(content, source.name, digest, placed))
    for name, folder in folders.items():
        done = FileImport(
            name, 0, tuple(folder.problems), folder.count, earlier=folder.earlier, repeated=folder.repeated
        )
        if not folder.fresh:
            told = (text for each in imports if each.source == name for text in each.problems)
            yield replace(done, problems=(*done.problems, *told))
            continue
        digest = blake3("".join(sorted(folder.fresh)).encode()).hexdigest()
        rows = chain.from_iterable(folder.fresh.values())
        made = stage(layout, rows, name, digest, label, files=tuple(folder.fresh))
        layout.commit(made)
        yield replace(done, tests=made.tests, problems=(*done.problems, *made.problems), added=len(folder.fresh))


def _json_rows(content: bytes, source: str, digest: str, placed: Placing) -> Iterator[Entry]:
    """Yield the rows of a record file, or of a file of another tool."""
    try:
        for item in read_json(content, source):
            yield item_row(placed(item) if isinstance(item, ImportedTest) else item, digest)
    except ReadError as error:
        yield Problem(source, str(error))
