"""Inputs that commands share, and progress on a terminal."""

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Protocol, Self, TypeVar

import typer

from csit_utils.dataset.contents import Contents, InMemory, JoinedContents
from csit_utils.dataset.inputs import Source, sources
from csit_utils.dataset.items import Dataset, Problem, ReadError
from csit_utils.dataset.load import load
from csit_utils.dataset.store.chosen_runs import Choice, newest
from csit_utils.dataset.store.layout import Layout, is_dataset
from resources.libraries.python.errors import ConfigError, CsitError

if TYPE_CHECKING:
    from csit_utils.dataset.store.batch import FileImport
    from csit_utils.dataset.store.stored_contents import Stored

_MAX_REASONS = 2
_MAX_PRINTED = 50
"""Problems that are printed one by one. An archive of a stranger can have thousands."""

INPUTS = Annotated[
    list[Path],
    typer.Argument(
        help="output.xml or Robot's JSON, result records (.json), results of CSIT and NFVbench (also compressed), "
        "folders of these, or a dataset of ./csit import.",
        metavar="FILE",
        readable=False,  # one that cannot be read is left out and named
    ),
]

MAX_TESTS = Annotated[
    int,
    typer.Option(
        "--max-tests",
        metavar="N",
        min=1,
        help="Tests of a dataset that are read: the newest runs of each testbed as far as these, at least one.",
    ),
]


class _WithProblems(Protocol):
    @property
    def problems(self) -> Sequence[Problem]:
        """Inputs that could not be read in full."""


def contents_of(
    inputs: list[Path],
    *,
    characterizations: bool = False,
    columns: Collection[str] | None = None,
    choose: Choice = newest,
    may_be_empty: bool = False,
) -> Contents:
    """Return the contents of all inputs; datasets are read lazily. Say on stderr which runs of them are left out.

    Args:
        inputs: Files, folders and datasets.
        characterizations: Whether studies alone are enough, without density tests.
        columns: Those of rows of datasets that are read; None for all of them.
        choose: Chooses the runs of datasets that are read.
        may_be_empty: Whether contents without a test are no error.

    Raises:
        ConfigError: The inputs have no readable test, or a dataset has a newer version.
    """
    files = [path for path in inputs if not is_dataset(path)]
    found: list[Contents] = [_stored(path, columns, choose) for path in inputs if is_dataset(path)]
    if files:
        found.append(InMemory(_loaded(files)))
    joined = found[0] if len(found) == 1 else JoinedContents(*found)
    if not may_be_empty and not joined.tests and not (characterizations and joined.characterizations):
        if joined.characterizations and not joined.problems:
            raise ConfigError(f"{', '.join(map(str, inputs))}: contains other studies, but no density tests")
        _refuse(inputs, joined.problems)
    if joined.left_out:
        typer.echo(joined.left_out, err=True)
    return joined


def _loaded(files: list[Path]) -> Dataset:
    with ReadingProgress("files") as progress:
        return load(files, progress)


LARGE_BYTES = 4_000_000
"""Size of files, about 200 tests, from which a temporary dataset is faster than validation of every record."""


@contextmanager
def quickly_read(inputs: list[Path], meanwhile: Callable[[], object] | None = None) -> Iterator[list[Path]]:
    """Yield inputs with the same contents for `contents_of`: of large files a temporary dataset, read on demand.

    Damage in the details of a record is found when they are read, as a `ReadError`. Files with any other problem are
    yielded as they are, and so are record files that no output.xml contains.

    Args:
        inputs: Files, folders and datasets.
        meanwhile: Called while other processes read; not called where none do.
    """
    files = [path for path in inputs if not is_dataset(path)]
    found = [each for path in files for each in sources(path)]
    places = [each.path for each in found if isinstance(each, Source) and each.path is not None and not each.is_json]
    size = sum(path.stat().st_size for path in places)
    if size < LARGE_BYTES:
        yield inputs
        return
    from csit_utils.dataset.store.batch import import_all  # noqa: PLC0415 - as in _stored
    from csit_utils.dataset.store.columns import convert_without_pandas  # noqa: PLC0415 - as in _stored

    convert_without_pandas()
    with _temporary_folder() as folder:
        layout = Layout.make(folder / "dataset", temporary=True)
        has_tests = has_problems = False
        try:
            with layout.writing(lambda: None):
                for each in shown_imports(import_all(layout, files, None, os.cpu_count() or 1, meanwhile)):
                    has_tests, has_problems = has_tests or each.tests > 0, has_problems or bool(each.problems)
                    if each.made is not None:  # its rows are read while other processes have work, not after them
                        _temporary(layout).read_ahead(each.made)
            # A dataset takes record files in a folder as one run.
            whole = has_tests and not has_problems and not any(each.files for each in layout.imports())
        except (OSError, CsitError):  # such as a full disk
            whole = False
        try:
            yield [*filter(is_dataset, inputs), layout.folder] if whole else inputs
        finally:
            _TEMPORARY.pop(layout.folder, None)


_PREFIX = "csit-report-"


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed at the end; first remove those of killed processes.

    A process holds a lock on its folder, which the kernel releases however the process ends.
    """
    for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if old.stat(follow_symlinks=False).st_uid == os.geteuid():
                with _locked(old):
                    shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, _locked(Path(name)):
        yield Path(name)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder.

    Raises:
        OSError: Another process has locked it, or it is not a folder.
    """
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)


