"""Containers on a machine's record, and their end."""

import os
import subprocess
from collections.abc import Iterable, Sequence

from resources.libraries.python.drivers.container import engine as engines
from resources.libraries.python.drivers.container.engine import Engine
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.base import Frozen

_WITHIN_S = 120.0


class Contained(Frozen):
    """A container of a run."""

    engine: Engine
    name: str

    def __str__(self) -> str:
        return f"{self.engine.name} container {self.name}"


def call(engine: Engine, argv: Sequence[str], *, within_s: float = _WITHIN_S, fed: bytes | None = None) -> str:
    """Run a command of an engine; what it printed.

    Args:
        engine: Whose it is.
        argv: The command.
        within_s: Deadline in seconds.
        fed: What it reads from standard input; None for nothing.

    Raises:
        CommandFailed: It failed; has the end of what it said.
        NotReady: It did not end in time.
        CsitError: It cannot be run.
    """
    environment = {**os.environ, **engine.environment}
    try:
        done = subprocess.run(
            argv, input=fed or b"", capture_output=True, timeout=within_s, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise NotReady(" ".join(argv), within_s, "still running") from error
    except OSError as error:
        raise CsitError(f"{argv[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or "nothing on stderr"
        raise CommandFailed(argv, done.returncode, said[-600:])
    return done.stdout.decode(errors="replace")


def remove(containers: Iterable[Contained]) -> list[str]:
    """Remove those that are there and have our label; a sentence for each.

    Raises:
        CsitError: An engine does not remove one.
    """
    removed = []
    for each in containers:
        if found := call(each.engine, engines.ours(each.engine, each.name)).split():
            call(each.engine, engines.remove(each.engine, found))
            removed.append(f"removed {each}")
    return removed
