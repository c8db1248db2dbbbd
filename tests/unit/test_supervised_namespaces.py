"""Whose processes a supervisor ends: neither those of its own namespace, nor of one that has another number now."""

from pathlib import Path

from resources.libraries.python import supervisor


def test_a_supervisor_never_ends_the_processes_around_it() -> None:
    own = Path("/proc/self/ns/net")
    assert supervisor._inside({own: own.stat().st_ino}) == []
    assert supervisor._inside({own: 1, Path("/run/netns/of-no-run"): 2}) == []
