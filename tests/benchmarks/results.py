"""Time of importing and reporting ten thousand tests, against `robot.api.ExecutionResult` and `rebot`."""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from robot.api import ExecutionResult

from csit_utils.dataset.store.batch import FileImport, import_all
from csit_utils.dataset.store.layout import Layout
from resources.libraries.python.errors import CsitError
from resources.libraries.python.paths import PROJECT
from tests.benchmarks.sides import figures, in_turns

NIGHTS = 25
"""Ten thousand tests in total, so that fixed costs of an import matter little."""
CELLS = "{1,2,4,8}x{1,2}"
TESTS = 400
"""Approximate number per file: a full matrix of three service types has 378."""
_REPORT_GOAL_S = 5.0


def measure_import(rounds: int = 5, cells: str = CELLS, tests: int = TESTS, nights: int = NIGHTS) -> dict[str, Any]:
    """Read nights of simulated tests on both sides, in turns; return medians in seconds.

    Both sides read the same files, written by Robot on a simulated system. The peer only builds its tree. Ours writes a
    dataset with rows and records to the disk. Each side has its own process, which has read one file before, so that
    imports are done.
    """
    processes = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        root = Path(folder)
        files = night_files(root, cells, tests, nights)

        def side(processes: int | None) -> Callable[[], float]:
            pool = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))
            pool.submit(seconds_of, root, files[:1], processes).result()
            return lambda: pool.submit(seconds_of, root, files, processes).result()

        found = in_turns(rounds, {"peer": side(None), "one": side(1), "all": side(processes)})
        megabytes = sum(file.stat().st_size for file in files) / 1e6
    peer_s, one_s, all_s = map(median, found.values())
    note = f"peer is robot.api.ExecutionResult; {len(files)} files, {megabytes:.0f} MB, simulated tests; "
    note += f"{processes} processes, {peer_s / one_s:.1f} x with 1"
    return figures(all_s, peer_s, "s", note, ratio=peer_s / all_s, ratio_one_process=peer_s / one_s)


def measure_report(cells: str = CELLS, tests: int = TESTS, nights: int = NIGHTS) -> dict[str, Any]:
    """Write reports of nights of simulated tests on both sides, each once as a command, with its start.

    The peer writes all tests into its log; ours is the default: pages of the latest runs, of failures and of changes.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = night_files(root, cells, tests, nights)
        peer = _run("robot.rebot", "--outputdir", root / "rebot", "--nostatusrc", *files)
        ours = _run("csit_utils", "report", *files, "-o", root / "report")
        small = _run("csit_utils", "report", files[0], "-o", root / "small") if nights > 1 else ours
        pages = sum(1 for _ in (root / "report").rglob("*.html"))
    note = (
        f"peer is rebot; {len(files)} files, simulated tests; {pages} pages; goal {_REPORT_GOAL_S:g} s; CPU time "
        f"{ours.cpu_s:.1f} s, peer {peer.cpu_s:.1f} s; memory {small.peak_bytes / 1e6:.0f} MB for a file, "
        f"{ours.peak_bytes / 1e6:.0f} MB for all, peer {peer.peak_bytes / 1e6:.0f} MB"
    )
    return figures(ours.taken_s, peer.taken_s, "s", note, ratio=peer.taken_s / ours.taken_s, goal=_REPORT_GOAL_S)


def night_files(folder: Path, cells: str, tests: int, nights: int) -> list[Path]:
    """Run the suites on the simulated testbed; write the result as several nights, enlarged to about `tests` each."""
    options = ("--outputdir", folder, "--log", "NONE", "--report", "NONE", "--console", "none")
    variables = ("-v", f"TOPOLOGY:{PROJECT / 'topologies/sim.yaml'}", "-v", f"CELLS:{cells}")
    _run("robot", *options, *variables, PROJECT / "tests" / "density")
    text = (folder / "output.xml").read_bytes()
    times = max(1, round(tests / text.count(b"<test ")))
    day = str(datetime.now(UTC).date()).encode()
    paths = []
    for night in range(nights):
        paths.append(folder / f"night-{night + 1}.xml")
        _enlarge(paths[-1], text.replace(day, b"2026-01-%02d" % (night + 1)), range(night * times, (night + 1) * times))
    return paths


_DIGEST = b'"counted":{"digest":"'


def _enlarge(path: Path, text: bytes, copies: range) -> None:
    """Write a file that repeats suites, each time with other digests, since equal tests count once."""
    begin, end = text.index(b"<suite "), text.find(b"<statistics>")
    end = end if end >= 0 else text.index(b"</robot>")
    with path.open("wb") as file:
        file.write(text[:begin] + b'<suite id="s0" name="Larger">\n')
        for copy in copies:
            file.write(text[begin:end].replace(_DIGEST, _DIGEST + b"%04x" % copy))
        file.write(b'<status status="PASS"/>\n</suite>\n</robot>\n')


def seconds_of(root: Path, files: Sequence[Path], processes: int | None) -> float:
    """Time of an import into a new dataset by so many processes; with None, that of the peer."""
    gc.collect()  # frees the tree of the previous round before the clock starts
    begin_s = time.perf_counter()
    if processes is None:
        for file in files:
            ExecutionResult(str(file))
        return time.perf_counter() - begin_s
    dataset = Path(tempfile.mkdtemp(dir=root))
    layout = Layout.make(dataset)
    with layout.writing(lambda: None):
        done = [each for each in import_all(layout, files, None, processes) if isinstance(each, FileImport)]
    taken_s = time.perf_counter() - begin_s
    if wrong := [text for each in done for text in each.problems]:
        raise CsitError(wrong[0])
    # Gives the space back. The files stay: after a removal ext4 looks longer for free inodes.
    for path in dataset.rglob("*"):
        if path.is_file():
            os.truncate(path, 0)
    return taken_s


class _Ended(NamedTuple):
    """A process that has ended."""

    taken_s: float
    cpu_s: float
    """Of all its processes."""
    peak_bytes: int
    """Of its largest process."""


_MEASURE = """
import json, os, sys, time
begin_s = time.perf_counter()
_, status, used = os.wait4(os.posix_spawn(sys.executable, (sys.executable, *sys.argv[1:]), os.environ), 0)
print()
print(json.dumps((time.perf_counter() - begin_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)))
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Starts a process from a small one: the peak of its memory is not below that of the one which starts it."""


def _run(module: str, *arguments: str | Path) -> _Ended:
    """Run a Python module."""
    argv = [sys.executable, "-c", _MEASURE, "-m", module, *map(str, arguments)]
    done = subprocess.run(argv, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise CsitError(f"{module} exited with status {done.returncode}: {done.stdout[-500:]}")
    return _Ended(*json.loads(done.stdout.splitlines()[-1]))
