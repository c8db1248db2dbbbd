"""Tables of connections that network functions keep: their state, and the deletion of all entries."""

from resources.libraries.python.model.base import Frozen


class ConnectionTable(Frozen):
    """The table of one network function; what cannot be read is None."""

    entries: int
    """Now."""
    limit: int | None
    """Most entries that it may have."""
    buckets: int | None
    """Of its hash table, which network functions of one kernel share."""
    timeout_s: int | None
    """After which an entry of UDP that had no reply expires."""
    failed: int | None
    """Insertions that failed, since the network function was made."""
    dropped: int | None
    """Packets dropped because no entry could be made, since then."""
    evicted: int | None
    """Entries deleted to make room for others, since then."""


class Deletion(Frozen):
    """The deletion of all entries of one table."""

    entries: int
    """Before it."""
    left: int
    """After it."""
    began_ns: int
    """By the monotonic clock of its machine, which is virtual in a simulation."""
    ended_ns: int

    @property
    def seconds(self) -> float:
        """Its duration."""
        return (self.ended_ns - self.began_ns) / 1e9
