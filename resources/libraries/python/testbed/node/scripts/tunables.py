"""Kernel settings of this machine: their values, changing them, and putting back what was there. Sent to nodes.

A setting is a file of the kernel with its text. Before the first of them is changed all old values are on disk, so they
can be put back after a kill -9 and after a second change. Nothing here outlives a restart of the machine: the record
says of which boot it is, and that of an earlier one is dropped.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = "/var/lib/csit-density"
RECORD = "prepared.json"
_DAEMON = "irqbalance"
_LOOKED_AT = (
    "sys/devices/system/node/node[0-9]*/hugepages/hugepages-*kB/nr_hugepages",
    "sys/kernel/mm/hugepages/hugepages-*kB/nr_hugepages",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_available_governors",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/cpufreq/boost",
    "proc/irq/default_smp_affinity",
    "proc/irq/[0-9]*/smp_affinity_list",
    "proc/sys/vm/max_map_count",
    "proc/sys/vm/swappiness",
    "proc/sys/kernel/*watchdog*",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/randomize_va_space",
    "etc/default/grub",
)
_COMPACT = "proc/sys/vm/compact_memory"
_DAEMON_ENDS_S = 5.0


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Do one operation.

    `arguments`: `do` is look, apply or restore. For apply `settings`, a list of [path, value], `stop_irqbalance`
      and `by`, who changes them. `root` and `directory` are other trees for tests.

    Returns:
        Of look `files`, the text of each setting that there is. Of apply `changed`, a list of [path, old, new], and
        `refused`, of [path, why]. Of restore `restored`, as `changed`, `failed_paths`, as `refused`, and `restarted`.
        Of both `irqbalance`, whether it was stopped or started; None where there was nothing to do. Or `failed` with a
        sentence.
    """
    root, directory = Path(arguments.get("root") or "/"), Path(arguments.get("directory") or DIRECTORY)
    if arguments["do"] == "look":
        return {"files": {f"/{path.relative_to(root)}": _read(path) for each in _LOOKED_AT for path in root.glob(each)}}
    if os.geteuid() != 0 and not arguments.get("root"):
        return {"failed": "settings of the kernel need root's rights"}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / "prepared.lock").open("w") as lock:
            os.fchmod(lock.fileno(), 0o600)  # a process that can open it can hold it
            fcntl.flock(lock, fcntl.LOCK_EX)
            return (_apply if arguments["do"] == "apply" else _restore)(root, directory, arguments)
    except OSError as error:
        advice = "run as root, outside of user namespaces, with space on a writable disk there"
        return {"failed": f"{directory / RECORD}: {error.strerror or error}; {advice}"}
    except (ValueError, KeyError) as error:
        return {"failed": f"{directory / RECORD}: {error}"}


def _apply(root: Path, directory: Path, asked: dict[str, Any]) -> dict[str, Any]:
    boot_id = _read(root / "proc/sys/kernel/random/boot_id")
    record = _load(directory)
    if record is None or record["boot_id"] != boot_id:
        moment = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 - a node's Python is older
        record = {
            "boot_id": boot_id, "by": asked["by"], "since": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "settings": {}, "irqbalance": None,
        }  # fmt: skip
    todo = []
    for path, value in asked["settings"]:
        old = _read(root / path[1:])
        if old is not None and old != value:
            todo.append((path, old, value))
            record["settings"].setdefault(path, old)
    daemon = _daemon(root) if asked.get("stop_irqbalance") else None
    if daemon:
        record["irqbalance"] = record["irqbalance"] or daemon["how"]
    if todo or daemon:
        _save(directory, record)
    # First: it moves interrupts while it runs.
    stopped = _stop(daemon) if daemon else None
    changed, refused = [], []
    for path, old, value in todo:
        problem = _write(root, path, value)
        new = _read(root / path[1:]) or ""
        if new == old:
            refused.append([path, problem or "the kernel keeps the old value"])
        else:
            changed.append([path, old, new])
    return {"changed": changed, "refused": refused, "irqbalance": stopped}


