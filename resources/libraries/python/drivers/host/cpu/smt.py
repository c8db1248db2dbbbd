"""Simultaneous multithreading (SMT) of this machine, switched off while a cell is deployed.

The kernel takes all threads of a core but the first offline. That SMT was on, and which CPUs there were, is on the
machine's record before it is switched off, so the next run switches it on again after a kill.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.cpu.cpu import ON, SYSTEM, online, smt_control
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership_record import Claims
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.testbed.cpu import CpuLayout

KEY = "smt"
"""Of leftovers on the record of a machine; `cpu.discover` reads it there."""
_OFF = "off"


class SmtSwitchedOff(Frozen):
    """SMT that was on."""

    root: Path
    """Where `cpu/` is."""
    layout: CpuLayout
    """CPUs that a run could use with it."""

    def __str__(self) -> str:
        return "switched off; it was on"


def remove(entries: Iterable[SmtSwitchedOff]) -> list[str]:
    """Switch SMT on again that a run switched off; return a sentence where that was needed.

    Raises:
        CsitError: The kernel refuses.
    """
    return take_all([partial(_switch_on, each) for each in entries])


def _switch_on(entry: SmtSwitchedOff) -> list[str]:
    if smt_control(entry.root) == ON:
        return []
    _write(entry.root, ON)
    return ["switched SMT on again"]


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


class SmtOff:
    """SMT of this machine, off from `start` to `stop`. Fulfils `DeploymentPart`."""

    def __init__(self, layout: CpuLayout, claims: Claims, root: Path = SYSTEM) -> None:
        """Prepare. Nothing happens before `start`.

        Args:
            layout: CPUs of this machine with SMT.
            claims: The machine's record.
            root: Where `cpu/` is; another one for tests.
        """
        self._entry = SmtSwitchedOff(root=root, layout=layout)
        self._claims = claims
        self._claimed = False

    def start(self) -> None:
        """Switch it off.

        Raises:
            Unsupported: The kernel of this machine cannot.
            CsitError: It refuses, or takes other CPUs offline than was planned for.
        """
        root = self._entry.root
        if (state := smt_control(root)) != ON:
            said = f"{root}/cpu/smt/control says {state}" if state else f"there is no {root}/cpu/smt/control"
            raise Unsupported(f"SMT cannot be switched off on this machine: {said}")
        self._claims.claim(KEY, self._entry)
        self._claimed = True
        _write(root, _OFF)
        planned = {row.cpu for row in self._entry.layout.without_smt().cpus}
        if gone := planned.difference(online(root)):
            raise CsitError(f"CPU {min(gone)} went offline with SMT, although it is the first thread of its core")

    def stop(self) -> None:
        """Switch it on again. Safe to call after a failure.

        Raises:
            CsitError: The kernel refuses, and it stays on record.
        """
        if self._claimed:
            _switch_on(self._entry)
            self._claims.release(KEY, [self._entry])
            self._claimed = False
