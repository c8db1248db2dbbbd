"""Studies of simulated systems against the known truth: a table with a promised bound for each line."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, TypeVar

from scipy.stats import binomtest


class BoundedQuantity(NamedTuple):
    """A quantity, its worst or mean value over simulated studies, and its promised upper bound."""

    what: str
    value: float
    bound: float
    unit: str
    note: str = ""
    low: float | None = None
    """Lower end of the 95 % interval of a share, which few studies do not know well; None: `value` is exact."""

    @property
    def holds(self) -> bool:
        """Whether the bound is not refuted."""
        return (self.value if self.low is None else self.low) <= self.bound


def share(what: str, wrong: Sequence[bool], bound: float, of: str = "studies", note: str = "") -> BoundedQuantity:
    """Return the share of wrong outcomes in percent, with its Wilson interval."""
    count = len(wrong)
    found = binomtest(sum(wrong), max(1, count)).proportion_ci(method="wilson")
    note = f"{sum(wrong)} of {count}, 95 % interval {100 * found.low:.1f} to {100 * found.high:.1f} %; {note}"
    return BoundedQuantity(
        what, 100 * sum(wrong) / max(1, count), bound, f"% of {of}", note.rstrip("; "), 100 * found.low
    )


_Asked = TypeVar("_Asked")
_Found = TypeVar("_Found")


def each_of(study: Callable[[_Asked], _Found], asked: Iterable[_Asked]) -> list[_Found]:
    """Simulate studies in as many processes as there are CPUs."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(study, asked, chunksize=4))


def print_table(table: Callable[[int], Iterable[BoundedQuantity]], studies: int = 100) -> None:
    """Print a table of so many studies (`--studies`) in Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=studies, help="simulated studies of each kind")
    for line in _markdown(table(parser.parse_args().studies)):
        print(line)


def _markdown(lines: Iterable[BoundedQuantity]) -> Iterator[str]:
    yield "| quantity | found | bound | unit | |"
    yield "|---|---:|---:|---|---|"
    for line in lines:
        yield f"| {line.what} | {line.value:.3g} | {line.bound:.3g} | {line.unit} | {line.note} |"