def _restore(root: Path, directory: Path, _: dict[str, Any]) -> dict[str, Any]:
    record = _load(directory)
    answer: dict[str, Any] = {"restored": [], "failed_paths": [], "irqbalance": None, "restarted": False}
    if record is None:
        return answer
    if record["boot_id"] != _read(root / "proc/sys/kernel/random/boot_id"):
        (directory / RECORD).unlink()
        return {**answer, "restarted": True}
    left = dict(record["settings"])
    for path, old in reversed(list(record["settings"].items())):
        now = _read(root / path[1:])
        problem = _write(root, path, old) if now not in (None, old) else ""
        after = _read(root / path[1:])
        # What is gone, such as the interrupt of a device that was taken away, needs nothing.
        if after in (None, old):
            del left[path]
            answer["restored"] += [[path, now, old]] if now not in (None, old) else []
        else:
            answer["failed_paths"].append([path, problem or f"is {after} and not {old}"])
    if record["irqbalance"] and _daemon(root) is None:
        answer["irqbalance"] = _start(record["irqbalance"])
    if left:
        _save(directory, {**record, "settings": left, "irqbalance": None})
    else:
        (directory / RECORD).unlink()
    return answer


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _write(root: Path, path: str, value: str) -> str:
    """Write a setting; says why the kernel refuses. Huge pages are tried again after memory has been compacted."""
    for attempt in range(2 if path.endswith("/nr_hugepages") else 1):
        if attempt:
            with contextlib.suppress(OSError):
                (root / _COMPACT).write_text("1", encoding="ascii")
        try:
            (root / path[1:]).write_text(value, encoding="ascii")
        except OSError as error:
            return error.strerror or str(error)
        if _read(root / path[1:]) == value:
            break
    return ""


def _load(directory: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("settings"), dict):
        raise ValueError("is no record of this program; look at it and remove it")
    return record


def _save(directory: Path, record: dict[str, Any]) -> None:
    """On disk as a whole before anything is changed, also where the machine goes down right after."""
    new = directory / f"{RECORD}.new"
    with new.open("w", encoding="utf-8") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(directory / RECORD)
    folder = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _processes(root: Path) -> Iterator[int]:
    for path in (root / "proc").glob("[0-9]*/comm"):
        # One that has ended and was not waited for has no command line any more.
        if _read(path) == _DAEMON and _read(path.with_name("cmdline")):
            yield int(path.parent.name)


def _daemon(root: Path) -> dict[str, Any] | None:
    """The running irqbalance: its processes, and how it is started again."""
    pids = sorted(_processes(root))
    if not pids:
        return None
    if Path("/run/systemd/system").is_dir() and _systemctl("is-active", "--quiet"):
        return {"pids": pids, "how": {"systemd": True}}
    arguments = (root / f"proc/{pids[0]}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    words = [os.fsdecode(each) for each in arguments]
    program = str((root / f"proc/{pids[0]}/exe").readlink())
    # In another root folder the kernel's name of the program leads nowhere.
    program = program if Path(program).exists() else words[0]
    return {"pids": pids, "how": {"program": program, "arguments": words}}


def _stop(daemon: dict[str, Any]) -> bool:
    if "systemd" in daemon["how"]:
        return _systemctl("stop")
    end = time.monotonic() + _DAEMON_ENDS_S
    for pid in daemon["pids"]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    while set(daemon["pids"]) & set(_processes(Path("/"))):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _start(how: dict[str, Any]) -> bool:
    if "systemd" in how:
        return _systemctl("start")
    quiet = subprocess.DEVNULL
    subprocess.Popen(
        how["arguments"], executable=how["program"], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )
    return True


def _systemctl(*words: str) -> bool:
    done = subprocess.run(["systemctl", *words, _DAEMON], capture_output=True, timeout=20, check=False)
    return done.returncode == 0
