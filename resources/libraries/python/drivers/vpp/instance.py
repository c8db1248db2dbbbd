"""One running VPP, and the core files that it leaves when it crashes."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from resources.libraries.python.drivers.host.ownership.cleanup_steps import remove_file, take_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import NO_ENTRY, Daemon, ExecContext
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vpp import SEGMENTS, show_output
from resources.libraries.python.drivers.vpp.cli import CommandLine
from resources.libraries.python.drivers.vpp.configuration import Startup
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.bounds import LARGEST_CORE_BYTES

Answer = TypeVar("Answer")
_READY_S = 30.0
_NIC_S = 10.0
"""For each NIC on top: DPDK looks for them and configures them one after the other before VPP answers. FD.io CSIT waits
for 120 s."""
_HEAP_GB_S = 1.0
"""For each GB of heap on top: VPP locks its huge pages, which the kernel clears then, at more than 1 GB/s."""
_END_S = 10.0
_SLOWEST_LOOK_S = 2.0
_ENDING_S = 5.0
"""Within which a VPP has ended that does not answer any more because it ends: its core file is written first."""


KEPT = Path("/var/tmp/csit-density-cores")  # noqa: S108 - of root alone, and it outlives a reboot, as a core file should
"""Where core files are kept that would end with the folder of their program."""
_MAX = 3
_MOVED_S = 300.0
_KERNEL = Path("/proc/sys/kernel")


def core_of(pid: int, started: float, folder: Path, kernel: Path = _KERNEL, kept: Path = KEPT) -> str:
    """Say where the core file of an ended process is; empty where there is none.

    One that lies where the program ran is moved to where it is kept; of those there are at most three, the newest ones.

    `started`: when it was started, in seconds since the epoch: an older file is of another process.
    `kernel`: has `core_pattern` and `core_uses_pid`; another one for tests.
    """
    pattern = _text(kernel / "core_pattern")
    if pattern.startswith("|"):
        return f"its core file, if any, went to {pattern[1:].strip().partition(' ')[0]} (kernel.core_pattern)"
    if not pattern:
        return ""
    found = _newest(folder, pattern, pid, started, _text(kernel / "core_uses_pid"))
    if found is None:
        moved = kept / f"{folder.name}.{pid}.core"
        return _sentence(moved) if moved.exists() and not _misuse(kept) else ""
    if found.parent != folder:
        return _sentence(found)
    problem = _misuse(kept)
    if not problem and _size_bytes(found) > LARGEST_CORE_BYTES:
        problem = f"no more than {LARGEST_CORE_BYTES >> 20} MB are kept"
    if not problem:
        try:
            return _sentence(_keep(found, kept / f"{folder.name}.{pid}.core"))
        except CsitError as error:
            problem = str(error)
    return f"{_sentence(found)}, ends with this folder: {problem}"


def _newest(folder: Path, pattern: str, pid: int, started: float, uses_pid: str) -> Path | None:
    if "%p" not in pattern and uses_pid not in ("", "0"):
        pattern += ".%p"
    # What else there may be in the name (program, signal, time) is not needed: pid and time identify it.
    where = folder / re.sub(r"%[^p%]", "*", pattern).replace("%p", str(pid)).replace("%%", "%")
    # Others may write to this folder: what is no file is no core, and a file may go at any moment.
    found: list[tuple[float, Path]] = []
    for path in where.parent.glob(where.name):
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_mtime >= started:
                found.append((status.st_mtime, path))
    return max(found, default=(0.0, None))[1]


def _misuse(kept: Path) -> str:
    """Why core files cannot be kept in a folder; empty where they can. Another user may have made it, or a link."""
    try:
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = kept.lstat()
    except OSError as error:
        return f"{kept} cannot be made: {error.strerror}"
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
        return ""
    mode = stat.filemode(found.st_mode)
    return f"{kept} belongs to user {found.st_uid} with mode {mode}, and is not used; look at it and remove it"


def _keep(core: Path, place: Path) -> Path:
    earlier = sorted(place.parent.glob("*.core"), key=lambda path: path.stat().st_mtime)
    for old in earlier[: max(0, len(earlier) + 1 - _MAX)]:
        old.unlink()
    # Between file systems it keeps the holes, which Python's own copy fills.
    completed(["mv", "-T", "--", str(core), str(place)], _MOVED_S, what=f"{place}")
    return place


def _sentence(core: Path) -> str:
    return f"core file {core}, {_size_bytes(core) >> 20} MB"


def _size_bytes(core: Path) -> int:
    """On disk: most of a core file is a hole."""
    return core.stat().st_blocks * 512


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""


def remove_segments(prefixes: Iterable[str], folder: Path = Path("/dev/shm")) -> list[str]:  # noqa: S108 - VPP's place
    """Remove shared memory that VPPs have left that were killed; one that ends by itself removes its own.

    `prefixes`: Of their `api-segment`.
    `folder`: Where shared memory is; another one for tests.

    Returns:
        A sentence for each file.

    Raises:
        CsitError: Some cannot be removed; the others were.
    """
    files = (folder / f"{prefix}-{name}" for prefix in prefixes for name in ("global_vm", "vpe-api"))
    return take_all(partial(remove_file, file, f"shared memory {file}") for file in files)


class VppInstance:
    """A VPP with its startup.conf, its process and its command line.

    `what`: For messages: `VPP of nf-1-1`.
    `startup`: Its configuration; has the folder of its own.
    `argv`: Gives the command that runs it with a startup.conf of this path, in the foreground.
    `entry`: What it enters before it runs, such as a container.
    """

    def __init__(
        self,
        what: str,
        startup: Startup,
        machine: MachineLock,
        argv: Callable[[Path], Sequence[str]],
        entry: ExecContext = NO_ENTRY,
    ) -> None:
        self.what = what
        self.startup = startup
        self._machine = machine
        self._conf = startup.folder / "startup.conf"
        self._daemon = Daemon(what, argv(self._conf), startup.folder / "vpp.log", entry=entry)
        self._cli = CommandLine(startup.cli_socket)
        self._started = 0.0
        self.version = ""
        """Of the running program."""
        self._has_segments = False
        self.work: tuple[show_output.ThreadWork, ...] = ()
        """Work of its threads between the last two notes."""

    def start(self, inside: Callable[[Callable[[], None]], None]) -> None:
        """Start it; it is not ready yet.

        `inside`: Does work in its network namespace, in a thread that ends with it.

        Raises:
            CsitError: It cannot be started.
        """
        self.startup.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._conf.write_text(self.startup.text(), encoding="utf-8")
        self._started = time.time()

        def begin() -> None:
            self._machine.claim(SEGMENTS, self.startup.name)
            self._has_segments = True
            self._daemon.start(self.startup.placement.main, self._machine)

        inside(begin)

    def wait_ready(self, more_s: float = 0.0) -> None:
        """Wait until it answers on its command line.

        `more_s`: Seconds that it has on top, because others start at the same time.

        Raises:
            CsitError: It ended; the text has the end of its log.
            NotReady: It does not answer; likewise.
        """
        # The socket itself says nothing: of a VPP that was killed it stays behind.
        look = CommandLine(self.startup.cli_socket, _SLOWEST_LOOK_S)
        nics = [str(device.pci_address) for device in self.startup.devices]
        within_s = _READY_S + _NIC_S * len(nics) + _HEAP_GB_S * self.startup.heap_mb / 1024 + more_s
        first = f" (DPDK configures {len(nics)} NICs before: {', '.join(nics)})" if nics else ""

        def missing() -> str:
            try:
                self.version = show_output.version(look.ask("show version"))
            except CsitError as error:
                return str(error)
            return ""

        try:
            self._daemon.wait_for(f"an answer to show version{first}", missing, within_s)
        finally:
            look.close()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._daemon.pid

    def do(self, commands: Iterable[str]) -> None:
        """Configure it, each reply checked.

        Raises:
            CsitError: A command was refused, or VPP has exited; the text names it.
        """
        self._naming_end(lambda: self._cli.do(commands))

    def ask(self, command: str) -> str:
        """What it shows."""
        return self._naming_end(lambda: self._cli.ask(command))

    def _naming_end(self, work: Callable[[], Answer]) -> Answer:
        """A VPP that has ended is the reason for what its command line did or did not say."""
        try:
            return work()
        except CsitError as error:
            # What closes a connection may still be on its way to its end.
            with suppress(NotReady):
                if not isinstance(error, CommandFailed):
                    wait_until("its end", lambda: "" if self.problem() else "it runs", _ENDING_S, pause_s=0.02)
            if problem := self.problem():
                raise CsitError(problem) from error
            if isinstance(error, CommandFailed):
                raise CommandFailed((f"{self.what}:", *error.argv[1:]), error.status, error.stderr) from error
            if isinstance(error, NotReady):
                raise NotReady(f"{self.what}: {error.what}", error.after_s, error.last_seen) from error
            raise CsitError(f"{self.what}: {error}") from error

    def affinity(self) -> dict[int, frozenset[int]]:
        """CPUs on which each of its threads may really run, by VPP's number; 0 is the main thread."""
        found: dict[int, frozenset[int]] = {}
        for number, thread in self.threads().items():
            try:
                found[number] = frozenset(os.sched_getaffinity(thread))
            except ProcessLookupError:
                found[number] = frozenset()
        return found

    def threads(self) -> dict[int, int]:
        """Its threads: number to the kernel's thread id."""
        return show_output.threads(self.ask("show threads"))

    def note_work(self) -> None:
        """Keep what its threads did since this was called last."""
        self.work = show_output.runtime(self.ask("show runtime"))
        self.do(["clear runtime"])

    def problem(self) -> str:
        """Why it does not run, with its last words and its core file; empty while it does."""
        problem = self._daemon.problem()
        if problem and self._started and self._daemon.started:
            core = core_of(self._daemon.pid, self._started, self.startup.folder)
            return f"{problem}; {core}" if core else problem
        return problem

    def request_end(self) -> None:
        """Ask it to end."""
        self._cli.close()
        self._daemon.request_end()

    def wait_end(self) -> None:
        """Wait until it has ended, and kill it when it has not. Safe to call at any time and more than once."""
        self._daemon.wait_end(_END_S)
        if self._has_segments:
            remove_segments([self.startup.name])
            self._machine.release(SEGMENTS, [self.startup.name])
            self._has_segments = False
