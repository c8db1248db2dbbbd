"""Run an installed program to its end, for what it prints."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from resources.libraries.python.errors import CommandFailed, CsitError, NotReady

_MOST_PRINTED = 2000
"""Characters in an error: what a program prints last says why it failed, and a link passes on only so much."""


def completed(
    argv: Sequence[str],
    within_s: float,
    *,
    stdin: str | bytes = "",
    check: bool = True,
    what: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end.

    Args:
        argv: The program with its arguments.
        within_s: Deadline in seconds; it is killed then.
        stdin: Its input, which no error shows.
        check: Whether another status than 0 is an error.
        what: For the error of the deadline; empty for the arguments.
        folder: Where it runs; None for where this process runs.
        environment: All of its variables; None for those of this process.

    Raises:
        CommandFailed: It failed, and `check` is set; has the end of what it printed to stderr.
        NotReady: It did not end.
        CsitError: It cannot be run.
    """
    fed = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        done = subprocess.run(
            argv, input=fed, capture_output=True, timeout=within_s, check=False, cwd=folder, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise NotReady(what or " ".join(argv), within_s, "still running") from error
    except OSError as error:
        raise CsitError(f"{argv[0]} cannot be run: {error.strerror}") from error
    stdout, stderr = (printed.decode(errors="replace") for printed in (done.stdout, done.stderr))
    if check and done.returncode:
        raise CommandFailed(argv, done.returncode, stderr[-_MOST_PRINTED:])
    return subprocess.CompletedProcess(argv, done.returncode, stdout, stderr)
