"""Network functions as programs of the user, in a network namespace each."""

from collections.abc import Mapping, Sequence
from functools import partial

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import ProgramFunctions
from resources.libraries.python.drivers.host.links.routing import configure_routers
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.errors import ConfigError, CsitError, without_middle
from resources.libraries.python.model.measurements.counters import ProcessedPackets
from resources.libraries.python.model.plan import NfPlan, TapPlan
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

    `what`: For messages: whose they are.

    Raises:
        CsitError: There are none.
    """
    rows = dict(words for line in output.splitlines() if len(words := line.split()) == 2)
    try:
        dropped = rows.get(_DROPPED)
        return ProcessedPackets(int(rows[_PACKETS]), None if dropped is None else int(dropped))
    except (KeyError, ValueError) as error:
        last = without_middle((output.strip().splitlines() or ["nothing"])[-1], 200)
        raise CsitError(f"{what} printed no counter `{_PACKETS} <number>`; last output: {last}") from error


class UserPrograms(ProgramFunctions[NfPlan | TapPlan]):
    """A program of the user's in the NF's namespace.

    The kernel routes between the interfaces of an inline one; the program looks, changes how the kernel does it, or
    does nothing but use up CPU time. It runs as an ordinary process on the NF's data CPUs.
    """

    _takes_turns = False

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan | TapPlan]) -> None:
        super().__init__(node, context, functions)
        self._words = {function.name: names(function) for function in functions}
        self._programs = {function.name: function.program for function in functions if function.program}

    def start(self) -> None:
        """Give inline ones their routes, then start all programs.

        Raises:
            ConfigError: A program is not there.
            CsitError: One cannot be started.
        """
        for name, program in self._programs.items():
            if path_of(program.start[0]) is None:
                raise ConfigError(f"the program of {name} is not there: {program.start[0]}")
        configure_routers((each for each in self._functions if isinstance(each, NfPlan)), self._fabric)
        for name, program in self._programs.items():
            self._companions.supervise(name)
            self._companions.start(name, self._argv(name, program.start))

    def _argv(self, name: str, argv: Sequence[str]) -> list[str]:
        row = filled(argv, self._words[name])
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
        commands = ((name, self._programs[name].stop) for name in self._companions.pids())
        take_all([*(partial(self._run, name, stop) for name, stop in commands if stop), self._companions.stop])

    def _run(self, name: str, argv: Sequence[str]) -> str:
        """Run a command where an NF's program runs; what it printed."""
        inside = self._companions.inside(name, self._argv(name, argv))
        return self._fabric.run_inside(name, partial(completed, inside, _WITHIN_S)).stdout
