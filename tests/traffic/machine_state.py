"""What a run makes on this machine or changes of it: read from /proc, /sys and /run, without any program.

Only what has the names of this project, and settings that it changes: other programs may come and go meanwhile.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import NotReady
from tests.integration.robot_runs import network_state

OWNER = DIRECTORY / "owner.json"
"""Record of what a run has on this machine, from before it is made until it is removed."""
_NAMED = {"namespaces": "csit-", "links": "cs", "workers": "drivers.generator"}
"""Words in the names of the project's own, by kind."""
_SETTINGS = ("kernel/sched_*", "net/core/bpf_*", "net/core/busy_*", "net/core/netdev_budget*")
"""Below /proc/sys: those that a run has a use for. The kernel changes others when modules of other programs come."""
_SETTLED_S = 60.0
"""The kernel ends threads and links of a namespace in its own time."""


@dataclass(frozen=True)
class MachineState:
    """Names of things on this machine by their kind, and the values of settings."""

    found: dict[str, set[str]]

    @classmethod
    def now(cls) -> Self:
        """Look at the machine."""
        made = {
            kind: {name for name in names if _NAMED.get(kind, "") in name} for kind, names in network_state().items()
        }
        groups = {folder for folder, _, _ in os.walk("/sys/fs/cgroup") if Path(folder).name.startswith("csit")}
        claims = {f"{OWNER}"} if OWNER.exists() else set()
        return cls({**made, "control groups": groups, "claims of a run": claims, "settings": set(_settings())})

    def changes_to(self, later: Self) -> str:
        """What is new and what is gone; empty where nothing is. Workers of others may end meanwhile."""
        rows = {
            kind: (sorted(later.found[kind] - names), sorted(set() if kind == "workers" else names - later.found[kind]))
            for kind, names in self.found.items()
        }
        return "; ".join(f"{kind}: new {new}, gone {gone}" for kind, (new, gone) in rows.items() if new or gone)


def _settings() -> list[str]:
    """Settings of the kernel with their values."""
    files = (file for pattern in _SETTINGS for file in Path("/proc/sys").glob(pattern) if file.is_file())
    return [f"{file}: {_text(file)}" for file in files]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return f"{error.strerror}"


def wait_for_machine_state(before: MachineState) -> None:
    """Wait until the machine is as it was.

    Raises:
        NotReady: It is not; the text says what is new or gone.
    """
    wait_until("machine as it was", lambda: before.changes_to(MachineState.now()), _SETTLED_S, pause_s=0.1)


def left_since(before: MachineState) -> str:
    """What is still not as it was after the time that the kernel may need; empty where nothing is."""
    try:
        wait_for_machine_state(before)
    except NotReady as error:
        return error.last_seen
    return ""
