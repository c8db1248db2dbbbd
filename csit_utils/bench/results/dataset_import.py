"""Time and memory of importing output.xml files into a dataset, against `robot.api.ExecutionResult`."""

import gc
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from robot.api import ExecutionResult

from csit_utils.dataset.store.batch import FileImport, import_all
from csit_utils.dataset.store.layout import Layout
from resources.libraries.python.paths import PROJECT

NIGHTS = 25
"""Ten thousand tests in total, so that fixed costs of an import matter little."""
CELLS = "{1,2,4,8}x{1,2}"
TESTS = 400
"""Approximate number per file: a full matrix of three service types has 378."""
_LARGER = 10


def measure(rounds: int = 5, cells: str = CELLS, tests: int = TESTS, nights: int = NIGHTS) -> dict[str, Any]:
    """Read nights of simulated tests on both sides, in turns; return medians.

    Both sides read the same files, written by Robot on a simulated system. The peer only builds its tree. Ours writes a
    dataset with rows and records to the disk. Each side has its own process, which has read one file before, so that
    imports are done and memory is its own.

    Returns:
        `ours` and `peer` in seconds for all files, `ratio` with all CPUs; the note has the ratio with one process, and
        the memory for a file and for one ten times as large.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = night_files(root, cells, tests, nights)
        processes = os.cpu_count() or 1
        peer, one, parallel = _in_turns(root, files, rounds, (None, 1, processes))
        small, large = (_peak_bytes(root, file) for file in (files[0], _enlarged(files[0], _LARGER)))
        megabytes = sum(file.stat().st_size for file in files) / 1e6
    ratio = median(peer) / median(parallel)
    alone = median(peer) / median(one)
    return {
        "name": "dataset_import",
        "ours": round(median(parallel), 4),
        "peer": round(median(peer), 4),
        "ratio": round(ratio, 2),
        "unit": "s",
        "note": (
            f"{len(files)} files, {megabytes:.0f} MB, simulated tests; {processes} processes, {alone:.1f} x with 1; "
            f"memory above an idle process {small / 1e6:.0f} MB for a file, {large / 1e6:.0f} MB "
            f"for one {_LARGER} times as large"
        ),
        "detail": {"ratio_one_process": round(alone, 2), "ours_one_process": round(median(one), 4), "rounds": rounds},
    }


def night_files(folder: Path, cells: str, tests: int, nights: int) -> list[Path]:
    """Run the suites on the simulated testbed; write the result as several nights, enlarged to about `tests` each."""
    options = ("--outputdir", folder, "--log", "NONE", "--report", "NONE", "--console", "none")
    variables = ("-v", f"TOPOLOGY:{PROJECT / 'topologies/sim.yaml'}", "-v", f"CELLS:{cells}")
    argv = (sys.executable, "-m", "robot", *map(str, options), *variables, str(PROJECT / "tests" / "density"))
    subprocess.run(argv, check=True, cwd=PROJECT, stdout=subprocess.DEVNULL)
    text = (folder / "output.xml").read_bytes()
    times = max(1, round(tests / text.count(b"<test ")))
    day = str(datetime.now(UTC).date()).encode()
    paths = [folder / f"night-{number}.xml" for number in range(1, nights + 1)]
    for number, path in enumerate(paths, 1):
        path.write_bytes(text.replace(day, b"2026-01-%02d" % number))
    return [_enlarged(path, times, number * times) for number, path in enumerate(paths)]


_DIGEST = b'"counted":{"digest":"'


def _enlarged(path: Path, times: int, before: int = 0) -> Path:
    """Write a file that repeats the suites of another, each time with other digests, since equal tests count once.

    Args:
        path: The file.
        times: Number of copies.
        before: Number of copies in other files.
    """
    text = path.read_bytes()
    begin, end = text.index(b"<suite "), text.find(b"<statistics>")
    end = end if end >= 0 else text.index(b"</robot>")
    larger = path.with_name(f"{path.stem}-{times}.xml")
    with larger.open("wb") as file:
        file.write(text[:begin] + b'<suite id="s0" name="Larger">\n')
        for copy in range(before, before + times):
            file.write(text[begin:end].replace(_DIGEST, _DIGEST + b"%04x" % copy))
        file.write(b'<status status="PASS"/>\n</suite>\n</robot>\n')
    return larger


def _import(root: Path, files: list[Path], processes: int) -> Path:
    """Import files into a new dataset on disk; return its folder."""
    folder = Path(tempfile.mkdtemp(dir=root))
    layout = Layout.make(folder)
    with layout.writing(lambda: None):
        done = [each for each in import_all(layout, files, None, processes) if isinstance(each, FileImport)]
    if wrong := [text for each in done for text in each.problems]:
        raise AssertionError(wrong[0])
    return folder


def _empty(dataset: Path) -> None:
    """Give the space of a measured dataset back. Its files stay: after a removal ext4 looks longer for free inodes."""
    for file in dataset.rglob("*"):
        if file.is_file():
            os.truncate(file, 0)


def _in_turns(root: Path, files: list[Path], rounds: int, sides: Sequence[int | None]) -> list[list[float]]:
    """Seconds by side and round; a side is a number of processes, or None for the peer."""
    with ExitStack() as stack:
        pipes = []
        for side in sides:  # not in parallel: they write into the same folder
            pipes.append(_started(_serve, stack, root, files, side))
            pipes[-1].recv()
        return [list(each) for each in zip(*[[_asked(pipe) for pipe in pipes] for _ in range(rounds)], strict=True)]


def _asked(pipe: Connection) -> float:
    pipe.send(True)
    return float(pipe.recv())


def _serve(pipe: Connection, root: Path, files: list[Path], processes: int | None) -> None:
    """Read all files at each request; answer with the time in seconds."""
    _side(root, files[:1], processes)
    pipe.send(0.0)
    while pipe.recv():
        pipe.send(_side(root, files, processes))


def _side(root: Path, files: list[Path], processes: int | None) -> float:
    gc.collect()  # frees the tree of the previous round before the clock starts
    begin = time.perf_counter()
    if processes is None:
        for file in files:
            ExecutionResult(str(file))
        return time.perf_counter() - begin
    dataset = _import(root, files, processes)
    taken_s = time.perf_counter() - begin
    _empty(dataset)
    return taken_s


def _started(work: Callable[..., None], stack: ExitStack, *args: object) -> Connection:
    """Start a process by `spawn`, so that it shares no memory with this one; return the pipe to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=work, args=(theirs, *args))
    child.start()
    theirs.close()
    stack.callback(ours.close)
    stack.callback(child.join)
    stack.callback(child.terminate)  # runs first: the process would fail on a closed pipe
    return ours


def _peak_bytes(root: Path, file: Path) -> int:
    """Peak memory that an import adds to a process."""
    with ExitStack() as stack:
        return int(_started(_measure_peak, stack, root, file).recv())


def _measure_peak(answer: Connection, root: Path, file: Path) -> None:
    before = _most_bytes()
    dataset = _import(root, [file], 1)
    added = _most_bytes() - before
    _empty(dataset)
    answer.send(added)


def _most_bytes() -> int:
    """Peak resident memory of this program; getrusage includes that of the parent before the exec."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
