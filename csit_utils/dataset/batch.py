"""Import of many files: those that are known are passed over, output.xml files are read by several processes."""

import hashlib
import multiprocessing
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path, PurePath

from blake3 import blake3

from csit_utils.dataset.importing import digest_of_source, import_source, json_rows, known_records
from csit_utils.dataset.inputs import Source, sources
from csit_utils.dataset.items import Problem, ReadError, RefusedCell
from csit_utils.dataset.layout import Import, Layout
from csit_utils.dataset.load import content_of
from csit_utils.dataset.staging import Row, stage

PARALLEL_BYTES = 32 * 1024 * 1024
"""Less is read sooner by one process than several are started."""


@dataclass(frozen=True)
class Outcome:
    """What became of one file."""

    source: str
    tests: int
    known: bool
    """Imported before, so that nothing was done."""
    problems: tuple[str, ...]
    files: int = 1
    """More for record files, which are taken by folder."""


def import_all(layout: Layout, paths: Iterable[Path], label: str | None, processes: int = 1) -> Iterator[Outcome | int]:
    """Import files, folders and archives; the dataset is to be locked by `Layout.writing`.

    Record files come last, and only those records are taken that no output.xml had: those tell more of a test.

    Yields:
        First how many files there are, then what became of each.
    """
    named = list(paths)
    yield sum(1 for path in named for _ in sources(path))
    on_disk: list[Source] = []
    # A file in an archive can be read as long as the archive is the one at hand.
    for each in (each for path in named for each in sources(path)):
        if isinstance(each, Problem):
            yield Outcome(each.source, 0, False, (each.text,))
        elif each.path is not None and not each.is_json:
            on_disk.append(each)
        elif not each.is_json:
            yield _import(layout, each, label)
    if processes > 1 and len(on_disk) > 1 and sum(map(_size, on_disk)) > PARALLEL_BYTES:
        largest_first = sorted(on_disk, key=_size, reverse=True)
        # Nothing has started a thread yet, and what was imported need not be imported again.
        with multiprocessing.get_context("fork").Pool(min(processes, len(on_disk))) as pool:
            work = partial(_import_path, layout.folder, label)
            yield from pool.imap_unordered(work, [each.path for each in largest_first])
    else:
        yield from (_import(layout, each, label) for each in on_disk)
    every = (each for path in named for each in sources(path) if isinstance(each, Source) and each.is_json)
    yield from _import_records(layout, every, label)


def _size(source: Source) -> int:
    with suppress(OSError):
        return source.path.stat().st_size if source.path is not None else 0
    return 0


def _import_path(folder: Path, label: str | None, path: Path) -> Outcome:
    return _import(Layout(folder), next(each for each in sources(path) if isinstance(each, Source)), label)


def _import(layout: Layout, source: Source, label: str | None) -> Outcome:
    try:
        digest = digest_of_source(source)
        known = layout.find(digest)
        if known is None and layout.claim(digest):
            made = import_source(layout, source, digest, label)
            layout.commit(made)
            return _outcome(source, made, known=False)
    except ReadError as error:
        return Outcome(source.name, 0, False, (f"{source.name}: {error}",))
    if known is None:
        return Outcome(source.name, 0, True, ())
    return _outcome(source, known, known=True)


def _outcome(source: Source, made: Import, *, known: bool) -> Outcome:
    return Outcome(source.name, made.tests, known, made.problems)


@dataclass
class _Folder:
    """Record files of one folder."""

    count: int = 0
    fresh: dict[str, list[Row | RefusedCell | Problem]] = field(default_factory=dict)
    """By digest of the file."""
    problems: list[str] = field(default_factory=list)


def _import_records(layout: Layout, files: Iterator[Source], label: str | None) -> Iterator[Outcome]:
    """Record files, one import for those of a folder: a file of its own for each would be slow to read."""
    first = next(files, None)
    if first is None:
        return
    imports = layout.imports()
    known = known_records(layout, imports) | {digest for each in imports for digest in each.files}
    folders: dict[str, _Folder] = defaultdict(_Folder)
    for source in chain((first,), files):
        folder = folders[str(PurePath(source.name).parent)]
        folder.count += 1
        try:
            with source.open() as stream:
                content = content_of(stream)
        except ReadError as error:
            folder.problems.append(f"{source.name}: {error}")
            continue
        digest = hashlib.sha256(content).hexdigest()
        if digest not in known:
            known.add(digest)
            folder.fresh[digest] = list(json_rows(content, source.name, digest))
    for name, folder in folders.items():
        if not folder.fresh:
            before = (text for each in imports if each.source == name for text in each.problems)
            yield Outcome(name, 0, not folder.problems, (*folder.problems, *before), folder.count)
            continue
        digest = blake3("".join(sorted(folder.fresh)).encode()).hexdigest()
        rows = chain.from_iterable(folder.fresh.values())
        made = stage(layout, rows, name, digest, label, files=tuple(folder.fresh))
        layout.commit(made)
        yield Outcome(name, made.tests, False, (*folder.problems, *made.problems), folder.count)
