"""Scripts of users: what they are told, how they run inside an instance, what they answer."""

import json
import math
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from resources.libraries.python.drivers.host import namespaces
from resources.libraries.python.drivers.host.entering import entering
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.roles.service import Answer

_TAIL_BYTES = 4000
_TAIL_LINES = 6
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ")
"""Of this process's environment. Scripts are other people's: no variable with a secret reaches them."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
_LONGEST_FACT = 200
_INDICATOR = "indicator"
_MOST_FIGURES = 20
_PAUSE_S = 0.01


def environment(told: Mapping[str, str]) -> dict[str, str]:
    """The environment of a script: what it is told, and a search path that has programs of the system."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PATH": f"{kept.get('PATH', '/usr/local/bin:/usr/bin:/bin')}:{_SYSTEM_PATH}", **told}


def run(
    what: str,
    script: Path,
    *,
    namespace: str,
    doors: Sequence[Path],
    told: Mapping[str, str],
    folder: Path,
    within_s: float,
) -> str:
    """Run a script to its end, inside a network namespace and control groups.

    What it writes on standard output and error goes into files of `folder`. Programs that it leaves running are not
    waited for.

    Args:
        what: For a person: `install script of edge-1`.
        script: Absolute path; an executable file.
        namespace: Name of the namespace.
        doors: Files by which the groups are entered.
        told: Variables of its environment.
        folder: Where it runs, private.
        within_s: Deadline in seconds.

    Returns:
        What it wrote on standard output.

    Raises:
        CommandFailed: It ended with another status than 0; the text has the end of what it wrote.
        NotReady: It did not end in time. It is killed; what it started is left to the caller.
    """
    argv = entering(doors, [str(script)])
    out, err = folder / f"{script.name}.out", folder / f"{script.name}.err"
    with out.open("wb") as output, err.open("wb") as errors:

        def begin() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment(told),
                cwd=folder,
                # Out of the terminal's group: an interrupt goes to the run, which then ends the instances.
                process_group=0,
            )

        # The child inherits the namespace of the thread that starts it.
        process = namespaces.run_inside(namespace, begin)
    try:
        status = _wait(process, within_s)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    said = out.read_text(encoding="utf-8", errors="replace")
    if status is None:
        raise NotReady(what, within_s, _tail(out, err))
    if status != 0:
        raise CommandFailed((what, str(script)), status, _tail(out, err))
    return said


def _wait(process: subprocess.Popen[bytes], within_s: float) -> int | None:
    """The status that a process ended with; None when it did not in time."""
    deadline = time.monotonic() + within_s
    # Looked at often: `Popen.wait` with a deadline looks every 50 ms in the end, which a short script feels.
    while (status := process.poll()) is None and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    return status


def _tail(*logs: Path) -> str:
    """The last lines of logs as one line."""
    lines: list[str] = []
    for log in logs:
        text = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
        lines += [line.strip() for line in text.splitlines() if line.strip()][-_TAIL_LINES:]
    return " | ".join(lines) or "nothing was written"


def facts(said: str) -> dict[str, str]:
    """What an install script found out for the record: lines such as `fact proxy HAProxy 2.6.12`."""
    rows = (line.strip().split(maxsplit=2) for line in said.splitlines())
    return {row[1]: row[2][:_LONGEST_FACT] for row in rows if len(row) == 3 and row[0] == "fact"}


def answer(said: str, script: Path) -> Answer:
    """What a generator script reported: in its last line, as a word or as JSON.

    `indicator 347.2`, or an object such as `{"indicator": 347.2, "detected": 0.98}`, whose other numbers are figures.

    Raises:
        CsitError: There is no indicator, or it is no number from 0 on.
    """
    form = 'the last line has to be `indicator <number>` or {"indicator": <number>}'
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if not lines:
        raise CsitError(f"generator script {script} reported nothing; {form}")
    numbers = _numbers(lines[-1])
    indicator = numbers.pop(_INDICATOR, None)
    if indicator is None or indicator < 0:
        raise CsitError(f"generator script {script} reported no indicator: '{lines[-1][:200]}'; {form}")
    return Answer(indicator, dict(list(numbers.items())[:_MOST_FIGURES]))


def _numbers(line: str) -> dict[str, float]:
    """All finite numbers of a line by their names."""
    try:
        if line.startswith("{"):
            rows = {name: float(value) for name, value in json.loads(line).items() if type(value) in {int, float}}
        else:
            word, number = line.split()
            rows = {word: float(number)}
    except (ValueError, OverflowError):
        return {}
    return {name: value for name, value in rows.items() if math.isfinite(value)}
