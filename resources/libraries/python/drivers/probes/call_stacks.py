"""Call stacks, sampled with perf of the kernel's tools by frame pointers and folded by owner.

`perf script -F comm,tid,ip,sym` prints a line with the command and the thread of each sample, then its frames, the
innermost first, then an empty line.
"""

import os
import re
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryFile
from typing import IO, Literal

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.processes import end_group
from resources.libraries.python.drivers.host.programs.program_output import path_of, tail_of
from resources.libraries.python.drivers.probes.sampler.costs import CPU_CLOCK, CYCLES, why_not_on
from resources.libraries.python.errors import CommandFailed, NotReady, Unsupported
from resources.libraries.python.model.bounds import DEEPEST_STACK, LONGEST_FUNCTION, MAX_STACKS
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.stacks import OTHER, SEPARATOR, SOFTIRQ, NodeStacks

COLUMNS = "comm,tid,ip,sym"
MAX_DIFFERENT = 200_000
"""Different stacks that are counted one by one; samples of further ones count as `OTHER`."""
_IDLE = "swapper"
_UNKNOWN = "[unknown]"
_HEAD = re.compile(r"^(\S.{0,40}?)\s+(\d{1,10})\s*$")
_FRAME = re.compile(r"^\s+[0-9a-f]{1,16}\s+(\S.*)")
_LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?\s+lost\s+(\d{1,18})")
_COMPILED = re.compile(r"(?:\.(?:isra|constprop|part|cold|llvm)(?:\.\d{1,20}){0,4}){1,8}$")
"""Copies of a function that a compiler makes: other builds have others."""
_NUMBERED = re.compile(r"^(vhost-|kworker/|ksoftirqd/|pmd-c).*")
_RECEIVING = "napi/"
"""Begins the name of a receive thread of the kernel, whose interface follows."""
_SOFTIRQ_ENTRIES = frozenset({"__do_softirq", "handle_softirqs", "__softirqentry_text_start"})


@dataclass(slots=True)
class StackCounts:
    """Samples by stack."""

    counts: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    idle: int = 0
    elsewhere: int = 0
    lost: int = 0


def fold(lines: Iterable[str], owners: Mapping[int, str]) -> StackCounts:
    """Fold the output of perf.

    `lines`: Its lines; those that are too long or of another form are skipped.
    `owners`: Part of the cell by thread id. Samples of other threads count as idle, as softirq where the kernel handled
      packets in them, or as elsewhere.
    """
    found = StackCounts()
    for command, thread, frames in _samples(lines, found):
        found.samples += 1
        owner = owners.get(thread)
        if owner is not None:
            name = _NUMBERED.sub(lambda match: match[1].rstrip("-/"), command)
            before = (owner,) if command.startswith(_RECEIVING) else (owner, _frame(name))
            _add(found, (*before, *frames))
        elif (entry := next((at for at, name in enumerate(frames) if name in _SOFTIRQ_ENTRIES), None)) is not None:
            _add(found, (SOFTIRQ, *frames[entry:]))
        elif command == _IDLE:
            found.idle += 1
        else:
            found.elsewhere += 1
    return found


def _samples(lines: Iterable[str], found: StackCounts) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield command, thread and frames of each sample, the outermost frame first."""
    head: tuple[str, int] | None = None
    frames: list[str] = []
    for line in lines:
        if match := _FRAME.match(line):
            frames.append(_frame(match[1].rstrip()))
            continue
        if head is not None:
            yield *head, _shortened(frames)
            head = None
        frames.clear()
        if match := _LOST.search(line):
            found.lost += int(match[1])
        elif match := _HEAD.match(line):
            head = match[1], int(match[2])
    if head is not None:
        yield *head, _shortened(frames)


def _frame(name: str) -> str:
    """A function's name without what differs between builds, and without the separator."""
    name = _COMPILED.sub("", name.partition("+0x")[0])
    return "".join(char if char.isprintable() else "?" for char in name.replace(SEPARATOR, ":"))[:LONGEST_FUNCTION]


def _shortened(frames: Sequence[str]) -> tuple[str, ...]:
    """The frames, outermost first, without recursion and without addresses that no function is known of.

    Where a program has no frame pointers, addresses beyond its innermost function are no callers.
    """
    outer = list(reversed(frames))
    if outer and outer.count(_UNKNOWN) == len(outer):
        return (_UNKNOWN,)
    while outer and outer[0] == _UNKNOWN:
        del outer[0]
    once = [name for at, name in enumerate(outer) if at == 0 or name != outer[at - 1]]
    if len(once) > DEEPEST_STACK:
        half = DEEPEST_STACK // 2
        once = [*once[:half], "[...]", *once[-half + 1 :]]
    return tuple(once)


def _add(found: StackCounts, frames: Sequence[str]) -> None:
    stack = SEPARATOR.join(frames)
    if stack not in found.counts and len(found.counts) >= MAX_DIFFERENT:
        stack = SEPARATOR.join((frames[0], OTHER))
    found.counts[stack] += 1


