"""CPU for sampler and tracer of a system under test. Pure."""

from collections.abc import Iterable

from resources.libraries.python.model.core_map import Thread, ThreadRole


def cpu_without_data(threads: Iterable[Thread]) -> int | None:
    """The CPU of the system's own threads, when no data thread has its place there.

    None on a machine too small for that. Probes then should not be pinned: a generator that
    shares the system's CPU spins, and delays other threads; a data thread yields at once.

    Args:
        threads: All of a machine.
    """
    rows = tuple(threads)
    busy = {thread.cpu for thread in rows if thread.role is ThreadRole.DATA}
    return next((thread.cpu for thread in rows if thread.role is ThreadRole.SYSTEM and thread.cpu not in busy), None)
