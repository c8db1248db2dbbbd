"""Memory and descriptors of Robot in a long run: as flat after its last test as after the first ones.

`CSIT_SOAK=full` measures 2,268 tests in one run, in about half an hour; without it, 168.
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
FRAMES = ("64B", "128B", "256B", "512B", "1024B", "IMIX")
TESTS = len(FRAMES) * 9 * 42 if FULL else 4 * 42
MOST_KB_PER_TEST = 10
"""Of resident memory. Robot keeps its result of each test until the end, also of one that only logs a line: 1.9 kB."""
MOST_OWN_BYTES_PER_TEST = 1900
"""Of what this project and pydantic hold. It is 1.5 kB: the test's names, its entry in the journal, the name of its
record, and 0.5 kB that the validation of records holds, possibly in its cache of strings, which is bounded."""

ROBOT_LISTENER_API_VERSION = 3
"""This module is a listener of Robot too."""
SAMPLES = "CSIT_SOAK_SAMPLES"
"""Environment variable with the path of the listener's file."""


def end_test(test: Any, result: Any) -> None:  # noqa: ARG001 - Robot's signature
    """Write Robot's memory and open descriptors as a line of JSON; the last one has what was allocated meanwhile."""
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    row = {"resident_kb": resident // 1000, "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir())}
    samples = Path(os.environ[SAMPLES])
    with samples.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(row)}\n")
    ended = samples.read_bytes().count(b"\n")
    if ended == TESTS // 4:
        tracemalloc.start()
    elif ended == TESTS:
        Path(f"{samples}.held").write_text(json.dumps(_held()), encoding="utf-8")


def _held() -> dict[str, int]:
    """Bytes that were allocated since the first quarter and are still held, by file; tests end at the same place."""
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
    done = run_robot(tmp_path / "run", *chosen, *frames, *SUITES, *listener, seconds=7200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == TESTS
    warm = rows[TESTS // 4]
    for at in (TESTS // 10, TESTS // 4, TESTS // 2, TESTS - 1):
        print(f"after {at + 1} tests: {rows[at]['resident_kb']:,} kB, {rows[at]['descriptors']} descriptors")
    grown_kb = rows[-1]["resident_kb"] - warm["resident_kb"]
    assert grown_kb <= MOST_KB_PER_TEST * TESTS + 2_000
    held = json.loads(Path(f"{samples}.held").read_text(encoding="utf-8"))
    own = {
        path: size for path, size in held.items() if not re.search(r"/robot/|tracemalloc|/linecache|test_soak", path)
    }
    each_own, each_of_robot = (
        sum(some) / (TESTS - TESTS // 4)
        for some in (own.values(), [size for path, size in held.items() if "/robot/" in path])
    )
    print(f"held for each test: {each_of_robot:.0f} bytes by Robot, {each_own:.0f} by this project")
    assert each_own <= MOST_OWN_BYTES_PER_TEST, sorted(own.items(), key=lambda item: -item[1])[:10]
    assert max(row["descriptors"] for row in rows[TESTS // 4 :]) <= warm["descriptors"]
