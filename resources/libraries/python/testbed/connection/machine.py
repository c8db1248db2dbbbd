"""Base of connections to this machine and to others: everything but how a program's streams are opened."""

import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.bounds import LARGEST_OUTPUT_BYTES
from resources.libraries.python.redaction import command_text
from resources.libraries.python.testbed.connection.command import Streams, killing, words
from resources.libraries.python.testbed.connection.program import RemoteProgram

Become = Literal["auto", "sudo", "no"]
_START_S = 20.0
"""How long it may take until a program is known to run: a session, a login script, sudo."""
_KILL_S = 5.0
_MISSING = 127
"""Status of a shell that finds no such program."""


@dataclass(frozen=True, slots=True)
class CompletedProgram:
    """A program that has ended."""

    status: int
    """As a shell has it: 128 + the signal's number where it was killed by one."""
    stdout: str
    stderr: str


class Connection(ABC):
    """Runs programs on a machine. Argument vectors only: quoting is its affair."""

    WITHOUT_SUDO = "set access.user: root"
    """Way to root's rights without sudo, as advice."""

    def __init__(self, name: str, become: Become) -> None:
        self._name = name
        self._become = become
        self._needs_sudo: bool | None = None
        self._asking = threading.Lock()
        self._opened: list[RemoteProgram] = []

    @abstractmethod
    def _start(self, command: Sequence[str]) -> Streams:
        """Start a command, once.

        Raises:
            ConnectionFailed: The machine cannot be reached.
        """

    @property
    def name(self) -> str:
        """The machine's name, for messages."""
        return self._name

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        within_s: float = 30.0,
        check: bool = True,
        root: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> CompletedProgram:
        """Run a program to its end, which is when no process has its output open any more.

        Where the way to the machine has broken since it was last used, it is made again, once. A program is never
        started twice: where it is not known whether it ran, that is said.

        `within_s`: When to give up; the program is then ended with its children.
        `environment`: Variables on top of those that are there; no secrets, everybody on the machine can read
          them.

        Raises:
            CommandFailed: It ended with another status than zero, and `check` is set; or there is no such program.
            Unsupported: There is no way to root's rights.
            NotReady: It did not end in time.
            ConnectionFailed: The machine cannot be reached.
        """
        status, output, errors = self._run(argv, stdin, within_s, root, environment)
        if check and status:
            raise CommandFailed(argv, status, errors)
        return CompletedProgram(status, output.decode(errors="replace"), errors)

    def open(
        self, argv: Sequence[str], *, root: bool = False, environment: Mapping[str, str] | None = None
    ) -> RemoteProgram:
        """Start a program and talk with it.

        Raises:
            CommandFailed: There is no such program, or it may not be run.
            Unsupported: There is no way to root's rights.
            ConnectionFailed: The machine cannot be reached.
        """
        program = self._launch(argv, root, environment, None)
        self._opened = [other for other in self._opened if not other.closed] + [program]
        return program

    def close(self) -> None:
        """Close the connection and the programs that were opened. Safe to call more than once.

        All programs are told first, so that they end side by side.
        """
        for program in self._opened:
            program.end_input()
        while self._opened:
            self._opened.pop().close()

    # -- programs -----------------------------------------------------------------------------------------------------

    def _run(
        self, argv: Sequence[str], stdin: bytes, within_s: float, root: bool, environment: Mapping[str, str] | None
    ) -> tuple[int, bytes, str]:
        program = self._launch(argv, root, environment, within_s)
        deadline = time.monotonic() + within_s
        feeder = threading.Thread(target=_feed, args=(program, stdin), name=f"stdin of {argv[0]}", daemon=True)
        output = bytearray()
        try:
            feeder.start()
            while block := program.receive(max(0.0, deadline - time.monotonic())):
                output += block
                if len(output) > LARGEST_OUTPUT_BYTES:
                    raise CsitError(
                        f"{self._name}: {argv[0]} was ended: it wrote more than {LARGEST_OUTPUT_BYTES >> 20} MB"
                    )
                if time.monotonic() > deadline:
                    raise TimeoutError
            return program.finish(deadline), bytes(output), program.stderr_tail()
        except (NotReady, TimeoutError) as error:
            stderr = program.stderr_tail().strip() or "nothing on stderr"
            raise NotReady(f"end of {argv[0]} on {self._name}", within_s, stderr) from error
        finally:
            program.end()
            feeder.join(_KILL_S)

    def _launch(
        self,
        argv: Sequence[str],
        root: bool,
        environment: Mapping[str, str] | None,
        within_s: float | None,
    ) -> RemoteProgram:
        sudo = root and self._sudo()
        token = f"csit-{secrets.token_hex(8)}"
        command = words(argv, token, sudo=sudo, environment=environment, within_s=within_s)
        program = RemoteProgram(argv, self._start(command), token, self._name, self._killer(sudo))
        try:
            program.await_start(_START_S)
        except BaseException:
            program.end()
            raise
        return program

    def _killer(self, sudo: bool) -> Callable[[int], None]:
        def kill(group: int) -> None:
            # It may have ended just now, and the way may be gone: then the machine itself ends it, as its words say.
            with suppress(CsitError):
                streams = self._start(killing(group, sudo=sudo))
                streams.end_input()
                streams.status(_KILL_S)
                streams.release()
                while streams.read_errors():
                    pass

        return kill

    # -- root ---------------------------------------------------------------------------------------------------------

    def _sudo(self) -> bool:
        """Whether root's rights need sudo here; asked once.

        Raises:
            Unsupported: There is no way to root's rights.
        """
        with self._asking:
            if self._needs_sudo is None:
                self._needs_sudo = self._ask_for_root()
            return self._needs_sudo

    def _ask_for_root(self) -> bool:
        user = self.run(["id", "-un"]).stdout.strip()
        if self._become != "sudo" and self.run(["id", "-u"]).stdout.strip() == "0":
            return False
        if self._become == "no":
            raise Unsupported(
                f"{self._name}: root's rights are needed, {user} is not root, and access.become is 'no': "
                f"{self.WITHOUT_SUDO}, or access.become: sudo"
            )
        try:
            self.run(["sudo", "-n", "--", "true"])
        except CommandFailed as error:
            if error.status == _MISSING:
                raise Unsupported(
                    f"{self._name}: root's rights are needed, {user} is not root, and there is no sudo: "
                    f"{self.WITHOUT_SUDO}, or install sudo there"
                ) from error
            answer = "; ".join(error.stderr.strip().splitlines())
            raise Unsupported(
                f"{self._name}: {user} may not become root without a password ({answer}); "
                f"{self.WITHOUT_SUDO}, or as root there: ",
                f"{command_text('echo', f'{user} ALL=(ALL) NOPASSWD: ALL')} >{command_text(f'/etc/sudoers.d/{user}')}",
            ) from error
        return True


def _feed(program: RemoteProgram, stdin: bytes) -> None:
    # A program need not read what it is given; how it ended says the rest.
    with suppress(CsitError):
        program.send(stdin)
    with suppress(OSError):
        program.end_input()
