"""The kernel's file system for tracing, and a tracing instance of our own in it: never the buffer that all share."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.libraries.python.drivers.host.links.namespace_syscalls import mount_apart
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.probes.tracer.formats import EventFormat, parse
from resources.libraries.python.errors import CsitError, Unsupported

_USUAL = Path("/sys/kernel/tracing")
_REMOVED_WITHIN_S = 5.0
CLOCK = "mono"
"""The clock of `time.monotonic_ns`, one for all CPUs: a thread's events on two CPUs keep their order."""


@contextmanager
def opened(usual: Path = _USUAL) -> Iterator[Path]:
    """The root of tracefs: where it is mounted, else a private mount that ends with this process.

    Raises:
        Unsupported: There is none, or we may not use it; one sentence.
    """
    if (usual / "instances").is_dir():
        yield usual
        return
    try:
        descriptor = mount_apart("tracefs")
    except OSError as error:
        raise Unsupported(f"tracefs is not mounted at {usual} and cannot be: {error.strerror}") from error
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def events(root: Path) -> frozenset[str]:
    """All events of this kernel, as `system/event`.

    Raises:
        Unsupported: They may not be read.
    """
    try:
        lines = (root / "available_events").read_text(encoding="ascii").split()
    except OSError as error:
        raise Unsupported(f"events of the kernel cannot be read: {error.strerror}; run as root") from error
    return frozenset(line.replace(":", "/", 1) for line in lines)


def formats(root: Path, wanted: Iterable[str]) -> tuple[EventFormat, ...]:
    """How events look, in the given order."""
    return tuple(parse(format_text(root, event)) for event in wanted)


def format_text(root: Path, event: str) -> str:
    """The `format` file of an event, `system/event`."""
    return (root / "events" / event / "format").read_text(encoding="utf-8")


def present(root: Path, name: str) -> bool:
    """Whether there is an instance of this name."""
    return (root / "instances" / name).is_dir()


def remove(name: str) -> bool:
    """Remove an instance of this machine; return whether there was one.

    Raises:
        CsitError: It is in use.
    """
    try:
        with opened() as root:
            if not present(root, name):
                return False
            TraceInstance(root, name).remove()
            return True
    except Unsupported:  # no tracefs, so no instances either
        return False


def remove_left(names: Iterable[str]) -> list[str]:
    """Remove instances that a killed run has left; return a sentence for each.

    Raises:
        CsitError: One is kept in use.
    """
    return [f"removed tracing instance {name}" for name in names if remove(name)]


class TraceInstance:
    """One tracing instance: a ring buffer for each CPU, with its own choice of events."""

    def __init__(self, root: Path, name: str) -> None:
        """Nothing is made before `make`."""
        self._path = root / "instances" / name

    def make(self, buffer_kib: int, threads: Iterable[int]) -> None:
        """Make it, with nothing recorded yet.

        Args:
            buffer_kib: Of each CPU.
            threads: Whose events are recorded, by their ids. The kernel records a switch or a wake-up for both sides.

        Raises:
            Unsupported: The kernel refuses.
        """
        try:
            self._path.mkdir()
            self.write("tracing_on", "0")
            self.write("trace_clock", CLOCK)
            self.write("buffer_size_kb", str(buffer_kib))
            self.write("set_event_pid", " ".join(map(str, threads)))
        except OSError as error:
            raise Unsupported(f"a tracing instance cannot be made: {error.strerror} ({error.filename})") from error

    def write(self, setting: str, value: str) -> None:
        """Set something."""
        descriptor = os.open(self._path / setting, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)

    def enable(self, events: Iterable[str], on: bool) -> None:
        """Switch the recording of events. An event that is not recorded costs nothing."""
        for event in events:
            self.write(f"events/{event}/enable", "1" if on else "0")

    def enabled(self, events: Iterable[str]) -> bool:
        """Whether one of them is."""
        places = (self._path / "events" / event / "enable" for event in events)
        return any(place.read_text(encoding="ascii").strip() != "0" for place in places)

    def buffers(self) -> tuple[Path, ...]:
        """The raw buffers, one of each CPU."""
        found = self._path.glob("per_cpu/cpu*/trace_pipe_raw")
        return tuple(sorted(found, key=lambda path: int(path.parent.name[3:])))

    def page_bytes(self) -> int:
        """Most that one read of a raw buffer gives."""
        try:
            return 1024 * int((self._path / "buffer_subbuf_size_kb").read_text(encoding="ascii"))
        except OSError:  # before Linux 6.8 it is always a page
            return os.sysconf("SC_PAGE_SIZE")

    def counts(self) -> tuple[int, int]:
        """Events until now that were recorded, and that were lost because a buffer was full."""
        recorded = lost = 0
        for path in self._path.glob("per_cpu/cpu*/stats"):
            pairs = (line.partition(":") for line in path.read_text(encoding="ascii").splitlines())
            row = {name.strip(): value.strip() for name, _, value in pairs}
            missing = sum(int(row.get(name, 0)) for name in ("overrun", "commit overrun", "dropped events"))
            recorded += int(row.get("entries", 0)) + int(row.get("read events", 0))
            lost += missing
        return recorded, lost

    def remove(self) -> None:
        """Remove it with all that it recorded. Safe when it was never made.

        Raises:
            CsitError: It is in use.
        """

        def busy() -> str:
            try:
                self._path.rmdir()
            except FileNotFoundError:
                return ""
            except OSError as error:
                return f"{error.strerror}"
            return ""

        try:
            wait_until(f"removal of tracing instance {self._path.name}", busy, _REMOVED_WITHIN_S)
        except CsitError as error:
            raise CsitError(f"tracing instance {self._path.name} cannot be removed: {error}") from error
