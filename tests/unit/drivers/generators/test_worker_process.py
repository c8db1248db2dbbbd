"""The driver's end of a worker: silence has its reason."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from resources.libraries.python.drivers.generators.builtin import process as module
from resources.libraries.python.drivers.generators.builtin.process import WorkerProcess, first_to_speak
from resources.libraries.python.errors import CommandFailed, NotReady

READS_ITS_INPUT = "json.tool"


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    process = WorkerProcess(READS_ITS_INPUT)
    yield process
    process.close()


def test_silence_ends_in_time_with_the_workers_number(worker: WorkerProcess) -> None:
    with pytest.raises(
        NotReady, match=rf"answer not ready after 0\.1 s; last seen: nothing from worker {worker.pid}; "
    ):
        worker.answer("answer", 0.1)
    with pytest.raises(NotReady, match=r"not ready after 0\.0 s"):
        first_to_speak([worker], "answer", -1.0)


def test_a_stopped_one_is_reported_long_before_the_deadline_and_ended(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.05)
    os.kill(worker.pid, signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(NotReady, match=f"worker {worker.pid} is stopped"):
        worker.answer("answer", 600.0)
    assert time.monotonic() - begin < 300.0
    worker.close()
    assert worker.ended


def test_the_exit_of_a_worker_is_reported_with_its_last_output(worker: WorkerProcess) -> None:
    worker.send({"a": 1})
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(CommandFailed, match="was killed by SIGKILL"):
        worker.answer("answer", 60.0)
