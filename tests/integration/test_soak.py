"""Memory and descriptors of Robot in a long run: as flat after its last test as after the first ones.

`CSIT_SOAK=full` measures 2,268 tests in one run, in about half an hour; without it, 168.
"""

import json
import os
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
"""4.2 kB are held for each test until the end: half is Robot's result, half the test's entry in the journal."""


ROBOT_LISTENER_API_VERSION = 3
"""This module is a listener of Robot too."""
SAMPLES = "CSIT_SOAK_SAMPLES"
"""Environment variable with the path of the listener's file."""


def end_test(test: Any, result: Any) -> None:  # noqa: ARG001 - Robot's signature
    """Write Robot's memory and open descriptors as a line of JSON."""
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    row = {"resident_kb": resident // 1000, "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir())}
    with Path(os.environ[SAMPLES]).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(row)}\n")


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
    assert max(row["descriptors"] for row in rows[TESTS // 4 :]) <= warm["descriptors"]
