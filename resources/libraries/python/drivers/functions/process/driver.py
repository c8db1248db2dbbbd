"""Network functions as programs of the user, in a network namespace each."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.routing import configure_routers
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions, ProgramFunctions
from resources.libraries.python.drivers.host.programs.program_paths import path_of
from resources.libraries.python.errors import CommandFailed, ConfigError, CsitError, NotReady
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.model.request.function import UserProgram
from resources.libraries.python.model.testbed.nodes import DutNode

_WITHIN_S = 10.0
"""For its commands to stop it and for its counters."""


_PACKETS, _DROPPED = "packets", "dropped"


def names(function: NfPlan | TapPlan) -> dict[str, str]:
    """Words that an argument vector may have, and what they become. A passive NF has one interface: it is both."""
    if isinstance(function, NfPlan):
        return {"{left}": function.left.name, "{right}": function.right.name}
    return {"{left}": function.interface, "{right}": function.interface}


def filled(argv: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """An argument vector with its words replaced, also within an argument."""
    row = list(argv)
    for word, name in words.items():
        row = [argument.replace(word, name) for argument in row]
    return row


def processed(output: str, what: str) -> ProcessedPackets:
    """The counters that a program prints: lines of `name value`, of which `packets` has to be there.

    Args:
        output: What its command for them printed.
        what: For messages: whose they are.

    Raises:
        CsitError: There are none.
    """
    rows = dict(words for line in output.splitlines() if len(words := line.split()) == 2)
    try:
        dropped = rows.get(_DROPPED)
        return ProcessedPackets(int(rows[_PACKETS]), None if dropped is None else int(dropped))
    except (KeyError, ValueError) as error:
        last = (output.strip().splitlines() or ["nothing"])[-1][:200]
        raise CsitError(f"{what} printed no counter `{_PACKETS} <number>`; last output: {last}") from error


class UserPrograms(ProgramFunctions):
    """Fulfils `NetworkFunctions` and `Processing` of the roles: a program of the user's in the NF's namespace.

    The kernel routes between the interfaces of an inline one; the program looks, changes how the kernel does it, or
    does nothing but use up CPU time. It runs as an ordinary process on the NF's data CPUs.
    """

    def __init__(self, functions: Sequence[NfPlan | TapPlan], fabric: Fabric, companions: Companions) -> None:
        """Prepare.

        Args:
            functions: Those that are of this kind; each has its program.
            fabric: Has their namespaces; started before `start`.
            companions: Runs the programs.
        """
        self._functions = {function.name: function for function in functions}
        self._owners = tuple(self._functions)
        self._programs = {name: function.program for name, function in self._functions.items() if function.program}
        self._fabric = fabric
        self._companions = companions

    def start(self) -> None:
        """Give inline ones their routes, then start all programs.

        Raises:
            ConfigError: A program is not there.
            CsitError: One cannot be started.
        """
        for name, program in self._programs.items():
            if path_of(program.start[0]) is None:
                raise ConfigError(f"the program of {name} is not there: {program.start[0]}")
        configure_routers((each for each in self._functions.values() if isinstance(each, NfPlan)), self._fabric)
        for name, program in self._programs.items():
            self._companions.start(name, self._argv(name, program.start))

    def _argv(self, name: str, argv: Sequence[str]) -> list[str]:
        row = filled(argv, names(self._functions[name]))
        return [path_of(row[0]) or row[0], *row[1:]]

    def processed(self) -> Mapping[str, ProcessedPackets]:
        """Counters of programs that have a command for them.

        Raises:
            CsitError: Such a command fails, or prints nothing.
        """
        rows = ((name, program) for name, program in self._programs.items() if program.stat)
        return {name: processed(self._run(name, program.stat), f"the program of {name}") for name, program in rows}

    def facts(self) -> Mapping[str, str]:
        return {f"program of {name}": " ".join(program.start) for name, program in self._programs.items()}

    def stop(self) -> None:
        """Stop all of them as their users say, then end those that still run. Safe to call more than once.

        Raises:
            CsitError: A command to stop one failed; all have been ended all the same.
        """
        self.call_off()
        failures = list(self._asked_to_stop())
        self._companions.stop()
        if failures:
            raise failures[0]

    def _asked_to_stop(self) -> Iterator[CsitError]:
        for name in self._companions.pids():
            program: UserProgram = self._programs[name]
            if program.stop:
                try:
                    self._run(name, program.stop)
                except CsitError as error:
                    yield error

    def _run(self, name: str, argv: Sequence[str]) -> str:
        """Run a command where an NF's program runs; what it printed."""
        inside = self._companions.inside(name, self._argv(name, argv))
        return self._fabric.run_inside(name, partial(_run, inside))


def _run(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NotReady(" ".join(argv), _WITHIN_S, "still running") from error
    except OSError as error:
        raise CsitError(f"{argv[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr.strip()[-300:] or "nothing on stderr")
    return done.stdout


def make(_: DutNode, context: DriverContext, row: Sequence[NfPlan | TapPlan]) -> UserPrograms:
    """Make the driver of NFs on a node."""
    return UserPrograms(row, context.fabric, context.companions(row[0].kind, takes_turns=False))
