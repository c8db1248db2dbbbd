"""Removes by the record of the machine's lock what a killed run has left: here, or on a node that has a runtime."""

import json
import time
from pathlib import PurePosixPath

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.testbed.node.node_query import MARK, read_answer
from resources.libraries.python.testbed.roles.connection import Connection

_WITHIN_S = 180.0
_PROGRAM = """\
import json, sys
sys.path[:0] = json.loads({paths})
from resources.libraries.python.testbed.node.cleanup import said_here
sys.stdout.write({mark!r} + json.dumps(said_here({wait_s})) + "\\n")
"""


def tidy_here(wait_s: float = 0.0) -> list[str]:
    """Remove what a killed run left on this machine.

    Args:
        wait_s: How long to wait for a run that is ending.

    Returns:
        A sentence for each thing that was removed.

    Raises:
        InUse: A run is alive.
        CsitError: Something could not be removed.
    """
    end = time.monotonic() + wait_s
    while True:
        try:
            with MachineLock() as lock:
                return lock.remove_leftovers()
        except InUse:
            if time.monotonic() >= end:
                raise
            time.sleep(0.5)


def said_here(wait_s: float) -> dict[str, object]:
    """As `tidy_here`, for a caller on another machine."""
    try:
        return {"removed": tidy_here(wait_s)}
    except CsitError as error:
        return {"failed": str(error)}


def tidy_there(connection: Connection, python: str, runtime: PurePosixPath, wait_s: float = 0.0) -> list[str]:
    """Remove what a killed run left on a node.

    Args:
        connection: The way there.
        python: The node's Python.
        runtime: The folder of a runtime of this version there.
        wait_s: How long to wait for a run that is ending.

    Raises:
        CsitError: A run is alive there, or something could not be removed.
    """
    paths = ascii(json.dumps([str(runtime / "project"), str(runtime / "packages")]))
    text = _PROGRAM.format(paths=paths, mark=MARK, wait_s=wait_s)
    done = connection.run([python, "-I", "-"], stdin=text.encode(), within_s=_WITHIN_S + wait_s, root=True)
    answered = read_answer(connection, python, done)
    if "failed" in answered:
        raise CsitError(f"{connection.name}: {answered['failed']}")
    return list(answered["removed"])
