"""Which files of tests take turns: those that may use this machine's testbed, its kernel's limits or thread names."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import InUse

_OTHERS_S = 600.0
"""How long others on this machine are waited for; then the error names them."""

BESIDE = {
    "test_bisect_reboot.py", "test_connection.py", "test_connection_ssh.py", "test_counting_program.py",
    "test_full_disks.py", "test_lab_runtime.py", "test_memory_in_use.py", "test_node_cleanup.py", "test_node_doctor.py",
    "test_node_reservation.py", "test_otg_peers.py", "test_robot_nodes.py",
    "test_robot_sizing.py", "test_shared_folders.py", "test_study_faults.py", "test_supervisor.py",
}  # fmt: skip
"""Need root, but their tests that are marked `parallel` deploy nothing and send nothing: they run beside any other."""


def when_free(take: Callable[[], object]) -> None:
    """Take this machine as soon as nobody else has it."""

    def busy() -> str:
        try:
            take()
        except InUse as error:
            return str(error)
        return ""

    wait_until("lock of this machine", busy, _OTHERS_S, pause_s=0.1)


@contextmanager
def machine() -> Iterator[MachineLock]:
    """The lock of this machine, waited for: other tests of it may be running. What they have left is removed."""
    lock = MachineLock()
    when_free(lock.__enter__)
    with ExitStack() as held:
        held.push(lock)
        lock.remove_leftovers()
        yield lock


@cache
def takes_turns(file: Path) -> bool:
    """Whether tests of a file run beside no other such file: all that need root, unless they are known not to."""
    return file.name not in BESIDE and "mark.root" in file.read_text(encoding="utf-8")
