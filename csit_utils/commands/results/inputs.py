"""Inputs that commands share, and progress on a terminal."""

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar
from weakref import finalize

import typer

from csit_utils.analysis.runs import Choice, newest
from csit_utils.dataset.inputs import files_of
from csit_utils.dataset.items import Problem, ReadError
from csit_utils.dataset.reference import reference_items
from csit_utils.dataset.store.layout import Layout, is_dataset
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.quantities import counted
from resources.libraries.python.redaction import command_text

if TYPE_CHECKING:
    from csit_utils.dataset.store.batch import FileImport
    from csit_utils.dataset.store.stored_contents import Stored

_MAX_REASONS = 2
_MAX_PRINTED = 50
"""Problems that are printed one by one. An archive of a stranger can have thousands."""

INPUTS = Annotated[
    list[Path],
    typer.Argument(
        help="Folders of runs, or files of them: output.xml, Robot's JSON, result records (.json); results of CSIT "
        "(also Parquet), NFVbench and DTS (also compressed); or a dataset of ./csit import.",
        metavar="FILE",
        readable=False,  # one that cannot be read is left out and named
    ),
]

_MAX_TESTS = typer.Option(
    "--max-tests",
    metavar="N",
    min=1,
    help="Tests of a dataset that are read: the newest runs of each testbed up to this number, at least one run.",
)
MAX_TESTS = Annotated[int, _MAX_TESTS]
MAX_TESTS_OR_NIGHT = Annotated[int | None, _MAX_TESTS]
"""None: those of the newest night."""


LARGE_BYTES = 4_000_000
"""Size of files, about 200 tests, from which details of records are validated only where they are read."""


@dataclass(frozen=True)
class OpenedInputs:
    """Datasets, and one made of the other files, which is removed with this object."""

    inputs: list[Path]
    layouts: tuple[Layout, ...]
    problems: tuple[Problem, ...]
    """Of files that could not be imported in full."""
    validated: bool
    """Whether all records are valid; else details that are damaged are found when they are read, as a `ReadError`."""

    def contents(
        self,
        *,
        of_density: bool = False,
        columns: Collection[str] | None = None,
        choose: Choice = newest,
        published: Sequence[str] = (),
        may_be_empty: bool = False,
    ) -> "Stored":
        """Return what is in them, read on demand. Say on stderr which runs of datasets are left out.

        `of_density`: whether density tests are needed; records of other studies are not enough.
        `columns`: those of rows that are read; None for all of them.
        `may_be_empty`: whether contents without a test are no error.

        Raises:
            ConfigError: There is no readable test.
        """
        from csit_utils.dataset.store.stored_contents import Stored  # noqa: PLC0415 - pyarrow costs time of every --help

        found = Stored(*self.layouts, wanted=columns, choose=choose, problems=self.problems)
        if not may_be_empty and not found.tests and (of_density or not found.characterizations):
            if found.characterizations and not found.problems:
                names = ", ".join(map(str, self.inputs))
                raise ConfigError(f"{names}: contains other studies, but no density tests")
            _refuse(self.inputs, found.problems)
        if found.left_out:
            typer.echo(found.left_out, err=True)
        if published:
            figures = _published(published)
            found = Stored(*self.layouts, figures, wanted=columns, choose=choose, problems=self.problems)
        return found


def opened(inputs: list[Path], *, quickly: bool = False, meanwhile: Callable[[], object] | None = None) -> OpenedInputs:
    """Open datasets, and import other files into a temporary one.

    `quickly`: whether not all details of records of large files are validated.
    `meanwhile`: called while other processes read; not called where none do.

    Raises:
        ConfigError: A dataset has another version, or there is no room for a temporary one.
    """
    from csit_utils.dataset.store.tables import convert_without_pandas  # noqa: PLC0415 - as in OpenedInputs

    convert_without_pandas()
    datasets = [Layout(path) for path in inputs if is_dataset(path)]
    files = [path for path in inputs if not is_dataset(path)]
    if not files:
        return OpenedInputs(inputs, tuple(datasets), (), validated=True)
    validated = not quickly or sum(map(_size, files)) < LARGE_BYTES
    try:
        layout = TemporaryLayout()
        with layout.writing(lambda: None):
            outcomes = shown_imports(layout, files, meanwhile=meanwhile, validated=validated)
            problems = [Problem(each.source, text) for each in outcomes for text in each.problems]
        # Those of files that were imported in part are in the dataset too.
        known = {text for each in layout.imports() for text in each.problems}
    except OSError as error:
        place = tempfile.gettempdir()
        raise ConfigError(f"{place}: no temporary dataset: {error.strerror or error}; set TMPDIR") from error
    return OpenedInputs(
        inputs, (*datasets, layout), tuple(each for each in problems if each.text not in known), validated
    )


def refuse_no_dataset(folder: Path) -> None:
    """Refuse what is no dataset.

    Raises:
        ConfigError: The folder is none.
    """
    if not is_dataset(folder):
        made = command_text("./csit", "import", folder, "-o", "history")
        raise ConfigError(f"{folder}: not a dataset; make one by ", made)


def _size(path: Path) -> int:
    found = (place for place in files_of(path) if isinstance(place, Path))
    return sum(place.stat().st_size for place in found if place.is_file())


