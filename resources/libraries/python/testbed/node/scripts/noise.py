"""The noise floor of idle CPUs: a thread on each reads the clock all the time. Sent to nodes.

Whatever takes the CPU away shows as a gap between two readings, as in `oslat` of rt-tests. A reading takes about
100 ns in Python, so gaps below the threshold are not seen; those that matter fill a receive queue and are longer.
"""

from __future__ import annotations

import gc
import json
import os
import re
import resource
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

THRESHOLD_NS = 2_000
LONGEST_S = 10.0
_CLASS_BITS = 4
"""A class of durations has the leading bits of its values in common."""
_MSR_SMI_COUNT = 0x34
_PRIORITY = 95
_MAX_NAMES = 8
_SETTLE_S = 0.02
_STEAL = 8
"""Column of /proc/stat, the CPU's name included."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Observe CPUs, all at the same time.

    `arguments`: `cpus`, a list of logical CPUs; `duration_s`, at most 10. `root` is another tree for tests.

    Returns:
        `rows`, one for each CPU that could be observed, and `refused`, a list of [CPU, why].
    """
    root = Path(arguments.get("root") or "/")
    duration_s = min(float(arguments["duration_s"]), LONGEST_S)
    cpus = [int(cpu) for cpu in arguments["cpus"]]
    children = []
    before = _accounts(root, cpus)
    begin_ns = time.monotonic_ns() + int((_SETTLE_S + 0.002 * len(cpus)) * 1e9)
    for cpu in cpus:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:  # the child never returns from here
            try:
                os.close(reader)
                observed = json.dumps(_observe(cpu, begin_ns, int(duration_s * 1e9))).encode()
            except OSError as error:
                observed = json.dumps({"refused": error.strerror}).encode()
            os.write(writer, observed)
            os._exit(0)
        os.close(writer)
        children.append((cpu, pid, reader))
    rows, refused = [], []
    for cpu, pid, reader in children:
        with os.fdopen(reader, "rb") as stream:
            observed = json.loads(stream.read() or b'{"refused": "its observer was killed"}')
        os.waitpid(pid, 0)
        if "refused" in observed:
            refused.append([cpu, observed["refused"]])
        else:
            rows.append(observed)
    after = _accounts(root, cpus)
    for row in rows:
        row.update(_difference(before[row["cpu"]], after[row["cpu"]]))
    return {"rows": rows, "refused": refused}


def _observe(cpu: int, begin_ns: int, duration_ns: int) -> dict[str, Any]:
    """Read the clock on one CPU until the time is over."""
    os.sched_setaffinity(0, {cpu})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        real_time = True
    except OSError:
        real_time = False
    gc.disable()
    time.sleep(max(0.0, (begin_ns - time.monotonic_ns()) * 1e-9))
    preempted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    durations, longest = _gaps(time.monotonic_ns, duration_ns)
    preempted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - preempted
    return {
        "cpu": cpu, "observed_s": duration_ns * 1e-9, "real_time": real_time, "threshold_ns": THRESHOLD_NS,
        "longest_ns": longest, "durations": durations, "preemptions": preempted,
    }  # fmt: skip


def _gaps(clock: Callable[[], int], duration_ns: int) -> tuple[list[list[int]], int]:
    """Return gaps between readings as classes of durations with their numbers, and the longest."""
    durations: dict[int, int] = {}
    longest, threshold = 0, THRESHOLD_NS
    last = clock()
    end = last + duration_ns
    while last < end:
        now = clock()
        gap = now - last
        if gap >= threshold:
            shift = gap.bit_length() - _CLASS_BITS
            edge = gap >> shift << shift
            durations[edge] = durations.get(edge, 0) + 1
            longest = max(longest, gap)
        last = now
    return [list(each) for each in sorted(durations.items())], longest


def _accounts(root: Path, cpus: list[int]) -> dict[int, dict[str, Any]]:
    """Counts of the kernel and the processor for each CPU."""
    stat = _text(root / "proc/stat")
    interrupts = _interrupts(_text(root / "proc/interrupts"))
    found = {}
    for cpu in cpus:
        times = re.search(rf"^cpu{cpu} (.*)$", stat, re.MULTILINE)
        words = times.group(0).split() if times else []
        found[cpu] = {
            "stolen": int(words[_STEAL]) / os.sysconf("SC_CLK_TCK") if len(words) > _STEAL else None,
            "smis": _smis(root / f"dev/cpu/{cpu}/msr"),
            "interrupts": {name: counts[cpu] for name, counts in interrupts.items() if cpu in counts},
        }
    return found


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    counts = {name: number - before["interrupts"].get(name, 0) for name, number in after["interrupts"].items()}
    most = sorted((name for name in counts if counts[name] > 0), key=lambda name: -counts[name])[:_MAX_NAMES]
    return {
        "interrupts": {name: counts[name] for name in most},
        "stolen_s": _minus(after["stolen"], before["stolen"]),
        "smis": _minus(after["smis"], before["smis"]),
    }


def _minus(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else max(0, after - before)


def _interrupts(text: str) -> dict[str, dict[int, int]]:
    """Rows such as `LOC:  100  200  Local timer interrupts`: by description, counts by CPU."""
    head, *rows = text.splitlines() or [""]
    cpus = [int(word[3:]) for word in head.split() if word.startswith("CPU")]
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        name, _, rest = row.strip().partition(":")
        words = rest.split()
        counts = [int(word) for word in words[: len(cpus)] if word.isdigit()]
        if len(counts) == len(cpus):
            described = " ".join(words[len(cpus) :])
            label = f"{name} {described}" if name.isdigit() else described or name
            found[label[:80]] = dict(zip(cpus, counts))  # noqa: B905 - a node's Python is older; equal by the line above
    return found


def _smis(path: Path) -> int | None:
    """The processor's count of System Management Interrupts; needs the module msr and root's rights."""
    try:
        with path.open("rb") as file:
            return int(struct.unpack("<Q", os.pread(file.fileno(), 8, _MSR_SMI_COUNT))[0])
    except (OSError, struct.error):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":  # for comparing it with other programs by hand
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
