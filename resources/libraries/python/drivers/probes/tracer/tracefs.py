"""The kernel's file system for tracing: a tracing instance of our own in it, and the formats of its events.

An instance has a buffer of its own; the one that all programs share is never used.

The `format` file of an event (Documentation/trace/events.rst) lists its fields with offset and size in bytes, then the
format string of the text that the kernel prints, in which the names of reasons, states and vectors stand as tables.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.host.kernel_files import write
from resources.libraries.python.drivers.host.links.namespace_syscalls import mount_apart
from resources.libraries.python.drivers.host.ownership.cleanup_steps import take_all
from resources.libraries.python.drivers.host.programs.waiting import wait_until
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


_FIELD = re.compile(r"\tfield:(?P<declared>[^;]+);\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);")
_NAME = re.compile(r"(?<!\w)(\w++)(?:\[\w*+\])?$")
_TABLE = re.compile(r"__print_(?:symbolic|flags)\(\s*REC->(?P<field>\w+)")
_ROW = r'\{\s*+([^,{}]++),\s*+((?:"[^"]*+"\s*+)++)\}'
_ROWS = re.compile(rf"{_ROW}(?:\s*,\s*{_ROW})*")


@dataclass(frozen=True, slots=True)
class Field:
    """Where a field lies, in bytes from the beginning of the event's own data."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One event."""

    name: str
    number: int
    """`common_type` of its records; other kernels have others."""
    fields: Mapping[str, Field]
    tables: Mapping[str, tuple[Mapping[int, str], ...]]
    """Names of a field's numbers. Some fields have several tables, as `exit_reason` has for Intel, then for AMD."""


def parse(text: str) -> EventFormat:
    """Read a `format` file.

    Raises:
        CsitError: It has no name or no number.
    """
    name, number = (re.search(rf"^{word}: (\S+)$", text, re.MULTILINE) for word in ("name", "ID"))
    if name is None or number is None:
        raise CsitError(f"no format of a trace event: {text[:60]!r}")
    fields = {}
    for row in _FIELD.finditer(text):
        if match := _NAME.search(row["declared"]):
            fields[match[1]] = Field(int(row["offset"]), int(row["size"]))
    _, _, printed = text.partition("print fmt:")
    return EventFormat(name[1], int(number[1]), fields, _tables(printed))


def _tables(printed: str) -> dict[str, tuple[Mapping[int, str], ...]]:
    """Tables by field, in the order in which they stand in the text."""
    tables: dict[str, tuple[Mapping[int, str], ...]] = {}
    heads = list(_TABLE.finditer(printed))
    bounds = [*(head.start() for head in heads), len(printed)]
    for head, end in zip(heads, bounds[1:], strict=True):
        if rows := _ROWS.search(printed, head.end(), end):
            names = {}
            for number, words in re.findall(_ROW, rows[0]):
                if (value := _number(number)) is not None:
                    names[value] = "".join(re.findall(r'"([^"]*)"', words))
            tables[head["field"]] = (*tables.get(head["field"], ()), names)
    return tables


def _number(text: str) -> int | None:
    """A C constant or a sum of such, as 32 bits without sign; None for a name that only the compiler knows."""
    try:
        return sum(int(part.strip().rstrip("uUlL"), 0) for part in text.strip("() ").split("+")) & 0xFFFFFFFF
    except ValueError:
        return None


def formats(root: Path, wanted: Iterable[str]) -> tuple[EventFormat, ...]:
    """How events look, in the given order."""
    return tuple(parse((root / "events" / event / "format").read_text(encoding="utf-8")) for event in wanted)


def present(root: Path, name: str) -> bool:
    """Whether there is an instance of this name."""
    return (root / "instances" / name).is_dir()


def remove_left(names: Iterable[str]) -> list[str]:
    """Remove instances that a killed run has left; return a sentence for each.

    Raises:
        CsitError: Some are kept in use; the others were removed.
    """
    return take_all(partial(_remove_left, name) for name in names)


def _remove_left(name: str) -> list[str]:
    # Without tracefs there are no instances either.
    with suppress(Unsupported), opened() as root:
        if present(root, name):
            TraceInstance(root, name).remove()
            return [f"removed tracing instance {name}"]
    return []


class TraceInstance:
    """One tracing instance: a ring buffer for each CPU, with its own choice of events."""

    def __init__(self, root: Path, name: str) -> None:
        self._path = root / "instances" / name

    def make(self, buffer_kib: int, threads: Iterable[int]) -> None:
        """Make it, with nothing recorded yet.

        `buffer_kib`: Of each CPU.
        `threads`: Whose events are recorded, by their ids. The kernel records a switch or a wake-up for both sides.

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
        write(self._path / setting, value)

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
