"""Installed programs: their paths, and what they print when run to their end."""

import os
import re
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.bounds import LARGEST_OUTPUT_BYTES

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Folders of network administration programs, which the PATH of a non-interactive shell may lack."""
_MAX_PRINTED = 2000
"""Characters in an error: what a program prints last says why it failed, and a link passes on only so much."""
_BLOCK_BYTES = 65536
_VERSION_S = 15.0
_LOOK_S = 0.2


def path_of(program: str) -> str | None:
    """Return the path of a program; None if it is not installed."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_FOLDERS}")


def completed(
    argv: Sequence[str],
    within_s: float,
    *,
    stdin: str | bytes = "",
    check: bool = True,
    what: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    hopeless: Callable[[], str] = str,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end.

    `within_s`: Deadline in seconds; it is killed then.
    `stdin`: Its input, which no error shows.
    `check`: Whether another status than 0 is an error.
    `what`: For the error of the deadline; empty for the arguments.
    `folder`: Where it runs; None for where this process runs.
    `environment`: All of its variables; None for those of this process.
    `hopeless`: Why it is not worth waiting any longer; empty while it is. Asked now and then.

    Raises:
        CommandFailed: It failed, and `check` is set; has the end of what it printed to stderr.
        NotReady: It did not end.
        CsitError: It cannot be run, or printed more than `LARGEST_OUTPUT_BYTES`, or is `hopeless`; it is killed then.
    """
    fed = stdin.encode() if isinstance(stdin, str) else stdin
    pipe = subprocess.PIPE
    deadline = time.monotonic() + within_s
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, env=environment)
    except OSError as error:
        raise CsitError(f"{argv[0]} cannot be run: {error.strerror}") from error
    with process:
        try:
            stdout, stderr = (
                printed.decode(errors="replace") for printed in _talked(process, fed, deadline, argv[0], hopeless)
            )
            process.wait(max(0.0, deadline - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            raise NotReady(what or " ".join(argv), within_s, "still running") from error
        finally:
            process.kill()
    if check and process.returncode:
        raise CommandFailed(argv, process.returncode, stderr[-_MAX_PRINTED:])
    return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)


def version_of(name: str, argument: str) -> str:
    """Return a program's name with its version.

    Raises:
        CsitError: It cannot be run.
    """
    done = completed([path_of(name) or name, argument], _VERSION_S, check=False, what=f"the version of {name}")
    pattern = rf"\b{re.escape(name)}:? (?:version )?(V?\d\S*\b)"
    found = re.search(pattern, done.stdout + done.stderr, re.IGNORECASE)
    return f"{name} {found[1]}" if found else name


def tail_of(log: Path, most_bytes: int) -> str:
    """End of what a program has written to a file so far; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most_bytes))
            return file.read(most_bytes).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _talked(
    process: "subprocess.Popen[bytes]", fed: bytes, deadline: float, what: str, hopeless: Callable[[], str]
) -> tuple[bytes, bytes]:
    """What a program prints until it closes both streams.

    Raises:
        TimeoutError: It does not in time.
        CsitError: It printed too much, or is `hopeless`.
    """
    stdin, *outputs = (cast(IO[bytes], stream) for stream in (process.stdin, process.stdout, process.stderr))
    left, printed = memoryview(fed), (bytearray(), bytearray())
    os.set_blocking(stdin.fileno(), False)
    with selectors.DefaultSelector() as streams:
        streams.register(stdin, selectors.EVENT_WRITE)
        for stream, kept in zip(outputs, printed, strict=True):
            streams.register(stream, selectors.EVENT_READ, kept)
        while streams.get_map():
            if (wait_s := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            ready = streams.select(min(wait_s, _LOOK_S))
            if not ready and (why := hopeless()):
                raise CsitError(why)
            for key, _ in ready:
                if key.data is None:
                    try:
                        left = left[os.write(key.fd, left[:_BLOCK_BYTES]) :]
                    except BrokenPipeError:
                        left = left[len(left) :]
                    if not left:
                        streams.unregister(stdin)
                        stdin.close()
                    continue
                block = os.read(key.fd, _BLOCK_BYTES)
                key.data.extend(block)
                if len(key.data) > LARGEST_OUTPUT_BYTES:
                    raise CsitError(f"{what} was ended: it wrote more than {LARGEST_OUTPUT_BYTES >> 20} MB")
                if not block:
                    streams.unregister(key.fileobj)
    return bytes(printed[0]), bytes(printed[1])
