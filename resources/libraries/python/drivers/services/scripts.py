"""User scripts: the programs that they need, their environment, execution inside an instance, output."""

import json
import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from resources.libraries.python.drivers.host.cgroups.cgroup_exec import entering
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.programs.program_output import tail_of
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported, without_middle
from resources.libraries.python.testbed.roles.service import LoadReport

_MAX_SAID_BYTES = 4_000_000
"""Of a script's output, from its end: facts, indicators of up to a day's seconds, and the answer in the last line."""
_TAIL_BYTES = 4000
_TAIL_LINES = 6
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ")
"""Of this process's environment. Scripts are other people's: no variable with a secret reaches them."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
_LONGEST_FACT = 200
_INDICATOR = "indicator"
_SECONDS = "seconds"
_MAX_FIGURES = 20
_FIGURE = re.compile(r"[A-Za-z][\w-]{0,31}")
"""Names of figures become columns of tables; other numbers of an object are not recorded."""
_PAUSE_S = 0.01
_MAX_SECONDS = 100_000
"""Maximum number of seconds of a load: a day has fewer."""


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a script: its variables, and a search path with programs of the system."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PATH": f"{kept.get('PATH', '/usr/local/bin:/usr/bin:/bin')}:{_SYSTEM_PATH}", **variables}


def run(
    what: str,
    script: Path,
    *,
    namespace: str,
    doors: Sequence[Path],
    variables: Mapping[str, str],
    folder: Path,
    within_s: float,
) -> str:
    """Run a script to its end, inside a network namespace and control groups.

    What it writes on standard output and error goes into files of `folder`. Programs that it leaves running are not
    waited for.

    `what`: For messages: `install script of edge-1`.
    `script`: Absolute path; an executable file.
    `doors`: Files by which the groups are entered.
    `folder`: Where it runs, private.

    Returns:
        What it wrote on standard output; of more than 4 MB, the end.

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
                env=environment(variables),
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
    if status is None:
        raise NotReady(what, within_s, _tail(out, err))
    if status != 0:
        raise CommandFailed((what, str(script)), status, _tail(out, err))
    return tail_of(out, _MAX_SAID_BYTES)


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
        lines += [line.strip() for line in tail_of(log, _TAIL_BYTES).splitlines() if line.strip()][-_TAIL_LINES:]
    return " | ".join(lines) or "nothing was written"


def facts(output: str) -> dict[str, str]:
    """Facts of an install script for the record: lines such as `fact proxy HAProxy 2.6.12`."""
    rows = (line.strip().split(maxsplit=2) for line in output.splitlines())
    return {row[1]: row[2][:_LONGEST_FACT] for row in rows if len(row) == 3 and row[0] == "fact"}


def answer(output: str, script: Path) -> LoadReport:
    """Report of a generator script: in its last line, as a word or as JSON.

    `indicator 347.2`, or an object such as `{"indicator": 347.2, "detected": 0.98, "seconds": [351, 343.4]}`, whose
    other numbers are figures. The values of each second may also be lines before it, `second 351`, in order.

    Raises:
        CsitError: There is no indicator, it is no number from 0 on, or a list of seconds has something else in it.
    """
    form = 'the last line has to be `indicator <number>` or {"indicator": <number>}'
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        raise CsitError(f"generator script {script} reported nothing; {form}")
    row = _row(lines[-1])
    indicator = _number(row.get(_INDICATOR))
    if indicator is None:
        raise CsitError(f"generator script {script} reported no indicator: '{without_middle(lines[-1], 200)}'; {form}")
    listed = row.get(_SECONDS)
    if listed is None:
        words = [line.split() for line in lines[:-1]]
        values = [_word(row[1]) for row in words if len(row) == 2 and row[0] == "second"]
        listed = [value for value in values if value is not None]  # a line of prose may begin with the word
    seconds = [_number(each) for each in listed] if isinstance(listed, list) else [None]
    known = tuple(each for each in seconds if each is not None)
    if len(known) < len(seconds) or len(known) > _MAX_SECONDS:
        raise CsitError(
            f'generator script {script}: "seconds" has to be a list of at most {_MAX_SECONDS} numbers from 0 on'
        )
    figures = {
        name: value
        for name, each in row.items()
        if name != _INDICATOR and _FIGURE.fullmatch(name) and (value := _finite(each)) is not None
    }
    return LoadReport(indicator, dict(list(figures.items())[:_MAX_FIGURES]), known)


def _row(line: str) -> Mapping[str, object]:
    """Values of a last line, by name; empty where it has none."""
    try:
        if line.startswith("{"):
            row = json.loads(line)
            return row if isinstance(row, dict) else {}
        word, number = line.split()
    except (ValueError, RecursionError):
        return {}
    return {word: _word(number)}


def _word(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _finite(value: object) -> float | None:
    """A finite number; None for anything else, in JSON also for a number in quotes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _number(value: object) -> float | None:
    """A finite number from 0 on; None for anything else."""
    found = _finite(value)
    return found if found is not None and found >= 0 else None


def of_all(addresses: Mapping[str, str]) -> dict[str, str]:
    """Addresses of all components, by variable.

    `addresses`: By instance, `<component>-<number>`, in order.
    """
    rows: dict[str, list[str]] = {}
    for name, address in addresses.items():
        rows.setdefault(name.rpartition("-")[0].upper().replace("-", "_"), []).append(address)
    return {f"CSIT_ADDRESSES_{component}": " ".join(row) for component, row in rows.items()}


def check_programs(whose: str, needed: Sequence[str]) -> None:
    """See whether they are installed, by the search path that scripts get.

    `whose`: For messages: `the service`.
    `needed`: Names or absolute paths of programs.

    Raises:
        Unsupported: Some are not there.
    """
    path = environment({})["PATH"]
    absent = [name for name in needed if shutil.which(name, path=path) is None]
    if absent:
        raise Unsupported(f"{', '.join(absent)} missing, which the scripts of {whose} need; searched in {path}")
