"""The reservation of the machine this runs on: who has it, and until when. Sent to nodes.

One record in one file, changed under a `flock`. All users can read the record (0644, in folders of 0755); only its
owner can open the lock (0600), because a process that opens it can hold it. Time is this machine's own: seconds since
its start, which no step of a clock moves, together with the id of that start. The token is known to the holder; here is
only its digest.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = "/var/lib/csit-density"
"""Outlives a restart: a reservation for hours must not end with one."""
_FILE, _LOCK = "reservation.json", "reservation.lock"
_PUBLIC = ("testbed", "owner", "reason", "since", "lease_s")
_TEXTS = ("testbed", "owner", "reason", "since", "boot_id")
_PAST = ("how", "by", "at")
_TIMES_S = ("lease_s", "until_since_boot_s", "until_calendar_s")
_LATEST_S = 1e11
"""Some thousand years."""


class Now(NamedTuple):
    """This machine's time."""

    boot_id: str
    since_boot_s: float
    calendar_s: float


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Do one operation.

    `arguments`: `do` is one of acquire, release, status, break; the rest is what that takes.

    Returns:
        What came of it, or `failed` with a sentence.
    """
    directory = Path(arguments.get("directory") or DIRECTORY)
    try:
        if arguments["do"] == "status":
            return decide(_read(directory), arguments, _now())[1]  # a file that is replaced as a whole is never half
        with _alone(directory, arguments.get("within_s", 10.0)):
            try:
                state = _read(directory)
            except ValueError as error:
                if arguments["do"] != "break":
                    raise
                _write(directory, {})
                return {"broken": None, "damaged": str(error)}
            after, answer_of = decide(state, arguments, _now())
            if after != state:
                _write(directory, after)
            return answer_of
    except (OSError, ValueError) as error:
        return {"failed": f"{directory}: the reservation cannot be used: {_reason(error)}"}


def _reason(error: OSError | ValueError) -> str:
    """Why a record cannot be used; root of a user namespace, who may not write it, looks like root."""
    if not isinstance(error, OSError):
        return str(error)
    advice = {
        errno.EACCES: "; run as root, outside of user namespaces",
        errno.EPERM: "; run as root, outside of user namespaces",
        errno.EROFS: "; make its file system writable",
        errno.ENOSPC: "; make space there",
    }
    return f"{error.strerror or error}{advice.get(error.errno or 0, '')}"


def decide(state: dict[str, Any], asked: dict[str, Any], now: Now) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state after an operation, and what to say of it. Pure.

    `state`: `holder`, the record of who has the machine, and `before`, of who had it; both may be missing.
    """
    operations = {"acquire": _acquire, "release": _release, "break": _break, "status": _status}
    return operations[asked["do"]](state, asked, now)


def _acquire(state: dict[str, Any], asked: dict[str, Any], now: Now) -> tuple[dict[str, Any], dict[str, Any]]:
    holder = state.get("holder")
    mine = _is_mine(holder, asked)
    if holder is not None and not mine and _left_s(holder, now) > 0:
        return state, {"won": False, "holder": _shown(holder, now)}
    given = {key: asked[key] for key in ("testbed", "owner", "reason")}
    # Asked twice with one token: the answer was lost on its way, or will still come. It is the same lease then, and not
    # a shorter one, as the holder may go by the first answer.
    given.update(digest=_digest(asked), since=holder["since"] if holder and mine else _calendar(now.calendar_s))
    lease_s = max(asked["lease_s"], _left_s(holder, now)) if holder and mine else asked["lease_s"]
    after = dict(state, holder=_until(given, lease_s, now))
    took_over = None
    if holder is not None and not mine:
        took_over = _shown(holder, now)
        after["before"] = _past(holder, "taken over", asked, now)
    return after, {"won": True, "took_over": took_over, "holder": _shown(after["holder"], now)}


def _release(state: dict[str, Any], asked: dict[str, Any], now: Now) -> tuple[dict[str, Any], dict[str, Any]]:
    holder = state.get("holder")
    if holder is None or not _is_mine(holder, asked):
        return state, {"released": False, "why": _whereabouts(state, asked, now), "holder": _shown(holder, now)}
    return {"before": _past(holder, "released", asked, now)}, {"released": True}


def _break(state: dict[str, Any], asked: dict[str, Any], now: Now) -> tuple[dict[str, Any], dict[str, Any]]:
    holder = state.get("holder")
    if holder is None:
        return state, {"broken": None}
    return {"before": _past(holder, "broken", asked, now)}, {"broken": _shown(holder, now)}


