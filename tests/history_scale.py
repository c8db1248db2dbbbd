"""CPU time and memory of the commands that read a history, by the number of its tests.

Run by `.venv/bin/python -m tests.history_scale 10000 100000 1000000 [COMMAND ...]`. A history has one run of 432 tests
a night on one testbed: NDR and PDR of three matrices, with noise, and a step down of one cell in the last tenth of the
nights. The newest nights have records; earlier ones, which no command may need, have rows only.
"""

import hashlib
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa

from csit_utils.dataset.store.bounded_files import RECORD_DETAIL
from csit_utils.dataset.store.layout import DETAILS, TESTS, Import, Layout, partition, run_of
from csit_utils.dataset.store.staging import Partition, WaitingRows
from csit_utils.dataset.testrows import Detail, packed_row
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.writer import pack
from tests.unit.csit_utils.builders import result

SIZES = range(1, 13)
TESTS_A_NIGHT = len(ServiceType) * len(SIZES) ** 2
WITH_RECORDS = 60
"""Newest nights whose tests have records."""
STEP = 0.9
_FIRST = datetime(2020, 1, 1, 20, tzinfo=UTC)
_NOISY = ("ndr_lower_pps", "ndr_upper_pps", "pdr_lower_pps", "pdr_upper_pps")
COMMANDS = {
    "trend": ("trend", "{0}"),
    "gate": ("gate", "before=14", "run={1}", "--data", "{0}"),
    "compare": ("compare", "run={2}", "run={1}", "--data", "{0}"),
    "show": ("show", "{0}"),
    "answer": ("answer", "{0}", "--rate", "1Mpps"),
    "report": ("report", "{0}", "-o", "{0}-site"),
    "query": ("query", "{0}", "SELECT testbed, nf_chains, nf_nodes, median(ndr_lower_pps) FROM tests GROUP BY ALL"),
}


def make(folder: Path, tests: int) -> list[str]:
    """Make a dataset; return the ids of its runs, oldest first."""
    layout = Layout.make(folder, temporary=True)
    records = [
        pack(result(service, chains, nodes, histograms=False, passed=True))
        for service in ServiceType
        for chains in SIZES
        for nodes in SIZES
    ]
    rows = WaitingRows("", {})
    for record in records:
        rows.add(packed_row(record)[0])
    table = rows.table()
    assert table is not None
    noise = np.random.default_rng(1)
    nights = ceil(tests / TESTS_A_NIGHT)
    runs = []
    with layout.writing(lambda: None):
        for night in range(nights):
            digest = hashlib.sha256(str(night).encode()).hexdigest()
            scale = noise.normal(1, 0.01, TESTS_A_NIGHT)
            if night > 0.9 * nights:
                scale[0] *= STEP
            runs.append(run_of(digest))
            own = _columns(table, night, runs[-1], scale)
            layout.commit(_staged(layout, digest, own, records if night >= nights - WITH_RECORDS else []))
    return runs


def _columns(table: pa.Table, night: int, run: str, scale: np.ndarray) -> pa.Table:
    started = _FIRST + timedelta(days=night)
    new = {name: pa.array(table.column(name).to_numpy() * scale) for name in _NOISY}
    new["anchor"] = pa.array([f"test-{night}-{number}" for number in range(TESTS_A_NIGHT)])
    new["started_at"] = pa.array([(started + timedelta(minutes=number)).isoformat() for number in range(TESTS_A_NIGHT)])
    new["run"] = new["source"] = pa.array([run] * TESTS_A_NIGHT)
    for name, column in new.items():
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _staged(layout: Layout, digest: str, table: pa.Table, records: list[str]) -> Import:
    testbed, night = table.column("testbed")[0].as_py(), table.column("started_at")[0].as_py()[:10]
    tests, texts = (layout.staged(digest, name, 0) for name in (TESTS, DETAILS))
    part = Partition(f"{partition(testbed, night)}/{digest[:16]}.parquet", tests, texts, run_of(digest), {})
    part.write_table(table)
    for anchor, record in zip(table.column("anchor").to_pylist(), records, strict=False):
        part.add_detail(anchor, Detail(anchor, RECORD_DETAIL, record))
    return Import(digest, f"{run_of(digest)}.xml", None, (part.close(testbed, night),), (), (), {})


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
            runs = make(folder, tests)
            for name in names or COMMANDS:
                words = [word.format(folder, runs[-1], runs[-2]) for word in COMMANDS[name]]
                seconds, cpu_s, peak_mb, status = measured(words)
                print(f"{tests}\t{name}\t{seconds:.1f}\t{cpu_s:.1f}\t{peak_mb:.0f}\t{status}", flush=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:] if word.isdigit()], [word for word in sys.argv[1:] if not word.isdigit()])
