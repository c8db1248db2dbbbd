"""The program that sends and counts: started in the generator's namespace, and ended."""

import logging
import os
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.generators.trex.config import PREFIX, arguments
from resources.libraries.python.drivers.generators.trex.registration import HUGE_FILES
from resources.libraries.python.drivers.host.cpu.memory import remove_files
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import Daemon
from resources.libraries.python.errors import CsitError

_FOLDER = "trex"
_END_S = 10.0
_FIRST = -20
_LOG = logging.getLogger(__name__)


def remove_left(prefixes: Iterable[str]) -> list[str]:
    """Remove files that programs with these prefixes have left in hugetlbfs; return a sentence for each.

    Raises:
        CsitError: Some cannot be removed; the others were.
    """
    return take_all(partial(remove_files, prefix) for prefix in prefixes)


class Server:
    """One server with a folder of its own."""

    def __init__(self, directory: Path, machine: MachineLock) -> None:
        """Prepare.

        Args:
            directory: Where TRex is installed.
            machine: Owns the process; held.
        """
        self._directory = directory
        self._machine = machine
        self._folder: Path | None = None
        self._daemon: Daemon | None = None
        self._leaves_files = False

    def start(
        self,
        inside: Callable[[Callable[[], None]], None],
        cpu: int,
        configuration: str,
        *,
        mellanox: bool = False,
        alone: bool = False,
        huge_pages: bool = False,
    ) -> None:
        """Start it; it answers some seconds later.

        Args:
            inside: Does work in the generator's namespace, in a thread that ends with it.
            cpu: For threads that the configuration has no place for.
            configuration: Its configuration file.
            mellanox: Whether ports are NICs by Mellanox.
            alone: Whether nothing that is under test has its place on the generator's CPUs: then it goes first there.
            huge_pages: Whether it keeps its memory in files of hugetlbfs, which it leaves there.

        Raises:
            CsitError: It cannot be started.
        """
        self._folder = self._machine.folder(_FOLDER)
        if huge_pages:
            self._machine.claim(HUGE_FILES, PREFIX)
            self._leaves_files = True
        file = self._folder / "trex_cfg.yaml"
        file.write_text(configuration, encoding="ascii")
        daemon = self._daemon = Daemon(
            "TRex",
            arguments(self._directory, file, mellanox=mellanox),
            self._folder / "server.log",
            # DPDK keeps its files here; the libraries that came with the server are found by a relative path.
            {"RUNTIME_DIRECTORY": str(self._folder), "LD_LIBRARY_PATH": str(self._directory)},
            folder=self._directory,
        )

        def begin() -> None:
            if alone:
                os.setpriority(os.PRIO_PROCESS, 0, _FIRST)
            daemon.start(cpu, self._machine)

        inside(begin)

    @property
    def folder(self) -> Path:
        """Private; for the client's log as well."""
        if self._folder is None:
            raise CsitError("TRex is not started")
        return self._folder

    def problem(self) -> str:
        """Why it does not run, with its last words; empty while it does."""
        return self._daemon.problem() if self._daemon is not None else "TRex is not started"

    def last_output(self) -> str:
        """Its last words."""
        return self._daemon.last_output() if self._daemon is not None else "nothing"

    def stop(self) -> None:
        """End it and remove what it wrote. Safe to call at any time and more than once."""
        if self._daemon is not None:
            # SIGTERM is to it what SIGINT is: it stops its threads, gives ports back, and ends within 2 to 3 s.
            self._daemon.request_end()
            self._daemon.wait_end(_END_S)
            self._daemon = None
        if self._leaves_files:
            remove_files(PREFIX)
            self._machine.release(HUGE_FILES, [PREFIX])
            self._leaves_files = False
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