def kept(counts: Mapping[str, int], most: int = MAX_STACKS) -> tuple[dict[str, int], int]:
    """Return the most frequent stacks, and the number of samples in others, which are kept by owner only.

    Returns:
        As many samples as there were: those of other stacks are under `owner;[other stacks]`.
    """
    ranked = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    found, others = Counter(dict(ranked[:most])), ranked[most:]
    for stack, count in others:
        found[f"{stack.partition(SEPARATOR)[0]}{SEPARATOR}{OTHER}"] += count
    return dict(found), sum(count for _, count in others)


def owners_of(tasks: Mapping[str, Collection[int]]) -> dict[int, str]:
    """Return the owner of each thread, from the threads of each owner."""
    return {thread: owner for owner, threads in tasks.items() for thread in threads}


HZ = 149
"""Samples per second of each CPU: no divisor or multiple of the kernel's own periods, with which samples would beat."""
_PAGES = 1024
"""Of the buffer of each CPU, 4 MiB: more than 30 s of samples, so that perf rarely runs in a trial."""
_PRIORITY = 2
"""Above the data threads, as that of the feature sampler."""
_LARGEST_FILE = "512M"
_MAX_TEXT_BYTES = 4 << 30
_READY_S, _END_S, _READ_S = 30.0, 60.0, 200.0
_LONGEST_LINE = 500
_TAIL_BYTES = 2000
_VERSION_S = 10.0
_FIX = "apt-get install linux-perf (Ubuntu: linux-tools-$(uname -r))"


def why_unsampled(program: str = "perf") -> PreflightProblem | None:
    """Return why call stacks cannot be sampled on this machine; None where they can."""
    path = path_of(program)
    if path is None:
        return PreflightProblem(f"{program} is not installed, so call stacks cannot be sampled", _FIX)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, check=False, timeout=_VERSION_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return PreflightProblem(f"{path} does not run ({error}), so call stacks cannot be sampled", _FIX)
    if done.returncode:  # Ubuntu's is a script that looks for one of the kernel's version
        return PreflightProblem(f"{path} does not run with this kernel, so call stacks cannot be sampled", _FIX)
    if refused := why_not_on(min(os.sched_getaffinity(0)), CPU_CLOCK):
        level = "unknown"
        with suppress(OSError):
            level = Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii", errors="replace").strip()
        return PreflightProblem(
            f"call stacks cannot be sampled: {refused} (kernel.perf_event_paranoid is {level})",
            "run as root or with CAP_PERFMON, and let the container or seccomp profile permit perf_event_open",
        )
    return None


class PerfSampler:
    """Fulfils `roles.watching.StackSampler` on this machine.

    `cpus`: Logical CPUs whose stacks are sampled, whatever runs there.
    `owners`: Gives thread ids by part of the cell.
    `machine`: Keeps the process and its folder on record.
    `cpu`: Where perf runs: one without data threads. None: wherever there is room.
    `hz`: Samples per second of each CPU.
    """

    def __init__(
        self,
        node: str,
        cpus: Collection[int],
        owners: Callable[[], Mapping[str, Collection[int]]],
        machine: MachineLock,
        *,
        cpu: int | None = None,
        hz: int = HZ,
    ) -> None:
        self._node, self._cpus, self._owners, self._machine = node, tuple(sorted(cpus)), owners, machine
        self._cpu, self._hz = cpu, hz
        self._event: Literal["cycles", "cpu-clock"] = "cpu-clock"
        self._known: dict[int, str] = {}
        self._held = ExitStack()
        self._recorder: _Recorder | None = None
        self.cpu_s = 0.0
        """Processor time of perf from its start to its end, in seconds; after `stop`."""

    def start(self) -> None:
        self.stop()
        if why := why_unsampled():
            raise Unsupported(str(why))
        self._event = "cpu-clock" if why_not_on(self._cpus[0], CYCLES) else "cycles"
        self._known = owners_of(self._owners())
        cpus = ",".join(map(str, self._cpus))
        argv = [
            *(path_of("perf") or "perf", "record", "-e", self._event, "-F", str(self._hz), "-C", cpus, "-g"),
            *("-m", str(_PAGES), "-N", "-B", "--max-size", _LARGEST_FILE, "-D", "-1"),
        ]
        with ExitStack() as held:
            folder = self._machine.folder("stacks")
            held.callback(rmtree, folder, ignore_errors=True)
            recorder = _Recorder(argv, folder, self._machine, self._cpu)
            held.callback(recorder.close)
            recorder.send("enable")
            self._recorder = recorder
            self._held = held.pop_all()

    def pause(self) -> None:
        """Sample nothing until `resume`."""
        if self._recorder is not None:
            self._recorder.send("disable")

    def resume(self) -> None:
        """Go on after `pause`."""
        if self._recorder is not None:
            self._recorder.send("enable")

    def stop(self) -> tuple[NodeStacks, ...]:
        recorder, self._recorder = self._recorder, None
        with self._held:
            if recorder is None:
                return ()
            recorder.send("disable")
            sampled_s = recorder.sampled_s
            owners = {**self._known, **owners_of(self._owners())}
            self.cpu_s = recorder.end()
            found = read_samples(recorder.file, owners)
        stacks, cut = kept(found.counts)
        return (
            NodeStacks(
                node=self._node,
                event=self._event,
                hz=self._hz,
                cpus=self._cpus,
                sampled_s=sampled_s,
                samples=found.samples,
                idle=found.idle,
                elsewhere=found.elsewhere,
                lost=found.lost,
                cut=cut,
                stacks=stacks,
            ),
        )


