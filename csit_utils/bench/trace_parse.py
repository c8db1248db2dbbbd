"""Kernel events into a graph: the kernel's pages by the tracer, against the text of `trace-cmd report` in Python."""

import shutil
import tempfile
import time
from collections.abc import Callable
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from csit_utils.bench.trace_parse_peer import Pairs, pairs_of_text
from csit_utils.bench.trace_parse_recording import Recording, record
from resources.libraries.python.drivers.host.links.namespace_syscalls import keep_freed_memory
from resources.libraries.python.drivers.probes.tracer.formats import parse
from resources.libraries.python.drivers.probes.tracer.pages import Words
from resources.libraries.python.drivers.probes.tracer.reader import BATCH_PAGES, TraceReading
from resources.libraries.python.drivers.probes.tracer.stream import EventStream, Followed
from resources.libraries.python.errors import CsitError, Unsupported

_GOAL = 10.0
_ROUNDS = 5
_LOADS_PPS = (30e3, 100e3, 300e3)
_ALWAYS = (1, np.iinfo(np.int64).max)


def measure(rounds: int = _ROUNDS, trial_s: float = 0.7) -> dict[str, Any]:
    """Events of an NF under three loads, recorded once, made a graph both ways in turns; the best round of each.

    Both read the same events from files and come to the same graph, or the measure fails. The peer finds its text
    ready: what `trace-cmd report` takes to write it is told apart.

    Args:
        rounds: Of both sides.
        trial_s: Length of the trial at each load, in seconds.

    Returns:
        `ours` and `peer` in events per second of one CPU's time. What else runs on the machine can only slow a round,
        so the best one says most.

    Raises:
        Unsupported: No `trace-cmd`, no tracefs, or this machine cannot run the local world.
        CsitError: The graphs differ.
    """
    if not shutil.which("trace-cmd"):
        raise Unsupported("the command trace-cmd is not installed")
    ours, peer = [], []
    keep_freed_memory()  # as the reader does
    with tempfile.TemporaryDirectory() as folder:
        recording = record(Path(folder), _LOADS_PPS, trial_s)
        text, report_s = recording.text()
        for _ in range(rounds):
            graph, spent_s = _timed(lambda: _ours(recording))
            ours.append(recording.events / spent_s)
            expected, spent_s = _timed(lambda: pairs_of_text(text, recording.threads))
            peer.append(recording.events / spent_s)
            _compare(graph, expected)
    both = recording.events / (recording.events / max(peer) + report_s)
    return {
        "name": "trace_parse",
        "ours": max(ours),
        "peer": max(peer),
        "ratio": round(max(ours) / max(peer), 1),
        "goal": _GOAL,
        "unit": "events/s",
        "note": f"{recording.events} events, {len(graph)} edges, the same graph; with the {report_s:.1f} s in which "
        f"trace-cmd writes the text the peer makes {both:.0f} events/s",
    }


def _timed(work: Callable[[], Pairs]) -> tuple[Pairs, float]:
    begin = time.process_time()
    graph = work()
    return graph, time.process_time() - begin


def _ours(recording: Recording) -> Pairs:
    """As the tracer's reader does it, with files in the place of the kernel's buffers."""
    stream = EventStream(map(parse, recording.formats), [Followed("nf", "kernel", recording.threads)])
    TraceReading(stream, _Files(recording)).spans([_ALWAYS])
    return {(before, after): (count, seconds) for before, after, count, seconds in stream.edges()[0]}


class _Files:
    """Recorded pages of all CPUs."""

    def __init__(self, recording: Recording) -> None:
        width = recording.page_bytes // 4
        self._left = [_words(path).reshape(-1, width) for path in recording.pages]

    def read(self) -> tuple[list[tuple[int, Words]], list[int]]:
        batches, room = [], BATCH_PAGES
        for cpu, pages in enumerate(self._left):
            batches.append((cpu, pages[:room]))
            self._left[cpu] = pages[room:]
            room -= len(batches[-1][1])
        return batches, [cpu for cpu, pages in enumerate(self._left) if len(pages)]


def _words(path: Path) -> Words:
    """Of a file, which may be empty."""
    return np.memmap(path, np.uint32, "r") if path.stat().st_size else np.zeros(0, np.uint32)


def _compare(ours: Pairs, peers: Pairs) -> None:
    """Fail where the two graphs differ."""
    for pair in ours.keys() | peers.keys():
        one, other = ours.get(pair, (0, 0.0)), peers.get(pair, (0, 0.0))
        if one[0] != other[0] or not isclose(one[1], other[1], rel_tol=1e-6, abs_tol=1e-9):
            raise CsitError(f"{pair[0]} -> {pair[1]}: {one[0]} times in {one[1]} s by pages, {other} by text")
