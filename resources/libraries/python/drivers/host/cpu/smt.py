"""Simultaneous multithreading (SMT) of this machine, switched off while a cell is deployed.

The kernel takes all threads of a core but the first offline. That SMT was on, and which CPUs there were, is on the
machine's record before it is switched off, so the next run switches it on again after a kill.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.cpu.cpu import ON, SMT_KEY, SYSTEM, online, smt_control
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership_record import Claims
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.testbed.roles.part import Part

_OFF = "off"


class SmtSwitchedOff(Frozen):
    """SMT that was on."""

    root: Path
    """Where `cpu/` is."""
    layout: CpuLayout
    """CPUs that a run could use with it."""
    online: tuple[int, ...]
    """CPUs that were online: the kernel also takes those online that a user had offline."""

    def __str__(self) -> str:
        return "switched off; it was on"


def remove(entries: Iterable[SmtSwitchedOff]) -> list[str]:
    """Switch SMT on again that a run switched off; return a sentence where that was needed.

    Raises:
        CsitError: The kernel refuses.
    """
    return take_all([partial(_switch_on, each) for each in entries])


def _switch_on(entry: SmtSwitchedOff) -> list[str]:
    was_off = smt_control(entry.root) != ON
    if was_off:
        _write(entry.root, ON)
    for cpu in sorted(set(online(entry.root)).difference(entry.online)):
        (entry.root / f"cpu/cpu{cpu}/online").write_text("0", encoding="ascii")
    return ["switched SMT on again"] if was_off else []


def _write(root: Path, state: str) -> None:
    """Change the state of SMT; the kernel returns when all CPUs have come or gone.

    Raises:
        CsitError: It refuses.
    """
    path = root / "cpu/smt/control"
    try:
        path.write_text(state, encoding="ascii")
    except OSError as error:
        raise CsitError(f"SMT cannot be switched {state}: {path}: {error.strerror}") from error


class SmtOff(Part):
    """SMT of this machine, off from `start` to `stop`.

    `root`: Where `cpu/` is; another one for tests.
    """

    def __init__(self, layout: CpuLayout, claims: Claims, root: Path = SYSTEM) -> None:
        self._layout = layout
        self._claims = claims
        self._root = root
        self._entry: SmtSwitchedOff | None = None

    def start(self) -> None:
        """Switch it off.

        Raises:
            Unsupported: The kernel of this machine cannot.
            CsitError: It refuses, or takes other CPUs offline than was planned for.
        """
        root = self._root
        if (state := smt_control(root)) != ON:
            said = f"{root}/cpu/smt/control says {state}" if state else f"there is no {root}/cpu/smt/control"
            raise Unsupported(f"SMT cannot be switched off on this machine: {said}")
        entry = SmtSwitchedOff(root=root, layout=self._layout, online=tuple(online(root)))
        self._claims.claim(SMT_KEY, entry)
        self._entry = entry
        _write(root, _OFF)
        planned = {row.cpu for row in self._layout.without_smt().cpus}
        if gone := planned.difference(online(root)):
            raise CsitError(f"CPU {min(gone)} went offline with SMT, although it is the first thread of its core")

    def stop(self) -> None:
        """Switch it on again. Safe to call after a failure.

        Raises:
            CsitError: The kernel refuses, and it stays on record.
        """
        if self._entry is not None:
            remove([self._entry])
            self._claims.release(SMT_KEY, [self._entry])
            self._entry = None
