"""Work shared among processes: each item is processed once, by the first free process, and errors are reported."""

import gc
import multiprocessing
import os
import signal

import pytest

from csit_utils.processes import shared
from resources.libraries.python.errors import ConfigError, CsitError


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


@pytest.mark.parametrize("processes", [1, 2, 3, 9])
@pytest.mark.parametrize("items", [0, 1, 7])
def test_every_item_is_worked_on_once(processes: int, items: int) -> None:
    frozen = gc.get_freeze_count()
    found = list(shared(square, range(items), processes))
    assert sorted(result for result, _ in found) == [number * number for number in range(items)]
    assert gc.get_freeze_count() <= frozen
    assert not multiprocessing.active_children()


def test_others_take_their_part() -> None:
    def slowly(number: int) -> tuple[int, int]:
        signal.sigtimedwait([], 0.02)
        return square(number)

    assert len({process for _, process in shared(slowly, range(20), 3)}) == 3


def test_what_another_process_raises_is_raised_here() -> None:
    me = os.getpid()

    def work(number: int) -> int:
        signal.sigtimedwait([], 0.01)
        if os.getpid() != me:
            raise ConfigError("no such file")
        return number

    with pytest.raises(ConfigError, match="no such file"):
        list(shared(work, range(100), 2))
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_told_and_nobody_waits_for_it() -> None:
    me = os.getpid()

    def work(number: int) -> int:
        signal.sigtimedwait([], 0.01)
        if os.getpid() != me:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(CsitError, match="was killed"):
        list(shared(work, range(20), 2))


def test_who_does_not_want_the_rest_leaves_no_process() -> None:
    results = shared(square, range(50), 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def test_others_begin_with_the_last() -> None:
    me = os.getpid()

    def slowly(number: int) -> tuple[int, bool]:
        signal.sigtimedwait([], 0.02)
        return number, os.getpid() == me

    found = dict(shared(slowly, range(9), 2, from_both_ends=True))
    assert sorted(found) == list(range(9))
    assert found[0]
    assert not found[8]
    mine = [number for number in range(9) if found[number]]
    assert mine == list(range(len(mine)))
