"""CPUs and memory in use, from the kernel's own accounts. See proc(5) and Documentation/scheduler/sched-stats."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup
from resources.libraries.python.drivers.probes.sampler.tasks import PROC, Tasks
from resources.libraries.python.model.bounds import MAX_HOST_COUNTERS
from resources.libraries.python.model.measurements.counters import CpuTime, HostState, Sample, TaskTime, ThreadTime
from resources.libraries.python.model.testbed.cpu import expand

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_RESIDENT = 1
"""Column of /proc/<pid>/statm, in pages."""
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STOLEN = 0, 1, 2, 5, 6, 7
"""Columns of a CPU in /proc/stat; 3 and 4 are idle times."""
_DROPPED, _SQUEEZED = 1, 2
"""Columns of a CPU in /proc/net/softnet_stat, hexadecimal."""
_ALLOWED = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)


def memory_of(tasks: Tasks, group: ControlGroup | None, root: Path = PROC) -> int | None:
    """Return the bytes of an owner: those of its control group, else the resident memory of its processes.

    Threads of the kernel have no memory of their own, so that of an owner without processes is unknown.

    `group`: Its control group; None where it has none.
    """
    if not tasks.processes:
        return None
    if group is not None and (used := group.memory_bytes()) is not None:
        return used
    pages = []
    for process in tasks.processes:
        with suppress(OSError, ValueError, IndexError):  # it has ended
            pages.append(int((root / str(process) / "statm").read_text(encoding="ascii").split()[_RESIDENT]))
    return _PAGE_BYTES * sum(pages) if pages else None


def available_bytes(root: Path = PROC) -> int | None:
    """Return the memory that the machine can give to programs without swapping; None where it is not known."""
    with suppress(OSError, ValueError, KeyError, IndexError):
        rows = dict(line.split(":", 1) for line in (root / "meminfo").read_text(encoding="ascii").splitlines())
        return 1024 * int(rows["MemAvailable"].split()[0])
    return None


class HostSampler:
    """Fulfils `roles.watching.Sampler` on this machine.

    Times of threads are exact to the nanosecond (schedstat), those of CPUs to a clock tick of 10 ms.

    `threads`: Gives thread ids by interface, asked at each reading: threads may come and go. The times of those
      that share an interface are added up.
    `tasks`: Gives ids of all threads that work for an owner, by its name, where data threads of ports do not do all
      the work.
    `memory`: Gives the bytes that owners have in use, asked after `tasks`.
    `statistics`: Gives counters of the ports' drivers, by what they count.
    """

    def __init__(
        self,
        cpus: Collection[int],
        threads: Callable[[], Mapping[str, Collection[int]]],
        *,
        tasks: Callable[[], Mapping[str, Collection[int]]] = dict,
        root: Path = Path("/proc"),
        memory: Callable[[], Mapping[str, int]] = dict,
        statistics: Callable[[], Mapping[str, int]] = dict,
        devices: Path = Path("/sys"),
    ) -> None:
        self._statistics = statistics
        self._devices = devices
        self._memory = memory
        self._cpus = frozenset(cpus)
        self._threads = threads
        self._tasks = tasks
        self._root = root
        self._tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")

    def read(self) -> Sample:
        """Times since boot. A thread that is gone is left out."""
        threads: dict[str, ThreadTime] = {}
        for interface, row in self._threads().items():
            with suppress(OSError, ValueError, IndexError):  # one has ended, or the kernel keeps no such account
                accounts = [self._text(f"{thread}/schedstat").split()[:2] for thread in row]
                running, waiting = (sum(map(int, column)) for column in zip(*accounts, strict=True))
                threads[interface] = ThreadTime(running, waiting)
        tasks = {owner: dict(self._task_times(row)) for owner, row in self._tasks().items()}
        dropped, squeezed = self._softnet()
        return Sample(
            threads=threads,
            tasks=tasks,
            cpus=self._cpu_times(),
            backlog_dropped=dropped,
            squeezed=squeezed,
            memory_bytes=self._memory(),
            available_bytes=available_bytes(self._root),
        )

    def state(self) -> HostState:
        of_cpus = self._interrupts("interrupts", "interrupts of"), self._interrupts("softirqs", "softirqs")
        counts = dict(chain(*of_cpus, self._statistics().items()))
        return HostState(
            counts=dict(islice(counts.items(), MAX_HOST_COUNTERS)),
            levels=dict(islice(self._levels(), MAX_HOST_COUNTERS)),
        )

    def _interrupts(self, file: str, what: str) -> Iterator[tuple[str, int]]:
        """Interrupts of each line that a data CPU ever had, by line and CPU."""
        try:
            heading, *lines = self._text(file).splitlines()
        except (OSError, ValueError):
            return
        cpus = [int(name.removeprefix("CPU")) for name in heading.split()]
        for line in lines:
            name, *words = line.split()
            about = words[len(cpus) :]
            # A line with a number belongs to a device, which is last; the others say what they are for.
            label = f"{name}{(' ' + about[-1]) if name[0].isdigit() and about else ''}".replace(":", "", 1)
            for cpu, count in zip(cpus, words, strict=False):
                if cpu in self._cpus and count.isdigit() and count != "0":
                    yield f"{what} {label} on CPU {cpu}", int(count)

    def _levels(self) -> Iterator[tuple[str, float]]:
        """Temperatures of all sensors, and the clock rates of the data CPUs."""
        for sensor in sorted(self._devices.glob("class/hwmon/hwmon*/temp*_input")):
            with suppress(OSError, ValueError):
                chip = (sensor.parent / "name").read_text(encoding="utf-8").strip()
                name = sensor.name.removesuffix("_input")
                yield f"temperature of {chip} {name} in °C", int(sensor.read_text(encoding="ascii")) / 1000
        for cpu in sorted(self._cpus):
            with suppress(OSError, ValueError):
                file = self._devices / f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"
                yield f"clock rate of CPU {cpu} in MHz", int(file.read_text(encoding="ascii")) / 1000

    def _task_times(self, threads: Iterable[int]) -> Iterator[tuple[int, TaskTime]]:
        for thread in threads:
            with suppress(OSError, ValueError, IndexError):  # as above
                running, waiting = map(int, self._text(f"{thread}/schedstat").split()[:2])
                if allowed := _ALLOWED.search(self._text(f"{thread}/status")):
                    yield thread, TaskTime(ThreadTime(running, waiting), frozenset(expand(allowed[1])))

    def _cpu_times(self) -> dict[int, CpuTime]:
        times: dict[int, CpuTime] = {}
        for line in self._text("stat").splitlines():
            name, *columns = line.split()
            if not name.startswith("cpu"):
                break
            if name != "cpu" and int(name[3:]) in self._cpus:
                ns = [int(column) * self._tick_ns for column in columns]
                times[int(name[3:])] = CpuTime(
                    user_ns=ns[_USER] + ns[_NICE],
                    system_ns=ns[_SYSTEM],
                    softirq_ns=ns[_IRQ] + ns[_SOFTIRQ],
                    stolen_ns=ns[_STOLEN],
                )
        return times

    def _softnet(self) -> tuple[int, int]:
        try:
            rows = [line.split() for line in self._text("net/softnet_stat").splitlines()]
        except OSError:
            return 0, 0
        return sum(int(row[_DROPPED], 16) for row in rows), sum(int(row[_SQUEEZED], 16) for row in rows)

    def _text(self, path: str) -> str:
        descriptor = os.open(f"{self._root}/{path}", os.O_RDONLY)
        try:
            parts = []
            while part := os.read(descriptor, 1 << 16):
                parts.append(part)
            return b"".join(parts).decode()
        finally:
            os.close(descriptor)
