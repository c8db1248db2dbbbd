"""One running VPP."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import NO_ENTRY, Daemon, ExecContext
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vpp import crash, show_output
from resources.libraries.python.drivers.vpp.cli import CommandLine
from resources.libraries.python.drivers.vpp.startup import Startup
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady

_READY_S = 30.0
_END_S = 10.0
_SLOWEST_LOOK_S = 2.0
_ENDING_S = 5.0
"""Within which a VPP has ended that does not answer any more because it ends: its core file is written first."""


class VppInstance:
    """A VPP with its startup.conf, its process and its command line."""

    def __init__(
        self,
        what: str,
        startup: Startup,
        machine: MachineLock,
        argv: Callable[[Path], Sequence[str]],
        entry: ExecContext = NO_ENTRY,
    ) -> None:
        """Prepare.

        Args:
            what: For a person: `VPP of nf-1-1`.
            startup: Its configuration; has the folder of its own.
            machine: Owns the process.
            argv: Gives the command that runs it with a startup.conf of this path, in the foreground.
            entry: What it enters before it runs, such as a container.
        """
        self.what = what
        self.startup = startup
        self._machine = machine
        conf = startup.folder / "startup.conf"
        self._conf = conf
        self._daemon = Daemon(what, argv(conf), startup.folder / "vpp.log", entry=entry)
        self._cli = CommandLine(startup.cli_socket)
        self._started = 0.0
        self._version = ""
        self._last_work: tuple[show_output.ThreadWork, ...] = ()

    def start(self, inside: Callable[[Callable[[], None]], None]) -> None:
        """Start it; it is not ready yet.

        Args:
            inside: Does work in its network namespace, in a thread that ends with it.

        Raises:
            CsitError: It cannot be started.
        """
        self.startup.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._conf.write_text(self.startup.text(), encoding="utf-8")
        self._started = time.time()
        inside(lambda: self._daemon.start(self.startup.placement.main, self._machine))

    def wait_ready(self, within_s: float = _READY_S) -> None:
        """Wait until it answers on its command line.

        Raises:
            CsitError: It ended; the text has the end of its log.
            NotReady: It does not answer; likewise.
        """
        # The socket itself says nothing: of a VPP that was killed it stays behind.
        look = CommandLine(self.startup.cli_socket, _SLOWEST_LOOK_S)

        def missing() -> str:
            try:
                self._version = show_output.version(look.ask("show version"))
            except CsitError as error:
                return str(error)
            return ""

        try:
            self._daemon.wait_for("an answer to show version", missing, within_s)
        finally:
            look.close()

    @property
    def version(self) -> str:
        """Of the running program."""
        return self._version

    @property
    def pid(self) -> int:
        """Process id."""
        return self._daemon.pid

    def do(self, commands: Iterable[str]) -> None:
        """Configure it, each reply checked.

        Raises:
            CsitError: A command was refused, or VPP has exited; the text names it.
        """
        self._told(lambda: self._cli.do(commands))

    def ask(self, command: str) -> str:
        """What it shows."""
        replies: list[str] = []
        self._told(lambda: replies.append(self._cli.ask(command)))
        return replies[0]

    def _told(self, work: Callable[[], None]) -> None:
        """A VPP that has ended is the reason for what its command line did or did not say."""
        try:
            work()
        except CsitError as error:
            # What closes a connection may still be on its way to its end.
            with suppress(NotReady):
                if not isinstance(error, CommandFailed):
                    wait_until("its end", lambda: "" if self.problem() else "it runs", _ENDING_S, pause_s=0.02)
            if problem := self.problem():
                raise CsitError(problem) from error
            if isinstance(error, CommandFailed):
                raise CommandFailed((f"{self.what}:", *error.argv[1:]), error.status, error.stderr) from error
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
        self._last_work = show_output.runtime(self.ask("show runtime"))
        self.do(["clear runtime"])

    @property
    def work(self) -> tuple[show_output.ThreadWork, ...]:
        """What its threads did between the last two notes."""
        return self._last_work

    def problem(self) -> str:
        """Why it does not run, with its last words and its core file; empty while it does."""
        problem = self._daemon.problem()
        if problem and self._started and self._daemon.started:
            core = crash.core_of(self._daemon.pid, self._started, self.startup.folder)
            return f"{problem}; {core}" if core else problem
        return problem

    def tell_to_end(self) -> None:
        """Ask it to end."""
        self._cli.close()
        self._daemon.tell_to_end()

    def wait_end(self) -> None:
        """Wait until it has ended, and kill it when it has not. Safe to call at any time and more than once."""
        self._daemon.wait_end(_END_S)
