"""Work shared by forked processes."""

import gc
import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from resources.libraries.python.errors import CsitError
from resources.libraries.python.parent_death import die_with_parent

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_FORK = multiprocessing.get_context("fork")
"""Avoids repeated imports. Must be used before threads start that may hold a lock."""


@dataclass(frozen=True)
class _Failure:
    """An error of a helper. Pickling loses its traceback and its cause."""

    error: Exception
    trace: str | None
    """Formatted traceback with causes; None for errors that this project raises on purpose."""


def shared(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    processes: int,
    *,
    from_both_ends: bool = False,
    meanwhile: Callable[[], object] | None = None,
) -> Iterator[_Result]:
    """Process items in any order, each by the first free process.

    Starting a process takes as long as reading a file of 1 MB, so the calling process works as well.
    The other processes end with the thread that called first.

    `work`: Processes one item; results are sent through a pipe. Its first error ends all; that of another process
      has the traceback as a note, unless it is a `CsitError`, and becomes one where it cannot be pickled.
    `meanwhile`: Called by this process before its first item, while the others have begun with theirs.

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
        theirs: list[Connection] = []
        for _ in range(min(processes, len(items)) - 1):
            theirs.append(_helper(partial(done, from_both_ends), stack, theirs))
        if meanwhile is not None:
            meanwhile()
        for result in done(False):
            yield result
            yield from _arrived(theirs, 0.0)
        while theirs:
            yield from _arrived(theirs, None)


def _helper(results: Callable[[], Iterator[Any]], stack: ExitStack, earlier: Sequence[Connection]) -> Connection:
    """Start a process; return the pipe with its results."""
    ours, its = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_help, args=(results, its, [*earlier, ours], os.getpid()), daemon=True)
    process.start()
    its.close()
    stack.callback(process.join)
    stack.callback(process.terminate)
    stack.callback(ours.close)
    return ours


def _help(results: Callable[[], Iterator[Any]], pipe: Connection, inherited: Sequence[Connection], parent: int) -> None:
    """Send results, each in a tuple, and then an empty tuple or a `_Failure`."""
    for each in inherited:
        each.close()
    die_with_parent()  # it may have ended with the lock that helpers wait for
    if os.getppid() != parent:  # ended before that
        return
    last: _Failure | tuple[()] = ()
    try:
        for result in results():
            pipe.send((result,))
    except KeyboardInterrupt:  # Ctrl-C reaches the parent as well, which reports it
        return
    except Exception as error:  # boundary: raised again in the calling process
        last = _failure(error)
    with suppress(BrokenPipeError):  # the parent needs no more
        pipe.send(last)


def _failure(error: Exception) -> _Failure:
    trace = None if isinstance(error, CsitError) else "".join(traceback.format_exception(error))
    try:
        whole = type(pickle.loads(pickle.dumps(error))) is type(error)  # noqa: S301 - of this process
    except (pickle.PicklingError, AttributeError, LookupError, TypeError, ValueError):
        whole = False  # a local class, or a constructor with other arguments than those that an exception keeps
    if not whole:
        text = str(error) if isinstance(error, CsitError) else f"{type(error).__name__}: {error}"
        error = CsitError(text)
    return _Failure(error, trace)


def _arrived(pipes: list[Connection], within_s: float | None) -> Iterator[Any]:
    """Yield results available within a time, or the next one; closed pipes are removed from the list."""
    for ready in wait(pipes, within_s):
        assert isinstance(ready, Connection)  # noqa: S101 - of those that were given
        try:
            message = ready.recv()
        except EOFError as ended:
            raise CsitError("a worker process was killed") from ended
        match message:
            case _Failure(error, trace):
                if trace is not None:
                    error.add_note(f"In a worker process:\n{trace}")
                raise error
            case ():
                pipes.remove(ready)
            case _:
                yield from message
