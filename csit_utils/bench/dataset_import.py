"""Import of output.xml files into a dataset, against Robot's own reading of them, and the memory that it takes."""

import gc
import multiprocessing
import os
import shutil
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

from csit_utils.dataset.batch import Outcome, import_all
from csit_utils.dataset.layout import Layout
from resources.libraries.python.paths import PROJECT

_NIGHTS = 25
"""Ten thousand tests in all: a small history, and what is done once for an import is little of it."""
_CELLS = "{1,2,4,8}x{1,2}"
_TESTS = 400
"""Of a file, about: a full matrix of three service types has 378."""
_LARGER = 10


def measure(rounds: int = 5, cells: str = _CELLS, tests: int = _TESTS, nights: int = _NIGHTS) -> dict[str, Any]:
    """Read the nights of simulated tests in both ways in turns; medians.

    Both sides read the same files, of what Robot wrote about tests on a simulated system. The peer makes its tree of
    them and no more. Ours makes a dataset with the rows and the records, on disk when it ends. Each has a process of
    its own, which read one of the files before: neither has modules still to be found, nor the other's memory.

    Returns:
        `ours` and `peer` in seconds for all files, `ratio` with all processors; the note has that of one process, and
        the memory for a file and for one ten times as large.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = _files(root, cells, tests, nights)
        everyone = os.cpu_count() or 1
        peer, one, all_of_them = _in_turns(root, files, rounds, (None, 1, everyone))
        small, large = (_peak_bytes(root, file) for file in (files[0], _enlarged(files[0], _LARGER)))
        megabytes = sum(file.stat().st_size for file in files) / 1e6
    ratio = median(peer) / median(all_of_them)
    alone = median(peer) / median(one)
    return {
        "name": "dataset_import",
        "ours": round(median(all_of_them), 4),
        "peer": round(median(peer), 4),
        "ratio": round(ratio, 2),
        "unit": "s",
        "note": (
            f"{len(files)} files, {megabytes:.0f} MB, simulated tests; {everyone} processes, {alone:.1f} x with one; "
            f"memory above an idle process {small / 1e6:.0f} MB for a file, {large / 1e6:.0f} MB "
            f"for one {_LARGER} times as large"
        ),
        "detail": {"ratio_one_process": round(alone, 2), "ours_one_process": round(median(one), 4), "rounds": rounds},
    }


def _files(folder: Path, cells: str, tests: int, nights: int) -> list[Path]:
    """A run of the suites on the simulated testbed, as a file of so many tests for each of several nights."""
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
    return [_enlarged(path, times) for path in paths]


def _enlarged(path: Path, times: int) -> Path:
    """A file with the suites of another so many times."""
    text = path.read_bytes()
    begin, end = text.index(b"<suite "), text.find(b"<statistics>")
    end = end if end >= 0 else text.index(b"</robot>")
    larger = path.with_name(f"{path.stem}-{times}.xml")
    with larger.open("wb") as file:
        file.write(text[:begin] + b'<suite id="s0" name="Larger">\n')
        for _ in range(times):
            file.write(text[begin:end])
        file.write(b'<status status="PASS"/>\n</suite>\n</robot>\n')
    return larger


def _remove(root: Path) -> None:
    """What another import made is no part of the next one."""
    shutil.rmtree(root / "dataset", ignore_errors=True)


def _import(root: Path, files: list[Path], processes: int) -> None:
    """The whole of it, into a dataset that is not there before, and is on disk afterwards."""
    layout = Layout.make(root / "dataset")
    with layout.writing(lambda: None):
        done = [each for each in import_all(layout, files, None, processes) if isinstance(each, Outcome)]
    if wrong := [text for each in done for text in each.problems]:
        raise AssertionError(wrong[0])


def _in_turns(root: Path, files: list[Path], rounds: int, sides: Sequence[int | None]) -> list[list[float]]:
    """Seconds of each round of each side: that of so many processes, or the peer."""
    with ExitStack() as stack:
        pipes = []
        for side in sides:  # one after the other: they write into the same folder
            pipes.append(_started(_serve, stack, root, files, side))
            pipes[-1].recv()
        return [list(each) for each in zip(*[[_asked(pipe) for pipe in pipes] for _ in range(rounds)], strict=True)]


def _asked(pipe: Connection) -> float:
    pipe.send(True)
    return float(pipe.recv())


def _serve(pipe: Connection, root: Path, files: list[Path], processes: int | None) -> None:
    """Read all files whenever asked, and answer with how long it took."""
    _side(root, files[:1], processes)
    pipe.send(0.0)
    while pipe.recv():
        pipe.send(_side(root, files, processes))


def _side(root: Path, files: list[Path], processes: int | None) -> float:
    gc.collect()  # a tree that is cleared away is no part of the next round
    begin = time.perf_counter()
    if processes is None:
        for file in files:
            ExecutionResult(str(file))
    else:
        _import(root, files, processes)
    taken_s = time.perf_counter() - begin
    _remove(root)
    return taken_s


def _started(work: Callable[..., None], stack: ExitStack, *args: object) -> Connection:
    """The pipe to a process of its own, which has nothing of this one's memory."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=work, args=(theirs, *args))
    child.start()
    theirs.close()
    stack.callback(ours.close)
    stack.callback(child.join)
    stack.callback(child.terminate)  # first of the three: it would complain of a pipe that is closed
    return ours


def _peak_bytes(root: Path, file: Path) -> int:
    """What an import adds to the memory of a process."""
    with ExitStack() as stack:
        return int(_started(_measure_peak, stack, root, file).recv())


def _measure_peak(answer: Connection, root: Path, file: Path) -> None:
    _remove(root)
    before = _most_bytes()
    _import(root, [file], 1)
    answer.send(_most_bytes() - before)


def _most_bytes() -> int:
    """The most memory that this program held; getrusage would count what its parent held before it was started."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
