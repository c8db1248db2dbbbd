"""The VPP in one guest, controlled by its command line over a port of QEMU."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from resources.libraries.python.drivers.vpp import show_output
from resources.libraries.python.drivers.vpp.cli import CommandLine
from resources.libraries.python.drivers.vpp.configuration import (
    IdleBehaviour,
    WorkerPlacement,
    default_mode,
    making,
    moves,
    routing,
)
from resources.libraries.python.drivers.vpp.interfaces import VppInterface
from resources.libraries.python.drivers.vpp.show_output import counted
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import NfPlan

_WITHIN_S = 20.0
"""For each reply: a guest in emulation may have to wait for its CPU."""
Answer = TypeVar("Answer")


class GuestVpp:
    """Configures the VPP of one guest, and asks it."""

    def __init__(
        self,
        function: NfPlan,
        interfaces: tuple[VppInterface, ...],
        placement: WorkerPlacement,
        waiting: IdleBehaviour,
        socket: Path,
    ) -> None:
        """Prepare; nothing is connected yet.

        Args:
            function: What it is to be.
            interfaces: The guest's network cards.
            placement: VPP's threads on the guest's vCPUs.
            waiting: What its threads do when nothing comes.
            socket: The host's end of the port.
        """
        self._function = function
        self._interfaces = interfaces
        self._placement = placement
        self._waiting = waiting
        self._what = f"VPP in the virtual machine of {function.name}"
        self._cli = CommandLine(socket, _WITHIN_S, b"\n")
        self._work: tuple[show_output.ThreadWork, ...] = ()
        self.version = ""

    def configure(self, largest_frame_bytes: int) -> None:
        """Make its interfaces and let it route between them, each reply checked.

        Raises:
            CommandFailed: It refused something; the text has the command and the reply.
            CsitError: It does not answer.
        """
        self.version = show_output.version(self._ask("show version"))
        self._do(default_mode(self._waiting.rx_mode))
        self._do(*making(self._interfaces, largest_frame_bytes))
        self._do(*routing(self._function))
        self._place_queues()

    def _place_queues(self) -> None:
        self._do(*moves(self._interfaces, self._placement, self._waiting.rx_mode, self._queues()))

    def _queues(self) -> show_output.RxPlacement:
        return show_output.rx_placement(self._ask("show interface rx-placement"))

    def threads_of(self, interface: str) -> tuple[int, ...]:
        """Number of the thread that polls each receive queue of an interface, and so of its vCPU."""
        return tuple(queue.thread for queue in self._queues().get(interface, ()))

    def counters(self) -> dict[str, InterfaceCounters]:
        """Counters by interface. What the threads did since the last reading is kept for the facts."""
        of_vpp = show_output.interfaces(self._ask("show interface"))
        self._work = show_output.runtime(self._ask("show runtime"))
        self._do("clear runtime")
        return dict(counted(self._interfaces, of_vpp, {}, {}))

    def facts(self) -> dict[str, str]:
        """Where its threads are and what they did, and packets that it counted as errors."""
        found = {
            "threads": f"vCPUs: {self._placement}",
            "work": "; ".join(map(str, self._work)),
            "errors": show_output.losses(self._ask("show errors")),
        }
        return {name: text for name, text in found.items() if text}

    def problems(self) -> tuple[str, ...]:
        """Interfaces that are down, workers that are gone, or that it does not answer."""
        try:
            states = show_output.interfaces(self._ask("show interface"))
            running = show_output.threads(self._ask("show threads"))
        except CsitError as error:
            return (str(error),)
        down = [
            f"{each.name} of {self._what} is down"
            for each in self._interfaces
            if each.name not in states or not states[each.name].up
        ]
        gone = [
            f"worker {number} of {self._what} is gone"
            for number in range(len(self._placement.workers))
            if number + 1 not in running
        ]
        return (*down, *gone)

    def close(self) -> None:
        self._cli.close()

    def _ask(self, command: str) -> str:
        return self._naming_guest(lambda: self._cli.ask(command))

    def _do(self, *commands: str) -> None:
        self._naming_guest(lambda: self._cli.do(commands))

    def _naming_guest(self, work: Callable[[], Answer]) -> Answer:
        """Say whose reply it was."""
        try:
            return work()
        except CommandFailed as error:
            raise CommandFailed((f"{self._what}:", *error.argv[1:]), error.status, error.stderr) from error
        except CsitError as error:
            raise CsitError(f"{self._what}: {error}") from error
