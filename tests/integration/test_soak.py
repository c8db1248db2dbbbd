"""Memory and descriptors of Robot in a long run: as flat after its last test as after the first ones.

`CSIT_SOAK=full` measures 2,646 tests in one run, in about half an hour; without it, 168.
"""

import gc
import json
import os
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.integration.robot_runs import run_robot

pytestmark = pytest.mark.parallel
FULL = os.environ.get("CSIT_SOAK") == "full"
SUITES = () if FULL else ("--suite", "csc-mrr")
FRAMES = ("64B", "128B", "256B", "512B", "1024B", "1518B", "IMIX")
TESTS = len(FRAMES) * 9 * 42 if FULL else 4 * 42
LAST = TESTS // 9 if FULL else 42
"""Tests of a suite, or of a frame size, after which what is held is compared with what was held before them."""
UNTRACED = TESTS - 2 * LAST
"""Tests after which allocations are traced: the tables of tracemalloc are resident memory too, 20 MB of them."""
MAX_KB_PER_TEST = 5
"""Of resident memory. Robot keeps its result of each test until the end, also of one that only logs a line: 1.9 kB."""
SLACK_KB = 2_000
MAX_OWN_BYTES_PER_TEST = 1800
"""Allocated by this project. It is 1.6 kB: 0.6 kB of names and tags that Robot's results keep, 0.3 kB that a search
predicts other cells from, and the rest the test's entries in the journal and the name of its record."""
MAX_CACHED_BYTES_PER_TEST = 700
"""Allocated by pydantic. It is 0.4 to 0.6 kB of its cache of strings, which ends at 16,384 of them, 1.2 MB."""

ROBOT_LISTENER_API_VERSION = 3
"""This module is a listener of Robot too."""
SAMPLES = "CSIT_SOAK_SAMPLES"
"""Environment variable with the path of the listener's file."""


def end_test(test: Any, result: Any) -> None:  # noqa: ARG001 - Robot's signature
    """Write Robot's memory and open descriptors as a line of JSON, and twice what is held, by file."""
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    row = {"resident_kb": resident // 1000, "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir())}
    samples = Path(os.environ[SAMPLES])
    with samples.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(row)}\n")
    ended = samples.read_bytes().count(b"\n")
    if ended == UNTRACED:
        tracemalloc.start()
    elif ended > UNTRACED and ended % LAST == 0:
        Path(f"{samples}.{ended}").write_text(json.dumps(_held()), encoding="utf-8")


def _held() -> dict[str, int]:
    """Bytes that were allocated since tracing began and are still held, by file."""
    gc.collect()
    by_file: Counter[str] = Counter()
    for each in tracemalloc.take_snapshot().statistics("filename"):
        by_file[each.traceback[0].filename] += each.size
    return dict(by_file)


def test_memory_and_descriptors_stay_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = tmp_path / "samples.jsonl"
    monkeypatch.setenv(SAMPLES, str(samples))
    chosen = ("-v", "TOPOLOGY:topologies/sim.yaml", "-v", "SEARCH:quick")
    frames = ("-v", f"FRAMES:{','.join(FRAMES if FULL else FRAMES[:4])}")
    listener = ("--listener", __file__)
    done = run_robot(tmp_path / "run", *chosen, *frames, *SUITES, *listener, seconds=7200, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == TESTS
    # Each third has all kinds of tests, whose peaks differ by megabytes. The first one fills caches.
    third = UNTRACED // 3
    thirds = [[row["resident_kb"] for row in rows[begin : begin + third]] for begin in range(0, 3 * third, third)]
    for name, of in (("lowest", min), ("highest", max)):
        first, second, last = map(of, thirds)
        print(f"{name} resident memory of {third} tests: {first:,} kB, then {second:,} kB, then {last:,} kB")
        assert last - second <= MAX_KB_PER_TEST * third + SLACK_KB, name
    before, after = (
        Counter(json.loads(Path(f"{samples}.{ended}").read_text(encoding="utf-8"))) for ended in (TESTS - LAST, TESTS)
    )
    after.subtract(before)
    by_robot, cached, own = Counter[str](), Counter[str](), Counter[str]()
    for path, size in after.items():
        if not re.search(r"tracemalloc|/linecache|test_soak", path):
            (by_robot if "/robot/" in path else cached if "/pydantic/" in path else own)[path] = size
    each = {name: some.total() / LAST for name, some in (("Robot", by_robot), ("pydantic", cached), ("own", own))}
    print(f"bytes held for each test: {', '.join(f'{name} {size:.0f}' for name, size in each.items())}")
    assert each["pydantic"] <= MAX_CACHED_BYTES_PER_TEST, cached
    assert each["own"] <= MAX_OWN_BYTES_PER_TEST, own.most_common(10)
    descriptors = [row["descriptors"] for row in rows]
    print(f"{max(descriptors[:third])} descriptors, then {max(descriptors[third:])}")
    assert max(descriptors[third:]) <= max(descriptors[:third])
