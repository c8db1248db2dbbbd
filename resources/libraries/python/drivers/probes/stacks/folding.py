"""Samples as perf prints them, folded to stacks by owner. Pure.

`perf script -F comm,tid,ip,sym` prints a line with the command and the thread of each sample, then its frames, the
innermost first, then an empty line.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from resources.libraries.python.model.bounds import DEEPEST_STACK, LONGEST_FUNCTION, MAX_STACKS
from resources.libraries.python.model.measurements.stacks import OTHER, SEPARATOR, SOFTIRQ

COLUMNS = "comm,tid,ip,sym"
MAX_DIFFERENT = 200_000
"""Different stacks that are counted one by one; samples of further ones count as `OTHER`."""
_IDLE = "swapper"
_UNKNOWN = "[unknown]"
_HEAD = re.compile(r"^(\S.{0,40}?)\s+(\d{1,10})\s*$")
_FRAME = re.compile(r"^\s+[0-9a-f]{1,16}\s+(\S.*)")
_LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?\s+lost\s+(\d{1,18})")
_COMPILED = re.compile(r"(?:\.(?:isra|constprop|part|cold|llvm)(?:\.\d{1,20}){0,4}){1,8}$")
"""Copies of a function that a compiler makes: other builds have others."""
_NUMBERED = re.compile(r"^(vhost-|kworker/|ksoftirqd/|pmd-c).*")
_RECEIVING = "napi/"
"""Begins the name of a receive thread of the kernel, whose interface follows."""
_SOFTIRQ_ENTRIES = frozenset({"__do_softirq", "handle_softirqs", "__softirqentry_text_start"})


@dataclass(slots=True)
class StackCounts:
    """Samples by stack."""

    counts: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    idle: int = 0
    elsewhere: int = 0
    lost: int = 0


def fold(lines: Iterable[str], owners: Mapping[int, str]) -> StackCounts:
    """Fold the output of perf.

    Args:
        lines: Its lines; those that are too long or of another form are skipped.
        owners: Part of the cell by thread id. Samples of other threads count as idle, as softirq where the kernel
            handled packets in them, or as elsewhere.
    """
    found = StackCounts()
    for command, thread, frames in _samples(lines, found):
        found.samples += 1
        owner = owners.get(thread)
        if owner is not None:
            name = _NUMBERED.sub(lambda match: match[1].rstrip("-/"), command)
            before = (owner,) if command.startswith(_RECEIVING) else (owner, _frame(name))
            _add(found, (*before, *frames))
        elif (entry := next((at for at, name in enumerate(frames) if name in _SOFTIRQ_ENTRIES), None)) is not None:
            _add(found, (SOFTIRQ, *frames[entry:]))
        elif command == _IDLE:
            found.idle += 1
        else:
            found.elsewhere += 1
    return found


def _samples(lines: Iterable[str], found: StackCounts) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield command, thread and frames of each sample, the outermost frame first."""
    head: tuple[str, int] | None = None
    frames: list[str] = []
    for line in lines:
        if match := _FRAME.match(line):
            frames.append(_frame(match[1].rstrip()))
            continue
        if head is not None:
            yield *head, _shortened(frames)
            head = None
        frames.clear()
        if match := _LOST.search(line):
            found.lost += int(match[1])
        elif match := _HEAD.match(line):
            head = match[1], int(match[2])
    if head is not None:
        yield *head, _shortened(frames)


def _frame(name: str) -> str:
    """A function's name without what differs between builds, and without the separator."""
    name = _COMPILED.sub("", name.partition("+0x")[0])
    return "".join(char if char.isprintable() else "?" for char in name.replace(SEPARATOR, ":"))[:LONGEST_FUNCTION]


def _shortened(frames: Sequence[str]) -> tuple[str, ...]:
    """The frames, outermost first, without recursion and without addresses that no function is known of.

    Where a program has no frame pointers, addresses beyond its innermost function are no callers.
    """
    outer = list(reversed(frames))
    if outer and outer.count(_UNKNOWN) == len(outer):
        return (_UNKNOWN,)
    while outer and outer[0] == _UNKNOWN:
        del outer[0]
    once = [name for at, name in enumerate(outer) if at == 0 or name != outer[at - 1]]
    if len(once) > DEEPEST_STACK:
        half = DEEPEST_STACK // 2
        once = [*once[:half], "[...]", *once[-half + 1 :]]
    return tuple(once)


def _add(found: StackCounts, frames: Sequence[str]) -> None:
    stack = SEPARATOR.join(frames)
    if stack not in found.counts and len(found.counts) >= MAX_DIFFERENT:
        stack = SEPARATOR.join((frames[0], OTHER))
    found.counts[stack] += 1


def kept(counts: Mapping[str, int], most: int = MAX_STACKS) -> tuple[dict[str, int], int]:
    """Return the most frequent stacks, and the number of samples in others, which are kept by owner only.

    Args:
        counts: Samples by stack.
        most: Kept stacks.

    Returns:
        As many samples as there were: those of other stacks are under `owner;[other stacks]`.
    """
    ranked = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    found = dict(ranked[:most])
    cut = 0
    for stack, count in ranked[most:]:
        rest = f"{stack.partition(SEPARATOR)[0]}{SEPARATOR}{OTHER}"
        found[rest] = found.get(rest, 0) + count
        cut += count
    return found, cut


def owners_of(tasks: Mapping[str, Collection[int]]) -> dict[int, str]:
    """Return the owner of each thread, from the threads of each owner."""
    return {thread: owner for owner, threads in tasks.items() for thread in threads}
