"""Programs that run in the namespaces of NFs, one in each, on the NF's own CPUs."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.nf_limits import NfGroups
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.links.namespaces import name_of, path_of
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.processes import children_of, is_stopped
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import NotReady
from resources.libraries.python.model.core_map import CoreMap

_END_S = 5.0
_ENDING_S = 5.0
"""From the moment in which a program hangs up to its end: a large one has much memory to give back."""


class Companions:
    """They are started one by one and end together. Each is on the machine's record, and within its NF's limits.

    `word`: What they are: the name of their folder, and the first word of messages.
    `cores`: Where their NFs' data threads are; they run there too.
    `fabric`: Has the namespaces; started before they are.
    `groups`: Of NFs with limits; made before they start.
    `takes_turns`: Whether they wait for packets when there are none, so that they can run in real time, in turns
      with the data threads. Those of NFs with a limit of CPU time never do: no quota holds in real time. Nor do
      those in containers whose control group has no share of it.
    """

    def __init__(
        self,
        word: str,
        cores: CoreMap,
        fabric: Fabric,
        machine: MachineLock,
        groups: NfGroups,
        *,
        takes_turns: bool = True,
    ) -> None:
        self._takes_turns = takes_turns
        self._word = word
        self._cores = cores
        self._fabric = fabric
        self._machine = machine
        self._groups = groups
        self._folder: Path | None = None
        self._daemons: dict[str, Daemon] = {}
        self._children: list[int] = []

    @property
    def folder(self) -> Path:
        """Where they may keep what they need, and their words are kept."""
        if self._folder is None:
            self._folder = self._machine.folder(self._word)
        return self._folder

    def start(self, name: str, argv: Sequence[str], *, prints: bool = False) -> Daemon:
        """Start the program of an NF.

        `prints`: whether it prints what it makes on standard output, which then goes to /dev/null.

        Raises:
            CsitError: It cannot be started.
        """
        daemon = Daemon(
            f"{self._word} of {name}",
            argv,
            self.folder / f"{name}.log",
            folder=self.folder,
            prints_to=Path(os.devnull) if prints else None,
            entry=self._groups.entry(name),
        )
        self._daemons[name] = daemon
        self._fabric.run_inside(name, partial(self._begin, name, daemon))
        return daemon

    def _begin(self, name: str, daemon: Daemon) -> None:
        """In a thread that ends afterwards, of which the program inherits how it is scheduled."""
        if self._takes_turns and self._groups.allows_real_time(name):
            # The kernel's data threads on the same CPUs are in real time: an ordinary program gets what they leave, at
            # overload nothing at all. At their priority it has its turn whenever they have emptied their queues, and
            # what there is too much is lost at the first queue, as with any NF. Measured on 2 CPUs, 64 B, 1 Mpps
            # offered: of 0.29 Mpps forwarded pktstat was given 0.013 Mpps as an ordinary program.
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        daemon.start(self._cpus(name), self._machine)

    def supervise(self, name: str) -> None:
        """Have all that runs in the namespace and the group of an NF ended with this run, should it be killed.

        Raises:
            CsitError: It cannot be.
        """
        self._machine.supervise(path_of(name_of(name)), *self._groups.folders(name))

    def inside(self, name: str, argv: Sequence[str]) -> list[str]:
        """The argument vector of a command that runs in the NF's container; as it is where there is none."""
        return self._groups.container(name).argv(argv)

    def wait_for(self, name: str, what: str, missing: Callable[[], str], within_s: float) -> None:
        """Wait for a fact that an NF's program brings about.

        Raises:
            CsitError: It ended.
            NotReady: The deadline passed; the text has its last words.
        """
        self._daemons[name].wait_for(what, missing, within_s)

    def adopt_children(self, name: str) -> int:
        """Put the processes that an NF's program has started on record too; return how many there are.

        Should the program be killed with this run, they might outlive it.
        """
        pid = self._daemons[name].pid
        for child in children_of(pid):
            if child not in self._children:
                self._machine.claim_process(child)
                self._children.append(child)
        return len(children_of(pid))

    def pids(self) -> Mapping[str, int]:
        """Process ids by name of the NF."""
        return {name: daemon.pid for name, daemon in self._daemons.items() if daemon.started}

    def processes_of(self, name: str) -> tuple[int, ...]:
        """Ids of an NF's program and of the processes that it has started."""
        pid = self._daemons[name].pid
        return (pid, *children_of(pid))

    def problems(self) -> Iterator[str]:
        """Those that have ended or are stopped, as one of their processes may be, or left the CPUs of their NF."""
        for name, daemon in self._daemons.items():
            if problem := daemon.problem():
                yield problem
            elif stopped := [pid for pid in children_of(daemon.pid) if is_stopped(pid)]:
                yield f"process {stopped[0]} of {daemon.what} is stopped (SIGSTOP)"
            elif (cpus := os.sched_getaffinity(daemon.pid)) != self._cpus(name):
                yield f"{daemon.what} runs on CPUs {sorted(cpus)}, not on {sorted(self._cpus(name))}"

    def stop(self) -> None:
        """End all of them together. Safe to call at any time and more than once."""
        daemons, self._daemons = self._daemons, {}
        for daemon in daemons.values():
            daemon.request_end()
        for daemon in daemons.values():
            daemon.wait_end(_END_S)
        for child in self._children:
            self._machine.release_process(child)
        self._children = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _cpus(self, name: str) -> set[int]:
        return {*self._cores.cpus(name)}


def problems_at_an_end(rows: Sequence[Companions]) -> tuple[str, ...]:
    """Problems of programs one of which is about to end: it has hung up, or its device is gone already."""

    def found() -> tuple[str, ...]:
        return tuple(problem for companions in rows for problem in companions.problems())

    if rows:  # the kernel's own tunnels have no program
        with suppress(NotReady):
            wait_until("end", lambda: "" if found() else "none", _ENDING_S)
    return found()
