"""The lock of a generator that is driven over its API, in a folder where all users may write."""

import os
import signal
from pathlib import Path

import pytest

from resources.libraries.python.errors import InUse
from resources.libraries.python.testbed.node import reservation


def test_a_planted_pipe_does_not_hold_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation, "_LOCKS", str(tmp_path))
    with reservation.sole_use("TG", "10.0.0.1:8443"):
        (lock,) = tmp_path.iterdir()
        with pytest.raises(InUse), reservation.sole_use("TG", "10.0.0.1:8443"):
            pass
    lock.unlink()
    os.mkfifo(lock)
    signal.alarm(20)
    try:
        with reservation.sole_use("TG", "10.0.0.1:8443"):
            pass
    finally:
        signal.alarm(0)
