"""Time and memory of the report of ten thousand tests, against `rebot`, which makes Robot's own log and report."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csit_utils.bench.results.dataset_import import CELLS, NIGHTS, TESTS, night_files
from resources.libraries.python.errors import CsitError
from resources.libraries.python.paths import PROJECT

GOAL_S = 5.0
PAGE_GOAL_S = 1.0
_PAGES = 24
"""The largest pages are opened."""
_WHEN_READY = (
    "new MutationObserver(() => { if (document.documentElement.dataset.ready === 'yes')"
    " window.readyMs ??= performance.now(); }).observe(document, { attributes: true, subtree: true });"
)


@dataclass(frozen=True)
class _Ended:
    """A process that has ended."""

    taken_s: float
    cpu_s: float
    """Of all its processes."""
    peak_bytes: int
    """Of its largest process."""


@dataclass(frozen=True)
class _SlowestPage:
    """The page of those opened that took longest until its script had ended."""

    name: str
    ready_s: float
    """From the begin of its navigation."""
    pages: int
    """Opened ones."""


def measure(cells: str = CELLS, tests: int = TESTS, nights: int = NIGHTS) -> dict[str, Any]:
    """Write reports of nights of simulated tests on both sides, each once as a command, with its start.

    The peer writes all tests into its log; ours is the default: pages of the latest runs, of failures and of changes.

    Returns:
        `ours` and `peer` in seconds, `ratio`, and in the note the CPU time, the memory for a night and for all, and,
        where Chromium is installed, how long the slowest of the largest pages takes until readers can use it.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = night_files(root, cells, tests, nights)
        peer = _run(["robot.rebot", "--outputdir", root / "rebot", "--nostatusrc", *files])
        ours = _run(["csit_utils", "report", *files, "-o", root / "report"])
        small = _run(["csit_utils", "report", files[0], "-o", root / "small"]) if nights > 1 else ours
        pages = sum(1 for _ in (root / "report").rglob("*.html"))
        megabytes = sum(file.stat().st_size for file in files) / 1e6
        slowest = _slowest_page(root)
    return {
        "name": "report_time",
        "ours": round(ours.taken_s, 2),
        "peer": round(peer.taken_s, 2),
        "ratio": round(peer.taken_s / ours.taken_s, 2),
        "unit": "s",
        "note": (
            f"{len(files)} files, {megabytes:.0f} MB, simulated tests; {pages} pages; goal {GOAL_S:g} s; CPU time "
            f"{ours.cpu_s:.1f} s, peer {peer.cpu_s:.1f} s; memory {small.peak_bytes / 1e6:.0f} MB for a file, "
            f"{ours.peak_bytes / 1e6:.0f} MB for all, peer {peer.peak_bytes / 1e6:.0f} MB"
            + (
                f"; the slowest of {slowest.pages} pages in Chromium, {slowest.name}, can be used after "
                f"{slowest.ready_s:.2f} s, goal {PAGE_GOAL_S:g} s"
                if slowest
                else ""
            )
        ),
        "detail": {"cpu_s": round(ours.cpu_s, 2), "pages": pages, "page_s": slowest and round(slowest.ready_s, 3)},
    }


def _slowest_page(root: Path) -> _SlowestPage | None:
    """Open the largest pages of the report in a browser; None without one."""
    from tests.chromium import CHROMIUM, Chromium  # noqa: PLC0415 - the browser of the tests, needed here only

    if CHROMIUM is None:
        return None
    pages = [page for page in (root / "report").rglob("*.html") if page.name != "message.html"]  # that has no script
    largest = sorted(pages, key=lambda page: page.stat().st_size)[-_PAGES:]
    (root / "chromium").mkdir()
    with Chromium(root / "chromium") as browser:
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=_WHEN_READY)
        taken_s = {}
        for page in largest:
            browser.open(page)
            taken_s[page.name] = browser.value("window.readyMs") / 1e3
    name = max(taken_s, key=taken_s.__getitem__)
    return _SlowestPage(name, taken_s[name], len(largest))


def _run(module: Sequence[str | Path]) -> _Ended:
    """Run a Python module with its arguments.

    Raises:
        CsitError: It failed.
    """
    with tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", *map(str, module)], cwd=PROJECT, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        taken_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise CsitError(f"{module[0]} exited with status {process.returncode}: {output.read()[-500:].decode()}")
    return _Ended(taken_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
