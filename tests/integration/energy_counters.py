"""Energy counters of machines of known power, in a tree as the kernel's powercap class."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

RANGE_UJ = 300_000_000
"""The counter starts again after 300 J: several times in a test."""
_PROGRAM = """\
import os, sys, time
zone, watts, range_uj = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
os.makedirs(zone)
os.chdir(zone)
for name, content in (("name", "package-0"), ("max_energy_range_uj", range_uj)):
    with open(name, "w") as file:
        file.write(f"{content}\\n")
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
begin_s, ready = time.monotonic(), False
while True:
    with open("fresh", "w") as file:
        file.write(f"{round(watts * (time.monotonic() - begin_s) * 1e6) % range_uj}\\n")
    os.rename("fresh", "energy_uj")
    if not ready:
        ready = True
        print("ready", flush=True)
    time.sleep(0.002)
"""
"""Goes before data threads, as the counter of a processor does."""


@contextmanager
def counter(folder: Path, watts: float, inside: Callable[..., Sequence[str]] = lambda *argv: argv) -> Iterator[None]:
    """Have an energy counter of a machine in a folder."""
    argv = inside(sys.executable, "-c", _PROGRAM, str(folder / "intel-rapl:0"), str(watts), str(RANGE_UJ))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()
