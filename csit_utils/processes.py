"""Work shared by forked processes."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from resources.libraries.python.errors import CsitError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_FORK = multiprocessing.get_context("fork")
"""Avoids repeated imports. Must be used before threads start that may hold a lock."""


def shared(
    work: Callable[[_Item], _Result], items: Sequence[_Item], processes: int, *, from_both_ends: bool = False
) -> Iterator[_Result]:
    """Process items in any order, each by the first free process.

    Starting a process takes as long as reading a file of 1 MB, so the calling process works as well.

    Args:
        work: Processes one item; results are sent through a pipe. Its first error ends all.
        items: Longest first.
        processes: Number of processes, including the calling one.
        from_both_ends: Whether the others begin with the last item, so that this one certainly processes the first.

    Raises:
        CsitError: A process was killed.
    """
    left = _FORK.Array("i", (0, len(items)))  # the first, and the one after the last

    def done(from_end: bool) -> Iterator[_Result]:
        while True:
            with left.get_lock():
                if left[0] >= left[1]:
                    return
                number = left[1] - 1 if from_end else left[0]
                left[from_end] = number if from_end else number + 1
            yield work(items[number])

    with ExitStack() as stack:
        # Garbage collection would write to every object, and so copy all memory pages for each process.
        gc.freeze()
        stack.callback(gc.unfreeze)
        theirs = [_helper(partial(done, from_both_ends), stack) for _ in range(min(processes, len(items)) - 1)]
        for result in done(False):
            yield result
            yield from _arrived(theirs, 0.0)
        while theirs:
            yield from _arrived(theirs, None)


def _helper(results: Callable[[], Iterator[Any]], stack: ExitStack) -> Connection:
    """Start a process; return the pipe with its results."""
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
    except Exception as error:  # process boundary: raised again in the calling process
        pipe.send((None, error))


def _arrived(pipes: list[Connection], within_s: float | None) -> Iterator[Any]:
    """Yield results available within a time, or the next one; closed pipes are removed from the list."""
    for ready in wait(pipes, within_s):
        assert isinstance(ready, Connection)  # noqa: S101 - of those that were given
        try:
            result, error = ready.recv()
        except EOFError as ended:
            raise CsitError("a worker process was killed") from ended
        if error is not None:
            raise error
        if result is None:
            pipes.remove(ready)
        else:
            yield result