def _status(state: dict[str, Any], asked: dict[str, Any], now: Now) -> tuple[dict[str, Any], dict[str, Any]]:
    holder = state.get("holder")
    return state, {"holder": _shown(holder, now), "mine": _is_mine(holder, asked)}


def _digest(asked: dict[str, Any]) -> str | None:
    token = asked.get("token")
    return hashlib.sha256(token.encode()).hexdigest() if token else None


def _is_mine(holder: dict[str, Any] | None, asked: dict[str, Any]) -> bool:
    return holder is not None and holder["digest"] == _digest(asked)


def _left_s(holder: dict[str, Any], now: Now) -> float:
    """Seconds until the lease runs out; less than zero since when it has."""
    if holder["boot_id"] == now.boot_id:
        return float(holder["until_since_boot_s"] - now.since_boot_s)
    # Restarted since. It was taken before that, so no more than its time can be left, whatever the calendar says.
    return float(min(holder["lease_s"] - now.since_boot_s, holder["until_calendar_s"] - now.calendar_s))


def _until(holder: dict[str, Any], lease_s: float, now: Now) -> dict[str, Any]:
    return dict(
        holder,
        lease_s=lease_s,
        boot_id=now.boot_id,
        until_since_boot_s=now.since_boot_s + lease_s,
        until_calendar_s=now.calendar_s + lease_s,
    )


def _past(holder: dict[str, Any], how: str, asked: dict[str, Any], now: Now) -> dict[str, Any]:
    by = asked.get("owner") or holder["owner"]
    return {"digest": holder["digest"], "how": how, "by": by, "at": _calendar(now.calendar_s)}


def _whereabouts(state: dict[str, Any], asked: dict[str, Any], now: Now) -> str:
    before, holder = state.get("before"), _shown(state.get("holder"), now)
    if before and before["digest"] == _digest(asked):
        return f"{before['how']} by {before['by']} at {before['at']}"
    if holder:
        return f"it is that of {holder['owner']}, since {holder['since']}: {holder['reason']}"
    return "there is no such reservation"


def _shown(holder: dict[str, Any] | None, now: Now) -> dict[str, Any] | None:
    """A holder for others to see: without what proves to be it."""
    if holder is None:
        return None
    left_s = _left_s(holder, now)
    until = _calendar(now.calendar_s + left_s)
    return {**{key: holder.get(key) for key in _PUBLIC}, "left_s": left_s, "until": until}


def _calendar(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)  # noqa: UP017 - a node's Python is older
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _now() -> Now:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return Now(boot_id, time.clock_gettime(time.CLOCK_BOOTTIME), time.time())


@contextlib.contextmanager
def _alone(directory: Path, within_s: float) -> Iterator[None]:
    """Hold the lock of decisions about reservations. Raises OSError where that takes too long."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # what can open it can hold it
        end = time.monotonic() + within_s
        while not _locked(descriptor):
            if time.monotonic() > end:
                raise OSError(errno.ETIMEDOUT, f"{_LOCK} is held by another process for more than {within_s:.0f} s")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(directory: Path) -> dict[str, Any]:
    try:
        state = json.loads((directory / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):  # brackets can be nested too deep
        state = None
    if not isinstance(state, dict):
        raise ValueError(f"{_FILE} is no record of this program; look at it, then ./csit release TOPOLOGY --force")
    for name, texts, times_s in (("holder", _TEXTS, _TIMES_S), ("before", _PAST, ())):
        problems = _problems(state.get(name), texts, times_s)
        if problems:
            text = f"{_FILE} is damaged ({name}: {', '.join(problems)})"
            raise ValueError(f"{text}; look at it, then ./csit release TOPOLOGY --force")
    return state


def _problems(record: object, texts: tuple[str, ...], times_s: tuple[str, ...]) -> list[str]:
    """Keys of the record of a holder, or of an earlier one, that are missing or of another type."""
    if record is None:
        return []
    if not isinstance(record, dict):
        return ["no mapping"]
    wrong = [key for key in texts if not isinstance(record.get(key), str)]
    wrong += [key for key in ("digest",) if not isinstance(record.get(key, 0), (str, type(None)))]
    return wrong + [key for key in times_s if not _is_time(record.get(key))]


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) < _LATEST_S


def _write(directory: Path, state: dict[str, Any]) -> None:
    """Replace it as a whole and sync it before the answer: a machine that crashes keeps the old or the new one."""
    new = directory / f"{_FILE}.new"
    try:
        with new.open("w", encoding="utf-8") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(directory / _FILE)
        folder = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
