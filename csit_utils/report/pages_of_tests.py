"""Pages of single tests, written by several processes."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from csit_utils.report.rendered import Rendered, shell
from csit_utils.report.report_context import ReportContents
from csit_utils.report.tests_shown import rendered
from resources.libraries.python.paths import write_whole

TESTS = "tests"
"""Folder of the pages of single tests."""
_BATCH = 8
_FEW = 32
"""Tests per process below which another process is not worthwhile."""


@dataclass(frozen=True)
class TestPages:
    """Data shared by all pages of tests."""

    __test__ = False  # not a pytest class

    shown: ReportContents
    folder: Path
    places: Mapping[str, str]
    """File of each anchor of the site."""
    missing: Mapping[str, str]
    """Text of links without a target, by anchor."""
    navigation: Sequence[tuple[str, Rendered]]

    def write(self, processes: int = 1, progress: Callable[[int, int], None] | None = None) -> None:
        """Write all pages.

        Args:
            processes: Number of processes; more than one only for contents in memory, since they are forked.
            progress: Called with the number of written pages and the total.
        """
        anchors = [row.anchor for row in self.shown.rows if row.anchor in self.shown.paged]
        written = self._forked(anchors, processes) if processes > 1 and len(anchors) > _FEW else map(self._one, anchors)
        for count, _ in enumerate(written, 1):
            if progress is not None:
                progress(count, len(anchors))

    def _one(self, anchor: str) -> None:
        page = rendered(self.shown, anchor).linked(self.places, "../", self.missing)
        html = shell(self.shown, [page], self.navigation, assets="../assets/")
        write_whole(self.folder / TESTS / f"{anchor}.html", html)

    def _forked(self, anchors: Sequence[str], processes: int) -> Iterator[None]:
        # The first page fills caches that the forked processes share.
        self._one(anchors[0])
        yield
        _SHARED.append(self)
        gc.freeze()  # else a collection would copy the shared memory pages
        try:
            with multiprocessing.get_context("fork").Pool(processes) as pool:
                yield from pool.imap_unordered(_write, anchors[1:], chunksize=_BATCH)
        finally:
            gc.unfreeze()
            _SHARED.pop()


_SHARED: list[TestPages] = []
"""Inherited by forked processes: it is too large to be sent to them."""


def _write(anchor: str) -> None:
    _SHARED[-1]._one(anchor)
