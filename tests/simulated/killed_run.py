"""A run that kills itself with SIGKILL at a given place, so that it is cut there on any machine.

Arguments: path of a journal, a text, the number of lines with it, and the command line of Robot.
"""

import os
import signal
import sys
from pathlib import Path

from csit_utils.commands.runs.robot import run_suites


class KillingListener:
    """Kills the process at the first keyword or message after a journal has so many lines with a text."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, journal: Path, text: str, lines: int) -> None:
        self._journal, self._text, self._lines = journal, text.encode(), lines

    def start_keyword(self, *_: object) -> None:
        self._kill()

    def log_message(self, *_: object) -> None:
        self._kill()

    def _kill(self) -> None:
        if self._journal.exists() and self._journal.read_bytes().count(self._text) >= self._lines:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    path, pattern, number, *options = sys.argv[1:]
    sys.exit(run_suites(options, listeners=[KillingListener(Path(path), pattern, int(number))]))