_Outcome = TypeVar("_Outcome")


def from_contents(
    inputs: list[Path],
    work: Callable[[Contents], _Outcome],
    choose: Choice,
    meanwhile: Callable[[], object] | None = None,
) -> _Outcome:
    """Return what `work` makes of the contents of all inputs, studies alone included.

    Of large files it is called with a temporary dataset, and if a record is damaged, again with every record validated,
    which names the damaged ones and leaves them out.

    Args:
        inputs: Files, folders and datasets.
        work: Called with their contents.
        choose: Chooses the runs of datasets that are read.
        meanwhile: Imports what `work` needs. Called while other processes read; not called where none do.

    Raises:
        ConfigError: As for `contents_of`.
    """
    with quickly_read(inputs, meanwhile) as quick:
        try:
            return work(contents_of(quick, characterizations=True, choose=choose))
        except ReadError:
            if quick is inputs:
                raise
    return work(contents_of(inputs, characterizations=True, choose=choose))


_TEMPORARY: dict[Path, "Stored"] = {}
"""Contents of temporary datasets by folder, whose rows have been read while they were made."""


def _temporary(layout: Layout) -> "Stored":
    from csit_utils.dataset.store.stored_contents import Stored  # noqa: PLC0415 - as in _stored

    return _TEMPORARY.setdefault(layout.folder, Stored(layout))


def _stored(path: Path, wanted: Collection[str] | None, choose: Choice) -> Contents:
    from csit_utils.dataset.store.columns import convert_without_pandas  # noqa: PLC0415 - pyarrow costs time, and files do not need it
    from csit_utils.dataset.store.stored_contents import Stored  # noqa: PLC0415 - as above

    convert_without_pandas()
    return _TEMPORARY.get(path) or Stored(Layout(path), wanted, choose)


def read(inputs: list[Path]) -> Dataset:
    """Read all inputs, with every record of datasets.

    Raises:
        ConfigError: As for `contents_of`.
    """
    dataset = _loaded([path for path in inputs if not is_dataset(path)])
    for path in inputs:
        if is_dataset(path):
            from csit_utils.dataset.store.stored_contents import Stored  # noqa: PLC0415 - as above

            for item in Stored(Layout(path)).items():
                dataset.add(item)
    if not any((dataset.recorded, dataset.unrecorded, dataset.foreign, dataset.characterizations)):
        _refuse(inputs, dataset.problems)
    return dataset


def _refuse(inputs: list[Path], problems: Sequence[Problem]) -> None:
    reasons = "; ".join(problem.text for problem in problems[:_MAX_REASONS])
    if len(problems) > _MAX_REASONS:
        reasons += f"; and {len(problems) - _MAX_REASONS} more"
    raise ConfigError(reasons or f"{', '.join(map(str, inputs))}: contains no tests")


def report_problems(found: _WithProblems) -> None:
    """Print on stderr which inputs could not be read in full, and exit with 1 if there are any."""
    if print_problems([problem.text for problem in found.problems]):
        raise typer.Exit(1)


def without(inputs: Sequence[Path], found: _WithProblems, lack: str) -> ConfigError:
    """Return the error of inputs that lack what a command needs; first print their problems, which may be the reason.

    Args:
        inputs: Files, folders and datasets.
        found: Their contents.
        lack: Such as `contains no chain study`.
    """
    print_problems([problem.text for problem in found.problems])
    return ConfigError(f"{', '.join(map(str, inputs))}: {lack}")


def print_problems(texts: Sequence[str]) -> bool:
    """Print sentences about inputs on stderr, a line each, those beyond the first ones as a number.

    Returns:
        Whether there are any.
    """
    for text in texts[:_MAX_PRINTED]:
        typer.echo(text, err=True)
    if len(texts) > _MAX_PRINTED:
        typer.echo(f"and {len(texts) - _MAX_PRINTED:,} more inputs that could not be read in full", err=True)
    return bool(texts)


_QUIET_S = 3.0
"""Nothing is shown before."""
_BETWEEN_S = 0.5


class ReadingProgress:
    """Progress on a terminal's stderr, in a line that is overwritten; nothing elsewhere.

    Call it with the number of finished items and their total.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._shown_at: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown_at is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, done: int, total: int) -> None:
        """Show progress, at most every half second."""
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._begun < _QUIET_S or now - (self._shown_at or 0.0) < _BETWEEN_S:
            return
        self._shown_at = now
        left_s = (now - self._begun) / done * (total - done)
        sys.stderr.write(f"\r\x1b[K{done} of {total} {self._what}, about {left_s:.0f} s left")
        sys.stderr.flush()


def shown_imports(outcomes: "Iterable[FileImport | int]") -> "Iterator[FileImport]":
    """Yield the outcomes of an import, and show progress on a terminal.

    Args:
        outcomes: Those of `import_all`, and the number of files where it is known.
    """
    total, done = 0, 0
    with ReadingProgress("files") as progress:
        for each in outcomes:
            if isinstance(each, int):
                total = each
                continue
            done += each.files
            progress(done, max(done, total))
            yield each
