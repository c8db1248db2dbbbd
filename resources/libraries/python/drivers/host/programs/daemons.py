"""Programs that run beside the project while a cell is deployed: started in a namespace, owned, stopped, explained."""

import os
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.cgroup_exec import entering
from resources.libraries.python.drivers.host.ownership import processes
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.program_output import tail_of
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.bounds import LARGEST_OUTPUT_BYTES

_TAIL_BYTES = 2000
_TAIL_LINES = 4


@dataclass(frozen=True, slots=True)
class ExecContext:
    """Control groups and container that a program joins before exec."""

    doors: tuple[Path, ...] = ()
    """Files of control groups into which a process writes its id."""
    container: int | None = None
    """A process of a container; None for none."""

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The argument vector of a program that enters first."""
        return entering(self.doors, argv, self.container)


NO_ENTRY = ExecContext()


class Daemon:
    """One running program. What it says is in a log file, of which errors show the end.

    `what`: For messages: `testpmd of nf-1-1`.
    `log`: Where its standard output and error go.
    `environment`: Variables on top of this process's.
    `folder`: Where it runs; None for where this process runs.
    `prints_to`: Where standard output goes, where that is what it makes and not what it says.
    `entry`: Control groups and container that it enters before it runs.
    """

    def __init__(
        self,
        what: str,
        argv: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
        prints_to: Path | None = None,
        entry: ExecContext = NO_ENTRY,
    ) -> None:
        self._prints_to = prints_to
        self._entry = entry
        self.what = what
        self._argv = tuple(argv)
        self._log = log
        self._environment = {**os.environ, **(environment or {})}
        self._folder = folder
        self._machine: MachineLock | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, cpus: int | Collection[int], machine: MachineLock) -> None:
        """Start it on a CPU or several, in the network namespace of the calling thread, which must end afterwards.

        Raises:
            CsitError: It cannot be started.
        """
        # The child inherits namespace and CPU of this thread: no helper program, and no moment in a wrong place.
        os.sched_setaffinity(0, {cpus} if isinstance(cpus, int) else cpus)
        try:
            with self._log.open("wb") as log, ExitStack() as stack:
                printed = log if self._prints_to is None else stack.enter_context(self._prints_to.open("wb"))
                self._process = subprocess.Popen(
                    self._entry.argv(self._argv),
                    stdin=subprocess.PIPE,
                    stdout=printed,
                    stderr=log,
                    env=self._environment,
                    cwd=self._folder,
                    # Out of the terminal's group: an interrupt goes to the run, which then stops the program.
                    process_group=0,
                )
        except OSError as error:
            raise CsitError(f"{self.what} cannot be started: {self._argv[0]}: {error.strerror}") from error
        self._machine = machine
        machine.claim_process(self._process.pid)

    @property
    def started(self) -> bool:
        """Whether it has been started and not yet been waited for."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """Process id.

        Raises:
            CsitError: It has not been started.
        """
        if self._process is None:
            raise CsitError(f"{self.what} has not been started")
        return self._process.pid

    def problem(self) -> str:
        """Why it does not run, with its last words; empty while it does."""
        if self._process is None:
            return f"{self.what} has not been started"
        if how := processes.end_of(self._process):
            return f"{self.what} {how}; it said last: {self.last_output()}"
        return f"{self.what} is stopped (SIGSTOP)" if processes.is_stopped(self._process.pid) else ""

    @property
    def status(self) -> int | None:
        """Status that it ended with, negative for a signal; None while it runs, or when it has been waited for."""
        return None if self._process is None else processes.exit_status(self._process)

    def failure(self, reason: str) -> CsitError:
        """Return the error of a program that has failed.

        `reason`: What it said, or what is wrong with its report.

        Returns:
            A CommandFailed with its status and the reason; where it is stopped or does not come to its end, that.
        """
        problem = self.problem()
        status = None if self._process is None else self._process.returncode
        if status is None:
            return CsitError(problem or f"{self.what} has not ended: {reason}")
        return CommandFailed((self.what,), status, reason)

    def output(self) -> str:
        """All that it has written, up to `LARGEST_OUTPUT_BYTES`."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as log:
            return log.read(LARGEST_OUTPUT_BYTES).decode(errors="replace")

    def last_output(self) -> str:
        """Its last lines as one."""
        lines = [line.strip() for line in tail_of(self._log, _TAIL_BYTES).splitlines() if line.strip()]
        return " | ".join(lines[-_TAIL_LINES:]) or "nothing"

    def wait_for(self, what: str, missing: Callable[[], str], within_s: float) -> None:
        """Wait for a fact that this program brings about.

        Raises:
            CsitError: It ended.
            NotReady: The deadline passed; the text has its last words.
        """

        def still_missing() -> str:
            if problem := self.problem():
                raise CsitError(problem)
            try:
                lacks = missing()
            except (CsitError, OSError) as error:  # it may have ended after the first look
                if problem := self.problem():
                    raise CsitError(problem) from error
                raise
            return f"{lacks}; it said last: {self.last_output()}" if lacks else ""

        wait_until(f"{self.what}: {what}", still_missing, within_s, pause_s=0.01)

    def request_end(self, last_line: bytes = b"") -> None:
        """Ask it to end: by closing its standard input after a last line, or by SIGTERM where there is no such line.

        It is continued in case it is stopped (SIGSTOP), as it could not end otherwise.
        """
        if self._process is None or self._process.poll() is not None:
            return
        if last_line:
            assert self._process.stdin is not None  # noqa: S101 - asked for above
            with suppress(BrokenPipeError):
                self._process.stdin.write(last_line)
                self._process.stdin.close()
        else:
            self._process.terminate()
        processes.continue_group(self._process.pid)

    def wait_end(self, within_s: float) -> None:
        """Wait until it has ended, and kill it when it has not, with what it has started in its process group.

        Safe to call at any time and more than once.
        """
        process, self._process = self._process, None
        if process is None:
            return
        processes.end_group(process, within_s)
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        if self._machine is not None:
            self._machine.release_process(process.pid)
