"""Energy counters and power readings of a machine, again and again for some time. Sent to nodes.

`powercap` are the counters of the kernel's powercap class (Documentation/power/powercap), `ipmi` the power reading of
DCMI by ipmitool.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

LONGEST_S = 660.0
_ZONES = "intel-rapl:*"
"""Those of AMD processors have this name, too; `intel-rapl-mmio` are the same counters once more."""
_UPDATED_S = 0.001
"""The processor updates its counters about once a millisecond (Intel SDM, volume 3B, 15.10.1)."""
_COUNTER_BITS = 32
_LONGEST_NUMBER, _LONGEST_NAME = 32, 100
"""Characters in a file of the class."""
_EVERY_S = 0.1
_MAX_SAMPLES = 1000
_PRIORITY = 2
"""Above the data threads, as that of the feature sampler: on CPUs that they share, readings came late or not at all."""
_IPMI_WITHIN_S = 20.0
_MAX_PRINTED = 65_536
"""Bytes; a reading has some hundred. A program that prints more is ended by the kernel (SIGXFSZ)."""
_POWER = re.compile(r"Instantaneous power reading\s*:\s*(\d+)\s*Watts")
_STATE = re.compile(r"Power reading state is\s*:\s*(\w+)")


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Read a meter until the time is over, and at least twice.

    `arguments`: `duration_s`, at most 660; `powercap`, the folder of the class, or `ipmi`, the arguments of the
      program, with `environment`, its variables, and `interval_s`, that of the BMC.

    Returns:
        `domains`, a list of series without node and meter whose times are those of this machine's clock; or `missing`,
        why there is no meter.
    """
    duration_s = min(float(arguments["duration_s"]), LONGEST_S)
    every_s = max(_EVERY_S, duration_s / _MAX_SAMPLES)
    if "ipmi" in arguments:
        command, more = list(arguments["ipmi"]), dict(arguments.get("environment") or {})
        return _sampled([_of_bmc(command, more, float(arguments["interval_s"]))], duration_s, max(every_s, 0.2))
    folder = Path(arguments.get("powercap") or "/sys/class/powercap")
    try:
        zones = _zones(folder)
    except PermissionError as error:
        return {"missing": f"{error.filename} is readable by root only"}
    if not zones:
        return {"missing": f"no {folder}/{_ZONES}: the kernel shows no energy counters; virtual machines have none"}
    return _sampled(zones, duration_s, every_s)


def _sampled(domains: list[dict[str, Any]], duration_s: float, every_s: float) -> dict[str, Any]:
    """Call what reads each domain until the time is over, in real time where this process may."""
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
    try:
        return _readings(domains, duration_s, every_s)
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, before, parameters)


def _readings(domains: list[dict[str, Any]], duration_s: float, every_s: float) -> dict[str, Any]:
    """Call what reads each domain until the time is over, and at least twice."""
    reads: list[Callable[[], float]] = [domain.pop("read") for domain in domains]
    samples: list[list[tuple[float, float]]] = [[] for _ in domains]
    end_s = time.monotonic() + duration_s
    last = False
    while True:
        begin_s = time.monotonic()
        last = begin_s >= end_s
        for row, read in zip(samples, reads):  # noqa: B905 - a node's Python is older; one for each
            before_s = time.time()
            try:
                value = read()
            except (OSError, ValueError, RuntimeError, subprocess.SubprocessError) as error:
                return {"missing": str(error)[-300:]}  # its end names the cause
            row.append(((before_s + time.time()) / 2, value))
        if last:
            break
        time.sleep(max(0.0, min(begin_s + every_s, end_s) - time.monotonic()))
    # a node's Python may not know `strict`
    return {"domains": [dict(domain, samples=row) for domain, row in zip(domains, samples)]}  # noqa: B905


def _zones(folder: Path) -> list[dict[str, Any]]:
    """List the energy counters of a powercap class, parents first."""
    found: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for zone in sorted(folder.glob(_ZONES), key=lambda path: path.name):
        file = zone / "energy_uj"
        try:
            with (zone / "name").open(encoding="ascii", errors="replace") as opened:
                name = opened.read(_LONGEST_NAME).strip()
            range_j = _joules(zone / "max_energy_range_uj")
            _joules(file)
        except PermissionError:
            raise
        except (OSError, ValueError):
            continue  # a zone without a counter
        names[zone.name] = name
        parent = names.get(zone.name.rpartition(":")[0])
        found.append(
            {
                "domain": f"{parent}/{name}" if parent else name,
                "counts": name.startswith("package") or name == "dram",
                "quantity": "energy",
                "resolution": range_j / 2**_COUNTER_BITS,
                "interval_s": _UPDATED_S,
                "wraps_at_j": range_j,
                "read": lambda file=file: _joules(file),
            }
        )
    return found


def _joules(file: Path) -> float:
    """Read a number of microjoules, which has at most 20 digits."""
    with file.open(encoding="ascii") as opened:
        text = opened.read(_LONGEST_NUMBER + 1)
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"{file} has more than {_LONGEST_NUMBER} characters")
    return int(text) * 1e-6


def _of_bmc(command: list[str], more: dict[str, str], interval_s: float) -> dict[str, Any]:
    def read() -> float:
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaint:
            try:
                process = subprocess.Popen(
                    command, env={**os.environ, **more}, stdin=subprocess.DEVNULL, stdout=printed, stderr=complaint
                )
            except FileNotFoundError:
                raise RuntimeError(f"{command[0]} is not installed") from None
            with process:
                try:
                    with contextlib.suppress(ProcessLookupError):  # it has ended already
                        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (_MAX_PRINTED, _MAX_PRINTED))
                    process.wait(_IPMI_WITHIN_S)
                except subprocess.TimeoutExpired:
                    raise RuntimeError(f"{command[0]} did not end within {_IPMI_WITHIN_S:.0f} s") from None
                finally:
                    process.kill()
            return watts_of(_text(printed), _text(complaint))

    return {
        "domain": "system",
        "counts": True,
        "quantity": "power",
        "resolution": 1.0,
        "interval_s": interval_s,
        "wraps_at_j": None,
        "read": read,
    }


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MAX_PRINTED).decode(errors="replace")


def watts_of(printed: str, complaint: str = "") -> float:
    """Read what `ipmitool dcmi power reading` prints.

    Raises:
        RuntimeError: It has no power, or the BMC does not measure.
    """
    power, state = _POWER.search(printed), _STATE.search(printed)
    if power is None:
        output = " ".join((complaint or printed).split())[-200:].strip() or "nothing"
        raise RuntimeError(f"ipmitool dcmi power reading gave no power: {output}")
    if state is not None and state.group(1) != "activated":
        raise RuntimeError(f"the BMC does not measure power: power reading state is {state.group(1)}")
    return float(power.group(1))
