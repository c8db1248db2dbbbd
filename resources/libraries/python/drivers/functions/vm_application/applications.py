"""Applications of Linux guests: what a guest runs besides routing, as its kind does it in a network namespace."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.functions.vm_application.counters import Counts, PacketSockets
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan, TapPlan

PLACE = Path("/tmp")  # noqa: S108 - in the guest
"""The folder of the program and its files in the guest."""


@dataclass(frozen=True, slots=True)
class Application:
    """What one guest runs: rules of its kernel, or a program beside it."""

    about: str
    """For messages."""
    version: Callable[[], str]
    """Version of the program that counts, with its name."""
    rules: str = ""
    """Rules of nftables, in force before its ports are up."""
    counter: str = ""
    """Counter of those rules that counts every packet."""
    argv: tuple[str, ...] = ()
    """Command line of the program, which is up before the guest is ready."""
    prints: bool = False
    """Whether it prints what it makes on standard output, beside what it has to say."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What the program reads from `PLACE`: texts by name."""
    more: tuple[Path, ...] = ()
    """Further files of this machine that the program loads."""
    up: str = ""
    """A shell's test whether the program is up, given its process id."""
    then: str = ""
    """Shell commands for the moment in which it is."""
    needs: tuple[str, ...] = ()
    """Features of a CPU in emulation, in QEMU's words."""
    counts: Callable[[], Counts] = PacketSockets
    """Makes what reads the program's counters."""


def application(function: NfPlan | TapPlan, node: DutNode, vcpus: int = 1) -> Application | None:
    """Return the application of an NF's guest; None where the guest only routes.

    Args:
        function: The NF.
        node: Has the settings of applications.
        vcpus: That its guest has.

    Raises:
        Unsupported: A passive NF is of a kind that packets have to go through.
    """
    guest = None if function.kind.in_guest is None else function.kind.in_guest.driver.guest
    if guest is None:
        return None
    if isinstance(function, TapPlan) and not function.kind.driver.passive:
        raise Unsupported(f"{function.name}: an NF of kind {function.kind} cannot be passive")
    return cast(Application, driver_registry.load(guest.application)(function, node, vcpus))


def needed(kind: NfKind) -> tuple[str, ...]:
    """Names of the programs that a guest of a kind gets from this machine."""
    guest = None if kind.in_guest is None else kind.in_guest.driver.guest
    return () if guest is None else tuple(program.name for program in guest.programs)
