"""CPU time and memory of the commands that read a history, by the number of its tests.

Run by `.venv/bin/python -m tests.history_scale 10000 100000`. A history has one run of 100 tests a night on one
testbed: NDR and PDR of a matrix, with noise, and a step down of one cell in the last tenth of the nights.
"""

import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from csit_utils.dataset.rows import TestRow
from csit_utils.dataset.store import details
from csit_utils.dataset.store.layout import Layout, run_of
from csit_utils.dataset.store.staging import Detail, Entry, stage
from csit_utils.dataset.testrows import recorded_row
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.paths import PROJECT
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import dataset_of

TESTS_A_NIGHT = 100
STEP = 0.9
_FIRST = datetime(2020, 1, 1, 20, tzinfo=UTC)
_NOTHING = msgspec.json.encode({"latency": []})
COMMANDS = {
    "trend": ("trend", "{0}"),
    "gate": ("gate", "before=14", "run={1}", "--data", "{0}"),
    "show": ("show", "{0}"),
    "answer": ("answer", "{0}", "--rate", "1Mpps"),
    "report": ("report", "{0}", "-o", "{0}-site"),
    "query": ("query", "{0}", "SELECT testbed, nf_chains, nf_nodes, median(ndr_lower_pps) FROM tests GROUP BY ALL"),
}


def make(folder: Path, tests: int) -> str:
    """Make a dataset; return the id of its last run."""
    layout = Layout.make(folder)
    cells = [(chains, nodes) for chains in range(1, 11) for nodes in range(1, 11)]
    found = [result(ServiceType.CSC, chains, nodes, histograms=False, passed=True) for chains, nodes in cells]
    rows = [recorded_row(item) for item in dataset_of(*found).recorded]
    noise = random.Random(1)
    nights = tests // TESTS_A_NIGHT
    run = ""
    with layout.writing(lambda: None):
        for night in range(nights):
            digest = hashlib.sha256(str(night).encode()).hexdigest()
            run = run_of(digest)
            layout.commit(stage(layout, _night(rows, night, nights, run, noise), f"{run}.xml", digest, None))
    return run


def _night(rows: list[TestRow], night: int, nights: int, run: str, noise: random.Random) -> Iterator[Entry]:
    for number, row in enumerate(rows):
        started = (_FIRST + timedelta(days=night, minutes=number)).isoformat()
        scale = noise.gauss(1, 0.01) * (STEP if number == 0 and night > 0.9 * nights else 1)
        figures = {
            name: getattr(row, name) * scale
            for name in ("ndr_lower_pps", "ndr_upper_pps", "pdr_lower_pps", "pdr_upper_pps")
        }
        anchor = f"test-{night}-{number}"
        yield (
            replace(row, anchor=anchor, started_at=started, run=run, **figures),
            Detail(anchor, details.ROWS, _NOTHING),
        )


_RUN = """
import sys, time
from csit_utils.cli import main
try:
    status = main()
except SystemExit as ended:
    status = ended.code
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("ended", status or 0, time.process_time(), int(peak) / 1000)
"""
"""Peak memory of a process as the kernel counts it for its parent begins with that of the parent."""


def measured(words: list[str]) -> tuple[float, float, float, int]:
    """Run a command; return its time, its CPU time, its peak memory in MB, and its exit status."""
    begun = time.monotonic()
    command = [sys.executable, "-c", _RUN, *words]
    done = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True)
    status, cpu_s, peak_mb = done.stdout.rsplit("ended ", 1)[1].split()
    return time.monotonic() - begun, float(cpu_s), float(peak_mb), int(status)


def main(sizes: list[int], names: list[str]) -> None:
    """Print a line per size and command."""
    print("tests\tcommand\ttime_s\tcpu_s\tpeak_mb\texit")
    for tests in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "history"
            run = make(folder, tests)
            for name in names or COMMANDS:
                words = [word.format(folder, run) for word in COMMANDS[name]]
                seconds, cpu_s, peak_mb, status = measured(words)
                print(f"{tests}\t{name}\t{seconds:.1f}\t{cpu_s:.1f}\t{peak_mb:.0f}\t{status}", flush=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:] if word.isdigit()], [word for word in sys.argv[1:] if not word.isdigit()])