class _Recorder:
    """A running `perf record`, which samples between two commands."""

    def __init__(self, argv: list[str], folder: Path, machine: MachineLock, cpu: int | None) -> None:
        self.file, self._log = folder / "perf.data", folder / "perf.log"
        self._argv, self._machine = argv, machine
        self._began_s: float | None = None
        self.sampled_s = 0.0
        """Time between commands to sample and to sample no more."""
        with ExitStack() as held:
            asked, self._commands = os.pipe2(os.O_CLOEXEC)
            held.callback(os.close, self._commands)
            self._answers, answering = os.pipe2(os.O_CLOEXEC)
            held.callback(os.close, self._answers)
            try:
                with self._log.open("wb") as log:
                    self._process = subprocess.Popen(
                        [*argv, "--control", f"fd:{asked},{answering}", "-o", str(self.file)],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        pass_fds=(asked, answering),
                        env={**os.environ, "LC_ALL": "C"},
                        process_group=0,
                    )
            finally:
                os.close(asked)
                os.close(answering)
            held.callback(self._kill)
            machine.claim_process(self._process.pid)
            with suppress(OSError):
                if cpu is not None:
                    os.sched_setaffinity(self._process.pid, {cpu})
                # Else data threads in overload keep it from emptying its buffers, and from obeying.
                os.sched_setscheduler(self._process.pid, os.SCHED_FIFO, os.sched_param(_PRIORITY))
            self.close = held.pop_all().close

    def send(self, command: str) -> None:
        """Send a command and wait until it is done.

        Raises:
            CommandFailed: perf has ended.
            NotReady: It does not answer.
        """
        os.write(self._commands, f"{command}\n".encode())
        ready, _, _ = select.select([self._answers], [], [], _READY_S)
        if not ready:
            raise NotReady(f"perf to {command} its events", _READY_S, self._log_tail())
        if not os.read(self._answers, 100):
            raise CommandFailed(self._argv, self._process.wait(_END_S), self._log_tail())
        now = time.monotonic()
        if self._began_s is not None:
            self.sampled_s += now - self._began_s
        self._began_s = now if command == "enable" else None

    def end(self) -> float:
        """End it; return its CPU time in seconds.

        Raises:
            NotReady: It has written no samples.
        """
        process = self._process
        with suppress(OSError):  # no measurement is running any more
            os.sched_setscheduler(process.pid, os.SCHED_OTHER, os.sched_param(0))
        cpu_s = 0.0
        with suppress(OSError, ValueError, IndexError):
            cpu_s = int(Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
        process.send_signal(signal.SIGINT)
        if not end_group(process, _END_S) or not self.file.exists():
            raise NotReady("samples of perf", _END_S, self._log_tail())
        return cpu_s

    def _kill(self) -> None:
        self._process.terminate()
        end_group(self._process, _END_S)
        self._machine.release_process(self._process.pid)

    def _log_tail(self) -> str:
        with suppress(OSError):
            return tail_of(self._log, _TAIL_BYTES).strip() or "nothing"
        return "nothing"


def read_samples(file: Path, owners: Mapping[int, str]) -> StackCounts:
    """Fold the samples in a file of perf.

    `owners`: part of the cell by thread id.

    Raises:
        CommandFailed: perf cannot read it.
        Unsupported: It takes too long.
    """
    argv = [path_of("perf") or "perf", "script", "-i", str(file), "-F", COLUMNS, "--no-inline", "--show-lost-events"]
    environment = {**os.environ, "LC_ALL": "C"}
    with (
        TemporaryFile() as stderr,
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, env=environment
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - asked for above
        try:
            found = fold(_lines(process.stdout), owners)
            status = process.wait(_END_S)
        except BaseException:
            process.kill()
            raise
        if status:
            stderr.seek(0)
            raise CommandFailed(argv, status, stderr.read(_TAIL_BYTES).decode(errors="replace").strip())
    return found


def _lines(stream: IO[bytes]) -> Iterator[str]:
    deadline, left = time.monotonic() + _READ_S, _MAX_TEXT_BYTES
    while line := stream.readline(_LONGEST_LINE):
        left -= len(line)
        if left < 0 or time.monotonic() > deadline:
            raise Unsupported(f"samples take more than {_MAX_TEXT_BYTES >> 30} GiB or {_READ_S:.0f} s to read")
        yield line.decode("utf-8", "replace")