def _published(names: Sequence[str]) -> Layout:
    from csit_utils.dataset.store.staging import stage  # noqa: PLC0415 - as in OpenedInputs
    from csit_utils.dataset.testrows import item_row  # noqa: PLC0415 - as above

    layout = TemporaryLayout()
    with layout.writing(lambda: None):
        for name in names:
            items = reference_items(name)
            digest = sha256(name.encode()).hexdigest()
            rows = (item_row(item, item.digest) for item in items)
            layout.commit(stage(layout, rows, items[0].row.source, digest, None))
    return layout


_PREFIX = "csit-report-"
_STARTING_S = 600.0
"""Age from which a folder without a lock is that of a killed process: a process locks the folder after it is made."""


class TemporaryLayout(Layout):
    """A dataset in a folder that is removed with this object; first those of killed processes are removed.

    A process holds a lock on its folder, which the kernel releases however the process ends.
    """

    def __init__(self) -> None:
        for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):
                found = old.stat(follow_symlinks=False)
                if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _STARTING_S:
                    with _locked(old):
                        shutil.rmtree(old, ignore_errors=True)
        with ExitStack() as stack:
            name = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(name))
            stack.enter_context(_locked(folder))
            Layout.make(folder / "dataset", temporary=True)
            super().__init__(folder / "dataset", temporary=True)
            finalize(self, stack.pop_all().close)


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
    work: Callable[["Stored"], _Outcome],
    choose: Choice,
    published: Sequence[str] = (),
    meanwhile: Callable[[], object] | None = None,
) -> _Outcome:
    """Return what `work` makes of the contents of all inputs.

    If a record of large files is damaged, it is called again after every record was validated, which names the damaged
    ones and leaves them out.

    `meanwhile`: imports what `work` needs. Called while other processes read; not called where none do.

    Raises:
        ConfigError: As for `opened` and `OpenedInputs.contents`.
    """
    quick = opened(inputs, quickly=True, meanwhile=meanwhile)
    try:
        return work(quick.contents(choose=choose, published=published))
    except ReadError:
        if quick.validated:
            raise
    return work(opened(inputs).contents(choose=choose, published=published))


def _refuse(inputs: list[Path], problems: Sequence[Problem]) -> None:
    reasons = "; ".join(problem.text for problem in problems[:_MAX_REASONS])
    if len(problems) > _MAX_REASONS:
        reasons += f"; and {len(problems) - _MAX_REASONS} more"
    raise ConfigError(reasons or f"{', '.join(map(str, inputs))}: contains no tests")


def report_problems(problems: Sequence[Problem]) -> None:
    """Print on stderr which inputs could not be read in full, and exit with 1 if there are any."""
    if print_problems([problem.text for problem in problems]):
        raise typer.Exit(1)


def without(inputs: Sequence[Path], problems: Sequence[Problem], lack: str) -> ConfigError:
    """Return the error of inputs that lack what a command needs; first print their problems, which may be the reason.

    `lack`: such as `contains no chain study`.
    """
    print_problems([problem.text for problem in problems])
    return ConfigError(f"{', '.join(map(str, inputs))}: {lack}")


def print_problems(texts: Sequence[str]) -> bool:
    """Print sentences about inputs on stderr: of several alike, and of very many, the first ones and their number.

    Returns:
        Whether there are any.
    """
    if not texts:
        return False
    from csit_utils.analysis.causes import condensed  # noqa: PLC0415 - for damaged inputs only

    lines = condensed(texts)
    for text in lines[:_MAX_PRINTED]:
        typer.echo(text, err=True)
    if len(lines) > _MAX_PRINTED:
        rest = counted(len(lines) - _MAX_PRINTED, "more reason")
        typer.echo(f"and {rest} why inputs could not be read in full", err=True)
    return True


_QUIET_S = 2.0
"""Nothing is shown before."""
_BETWEEN_S = 0.5


class ReadingProgress:
    """Progress on a terminal's stderr, in a line that is overwritten; nothing elsewhere.

    Call it with the number of finished items and their total; 0 begins a kind of items that take another time each.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = self._since = time.monotonic()
        self._shown_at: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown_at is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, done: float, total: int) -> None:
        """Show progress, at most every half second."""
        now = time.monotonic()
        if not done:
            self._since = now
        is_early = not done or now - self._begun < _QUIET_S or now - (self._shown_at or 0.0) < _BETWEEN_S
        if is_early or not sys.stderr.isatty():
            return
        self._shown_at = now
        left_s = (now - self._since) / done * (total - done)
        sys.stderr.write(f"\r\x1b[K{100 * done / total:.0f} % of {total} {self._what}, about {left_s:.0f} s left")
        sys.stderr.flush()


def shown_imports(
    layout: Layout,
    paths: Sequence[Path],
    label: str | None = None,
    processes: int | None = None,
    **options: Any,  # noqa: ANN401 - of `import_all`
) -> "Iterator[FileImport]":
    """Import files into a dataset, and yield their outcomes; show progress on a terminal.

    `options`: Further arguments of `import_all`.
    """
    from csit_utils.dataset.store.batch import import_all  # noqa: PLC0415 - as in OpenedInputs

    total, done, begun, last, shown = 0, 0, 0, 0.0, 0.0
    with ReadingProgress("files") as progress:

        def show(count: float) -> None:
            nonlocal shown
            shown = max(shown, count)
            progress(shown, max(done, total, 1))

        def reading(share: float) -> None:
            nonlocal begun, last
            begun += share < last  # the next file, while the one before is committed
            last = share
            show(begun + share)

        for each in import_all(layout, paths, label, processes or os.cpu_count() or 1, reading=reading, **options):
            if isinstance(each, int):
                total = each
                continue
            done += each.files
            show(done)
            yield each
