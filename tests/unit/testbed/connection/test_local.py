"""Programs of the connection to this machine: what is left of one that is killed."""

import os
import signal
from threading import Timer

import pytest

from resources.libraries.python.testbed.connection import local


def test_a_killed_program_that_takes_its_time_to_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine; an open entry in the table of processes would stay of it."""
    pipes = local._Pipes(["sleep", "600"])
    kill = os.killpg
    timer = Timer(0.3, kill, (pipes._process.pid, signal.SIGKILL))
    monkeypatch.setattr(os, "killpg", lambda *_: timer.start())
    pipes.release()
    assert pipes._process.returncode == -signal.SIGKILL
    timer.join()
    pipes.read_errors()
