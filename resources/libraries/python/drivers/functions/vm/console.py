"""A guest's console: a file that QEMU writes and that people read when something is wrong."""

import re
from pathlib import Path

from resources.libraries.python.drivers.functions.vm.init import READY

_CONTROL = re.compile(r"\x1b\[[0-9;?=]*[A-Za-z]|\x1bc|[\x00-\x09\x0b-\x1f\x7f]")
_TAIL_LINES = 15


class Console:
    """The console of one guest, from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self) -> str:
        """All of it, without what only moves a cursor."""
        try:
            return _CONTROL.sub("", self.path.read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            return ""

    @property
    def ready(self) -> bool:
        """Whether the guest has said that it routes."""
        return READY in self.text()

    def tail(self) -> str:
        """Its last lines, for an error."""
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        panic = [line for line in lines if "Kernel panic" in line]
        # What the kernel prints below a panic are registers and addresses; its reason would scroll out of sight.
        shown = [line for line in panic[:1] if line not in lines[-_TAIL_LINES:]] + lines[-_TAIL_LINES:]
        return "\n".join(shown) if shown else "nothing on the console"
