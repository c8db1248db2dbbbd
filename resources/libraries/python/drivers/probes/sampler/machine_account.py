"""Accounts of the machine as a whole: CPU times by state, interrupts, queues of received packets, memory."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.probes.sampler.accounts import PERCENT_OF_TICK, Amounts, Kept
from resources.libraries.python.drivers.probes.sampler.tasks import PROC

_STATES = ("user", "user", "system", "idle", "idle", "interrupt", "softirq", "stolen")
"""Of the columns of /proc/stat, the first eight: user, nice, system, idle, iowait, irq, softirq, steal."""
_SOFTIRQS = {"NET_RX": "all_net_rx_softirqs", "NET_TX": "all_net_tx_softirqs"}
_DROPPED, _SQUEEZED, _QUEUED = 1, 2, 11
"""Columns of a CPU in /proc/net/softnet_stat, hexadecimal; the last is there from Linux 5.10."""


class MachineAccount:
    """The machine."""

    def __init__(self, root: Path = PROC) -> None:
        self._files = []
        for name, parse in _FILES:
            with suppress(OSError):
                self._files.append((Kept(root / name), parse))

    def read(self) -> Amounts:
        found: Amounts = {}
        for kept, parse in self._files:
            with suppress(OSError, ValueError, IndexError, KeyError):
                for name, amount in parse(kept.text()):
                    found[name] = found.get(name, 0.0) + amount
        return found

    def close(self) -> None:
        for kept, _ in self._files:
            kept.close()


def _stat(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name == "cpu":
            for state, ticks in zip(_STATES, rest.split(), strict=False):
                yield f"all_{state}_percent", int(ticks) * PERCENT_OF_TICK
        elif name == "intr":
            yield "all_interrupts", int(rest.split(" ", 1)[0])
        elif name == "ctxt":
            yield "all_switches", int(rest)


def _softirqs(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        name, _, rest = line.strip().partition(":")
        if name in _SOFTIRQS:
            yield _SOFTIRQS[name], sum(map(int, rest.split()))


def _queues(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        row = line.split()
        yield "backlog_drops", int(row[_DROPPED], 16)
        yield "time_squeezes", int(row[_SQUEEZED], 16)
        if len(row) > _QUEUED:
            yield "backlog_packets", int(row[_QUEUED], 16)


def _memory(text: str) -> Iterator[tuple[str, float]]:
    rows = dict(line.split(":", 1) for line in text.splitlines())
    total, available = (int(rows[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    yield "memory_used_bytes", 1024 * (total - available)


_FILES = (("stat", _stat), ("softirqs", _softirqs), ("net/softnet_stat", _queues), ("meminfo", _memory))
