"""Work shared among processes: each item is processed once, by the first free process, and errors are reported."""

import gc
import multiprocessing
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from csit_utils import processes
from csit_utils.processes import shared
from resources.libraries.python.defects import DEBUG_LOG, report_defect
from resources.libraries.python.errors import ConfigError, CsitError

FORK = multiprocessing.get_context("fork")
WITHIN_S = 60.0


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


@pytest.mark.parametrize(("processes", "items"), [(1, 7), (2, 0), (3, 7), (9, 1)])
def test_every_item_is_worked_on_once(processes: int, items: int) -> None:
    frozen = gc.get_freeze_count()
    found = list(shared(square, range(items), processes))
    assert sorted(result for result, _ in found) == [number * number for number in range(items)]
    assert gc.get_freeze_count() <= frozen
    assert not multiprocessing.active_children()


def test_results_that_are_not_read_to_the_end_leave_no_process() -> None:
    results = shared(square, range(50), 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def raised_by_another_process(make: Callable[[], BaseException]) -> Exception:
    me, both_have_an_item, waited = os.getpid(), FORK.Barrier(2), set[int]()

    def fail_there(number: int) -> int:
        if os.getpid() not in waited:
            waited.add(os.getpid())
            both_have_an_item.wait(WITHIN_S)
        if os.getpid() != me:
            raise make()
        return number

    with pytest.raises(Exception) as caught:
        list(shared(fail_there, range(9), 2))
    return caught.value


def test_an_unexpected_error_keeps_its_place_and_its_cause_in_the_log(tmp_path: Path) -> None:
    def caused() -> ValueError:
        try:
            raise KeyError("the cause")
        except KeyError as cause:
            error = ValueError("two", 2)
            error.__cause__ = cause
            return error

    error = raised_by_another_process(caused)
    assert type(error) is ValueError and error.args == ("two", 2)
    (note,) = error.__notes__
    assert "in fail_there" in note and "KeyError: 'the cause'" in note
    report_defect(error, tmp_path)
    assert "in fail_there" in (tmp_path / DEBUG_LOG).read_text()


class Unpicklable(Exception):
    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}, line {line}")


class UnpicklableSentence(Unpicklable, CsitError):
    pass


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (ConfigError("no such file"), ConfigError, "no such file"),
        (Unpicklable("results.xml", 7), CsitError, "Unpicklable: results.xml, line 7"),
        (UnpicklableSentence("results.xml", 7), CsitError, "results.xml, line 7"),
    ],
)
def test_an_error_of_another_process_is_raised_here_or_its_text_where_it_cannot_be_pickled(
    raised: Exception, kind: type[Exception], text: str
) -> None:
    error = raised_by_another_process(lambda: raised)
    assert type(error) is kind and str(error) == text
    assert hasattr(error, "__notes__") == (type(raised) is Unpicklable), "an unexpected one has its place"
    assert not multiprocessing.active_children()


def kill() -> BaseException:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.parametrize("end", [kill, KeyboardInterrupt])
def test_a_killed_process_is_told_at_once(end: Callable[[], BaseException], capfd: pytest.CaptureFixture[str]) -> None:
    assert "was killed" in str(raised_by_another_process(end))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("signalled", [True, False], ids=["by a signal", "by their pipes"])
def test_others_end_when_the_calling_process_is_killed(monkeypatch: pytest.MonkeyPatch, signalled: bool) -> None:
    if not signalled:
        monkeypatch.setattr(processes, "die_with_parent", lambda: None)
    started, start = os.pipe()

    def work(parent: int, _: int) -> bytes:
        os.write(start, os.getpid().to_bytes(4))
        while signalled or os.getpid() == parent or os.getppid() == parent:
            signal.sigtimedwait([], 0.01)
        return bytes(1_000_000)  # more than a pipe holds

    def call() -> None:
        list(shared(partial(work, os.getpid()), range(50), 3))

    caller = FORK.Process(target=call)
    caller.start()
    handles: list[int] = []
    try:
        for _ in range(3):
            assert select.select([started], [], [], WITHIN_S)[0]
            if (process := int.from_bytes(os.read(started, 4))) != caller.pid:
                handles.append(os.pidfd_open(process))
        caller.kill()
        caller.join()
        assert len(handles) == 2
        for handle in handles:
            assert select.select([handle], [], [], WITHIN_S)[0], "still running"
    finally:
        caller.kill()
        for handle in handles:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
        os.close(started)
        os.close(start)
