"""Work shared among processes, of which the one that asks is one."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from resources.libraries.python.errors import CsitError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_FORK = multiprocessing.get_context("fork")
"""What was imported need not be imported again. To be used before a thread is started that may hold a lock."""


def shared(work: Callable[[_Item], _Result], items: Sequence[_Item], processes: int) -> Iterator[_Result]:
    """Do the work of every item, in any order, each by the process that is free first.

    To start a process costs as much as to read a file of a megabyte; so this one does not just wait for others.

    Args:
        work: Of one item; its results go through a pipe. What it raises ends all.
        items: The longest first.
        processes: How many work, this one among them.

    Raises:
        CsitError: A process ended before its time.
    """
    turn = _FORK.Value("i", 0)

    def mine() -> Iterator[_Result]:
        while True:
            with turn.get_lock():
                number = turn.value
                turn.value += 1
            if number >= len(items):
                return
            yield work(items[number])

    with ExitStack() as stack:
        # The collection of garbage would write to every object there is, and so copy all their pages for each process.
        gc.freeze()
        stack.callback(gc.unfreeze)
        theirs = [_helper(mine, stack) for _ in range(min(processes, len(items)) - 1)]
        for result in mine():
            yield result
            yield from _arrived(theirs, 0.0)
        while theirs:
            yield from _arrived(theirs, None)


def _helper(results: Callable[[], Iterator[Any]], stack: ExitStack) -> Connection:
    """Start a process; the end of the pipe that has what it works out."""
    ours, its = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_help, args=(results, its), daemon=True)
    process.start()
    its.close()
    stack.callback(process.join)
    stack.callback(process.terminate)
    stack.callback(ours.close)
    return ours


def _help(results: Callable[[], Iterator[Any]], pipe: Connection) -> None:
    try:
        for result in results():
            pipe.send((result, None))
        pipe.send((None, None))
    except Exception as error:  # a process boundary: it is raised where the work was asked for
        pipe.send((None, error))


def _arrived(pipes: list[Connection], within_s: float | None) -> Iterator[Any]:
    """What is there by now, or, without a time, what comes next; pipes that have ended are taken off the list."""
    for ready in wait(pipes, within_s):
        assert isinstance(ready, Connection)  # noqa: S101 - of those that were given
        try:
            result, error = ready.recv()
        except EOFError as ended:
            raise CsitError("a process that was reading files was ended from outside") from ended
        if error is not None:
            raise error
        if result is None:
            pipes.remove(ready)
        else:
            yield result
