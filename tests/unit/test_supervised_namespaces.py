"""Whose processes a supervisor ends: neither those of its own namespace, nor of one that has another number now."""

from contextlib import ExitStack
from pathlib import Path

from resources.libraries.python import supervisor


def _found(known: dict[Path, int]) -> set[int]:
    with ExitStack() as held:
        return supervisor._inside(*supervisor._existing(known, held))


def test_a_supervisor_never_ends_the_processes_around_it() -> None:
    own = Path("/proc/self/ns/net")
    assert _found({own: own.stat().st_ino}) == set()
    assert _found({own: 1, Path("/run/netns/of-no-run"): 2}) == set()
