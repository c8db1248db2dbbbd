"""What the measure `trace_parse` reads: kernel events of an NF under load, as pages and as text."""

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from csit_utils.bench.nf_under_load import service
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.probes.tracer.events import choose
from resources.libraries.python.errors import CommandFailed, CsitError

_NAME = "csit-density-bench"
_BUFFER_KIB = 128 << 10
_APART = ("unshare", "--mount")
"""trace-cmd mounts tracefs where it is not: in a mount namespace that ends with it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Events in files."""

    folder: Path
    threads: tuple[int, ...]
    events: int
    formats: tuple[str, ...]
    pages: tuple[Path, ...]
    """Of each CPU."""
    page_bytes: int

    def text(self) -> tuple[Path, float]:
        """The file that `trace-cmd report` writes, and how many seconds it took."""
        packed, text = self.folder / "trace.dat", self.folder / "trace.txt"
        _run("trace-cmd", "restore", "-o", str(packed), *map(str, self.pages), out=self.folder / "restore.txt")
        begin = time.perf_counter()
        _run("trace-cmd", "report", "-N", "-t", "-i", str(packed), out=text)
        return text, time.perf_counter() - begin


def record(folder: Path, loads_pps: Iterable[float], trial_s: float) -> Recording:
    """Run a trial at each load, and keep all events of the NF's threads.

    Raises:
        Unsupported: This machine cannot run the local world, or has no tracefs.
        CsitError: Events were lost.
    """
    with service() as here, tracefs.opened() as root:
        (threads,) = here.threads.values()
        events = choose("kernel", tracefs.events(root)).events
        instance = tracefs.TraceInstance(root, _NAME)
        here.lock.claim_trace(_NAME)
        try:
            instance.make(_BUFFER_KIB, threads)
            instance.enable(events, True)
            instance.write("tracing_on", "1")
            for load_pps in loads_pps:
                here.send(load_pps, trial_s)
            instance.write("tracing_on", "0")
            recorded, lost = instance.counts()
            if lost:
                raise CsitError(f"{lost} of {recorded + lost} events were lost")
            pages = _saved(folder, instance.buffers(), instance.page_bytes())
            formats = tuple(tracefs.format_text(root, event) for event in events)
            return Recording(folder, threads, recorded, formats, pages, instance.page_bytes())
        finally:
            instance.remove()
            here.lock.release_trace(_NAME)


def _saved(folder: Path, buffers: Sequence[Path], page_bytes: int) -> tuple[Path, ...]:
    files = []
    for cpu, buffer in enumerate(buffers):
        files.append(folder / f"cpu{cpu}")
        descriptor = os.open(buffer, os.O_RDONLY | os.O_NONBLOCK)
        with files[-1].open("wb") as file, suppress(BlockingIOError):
            while page := os.read(descriptor, page_bytes):
                file.write(page)
        os.close(descriptor)
    return tuple(files)


def _run(*argv: str, out: Path) -> None:
    with out.open("wb") as file:
        done = subprocess.run((*_APART, *argv), stdout=file, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr.decode(errors="replace"))
