"""Brings to a node what an agent needs, each once for each version of it: sources, and packages for the node's Python.

It lies in a folder of root's, as the agent has root's rights and no other user may change what it runs. Nothing of the
controller's file system has to be there.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

from resources.libraries.python.dialogue import record_of
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.testbed.connection.command import python_failure
from resources.libraries.python.testbed.connection.machine import CompletedProgram, Connection
from resources.libraries.python.testbed.connection.packing import (
    MODULES,
    NATIVE_MODULES,
    NodePython,
    PackedFolder,
    Runtime,
    archive,
    pack,
    pack_packages,
)

FOLDER = PurePosixPath("/var/tmp/csit-density")  # noqa: S108 - checked to be root's own before anything in it is used
_KEPT = 3
"""Runtimes that stay on a node: controllers of different versions may take turns."""
_PROBE = Path(__file__).with_name("runtime_probe.py")
_UNPACK = Path(__file__).with_name("runtime_unpack.py")
_PROBE_S = 30.0
_INSTALL_S = 600.0
_COMPILED = 1.5
"""Compiled modules and the file system's own needs come on top of the files."""
_log = logging.getLogger(__name__)


class Runtimes:
    """Packed runtimes of one run; nodes with the same Python share one."""

    def __init__(self, folder: PurePosixPath = FOLDER) -> None:
        self._folder = folder
        self._packed: dict[NodePython, Runtime] = {}
        self._archives: dict[frozenset[str], bytes] = {}
        self._packing = Lock()

    def install(self, connection: Connection, python: str) -> tuple[Runtime, PurePosixPath]:
        """See to it that a node has its runtime.

        `python`: The node's Python, by name or path.

        Returns:
            The runtime, and the program on the node that starts an agent.

        Raises:
            Unsupported: There is no suitable Python, or no space; the text has the path and the bytes.
            ConnectionFailed: The node cannot be reached.
        """
        node, have = self._probe(connection, python)
        with self._packing:
            if node not in self._packed:
                try:
                    self._packed[node] = pack(node)
                except Unsupported as error:
                    raise Unsupported(f"{connection.name}: {error}") from error
            runtime = self._packed[node]
        wanted = {runtime.name: runtime.own, runtime.packages_name: runtime.packages}
        parts = {name: files for name, files in wanted.items() if name not in have}
        if runtime.name in parts and not self._unpack(connection, python, runtime, parts):
            self._unpack(connection, python, runtime, wanted)  # another controller has just removed the packages
        return runtime, self._folder / runtime.name / "start.py"

    def install_packages(self, connection: Connection, python: str) -> None:
        """Install the packages alone, so that the first run sends the sources only. Raises as `install` does."""
        node, have = self._probe(connection, python)
        packages = pack_packages(node)
        runtime = Runtime(PackedFolder("", {}), packages, "")
        if runtime.packages_name not in have:
            self._unpack(connection, python, runtime, {runtime.packages_name: packages})

    def _probe(self, connection: Connection, python: str) -> tuple[NodePython, list[str]]:
        try:
            done = _run(connection, python, _PROBE, [str(self._folder)])
        except CommandFailed as error:
            raise python_failure(connection.name, python, error) from error
        found = _answer(connection, done.stdout)
        if found["problem"]:
            raise Unsupported(f"{connection.name}: {self._folder} cannot be used: {found['problem']}")
        node = NodePython(tuple(found["version"]), found["machine"], found["soabi"], tuple(found["libc"]))
        return node, found["have"]

    def _unpack(self, connection: Connection, python: str, runtime: Runtime, parts: Mapping[str, PackedFolder]) -> bool:
        """Send and try these parts; False when the packages that the probe found have been removed since."""
        with self._packing:
            if (key := frozenset(parts)) not in self._archives:
                self._archives[key] = archive(parts)
            packed = self._archives[key]
        size = sum(files.size_bytes for files in parts.values())
        needed = int(size * _COMPILED)
        what = "sources and packages" if runtime.packages_name in parts else "sources"
        _log.info("%s: installing %d MB of %s", connection.name, size // 10**6, what)
        words = [
            str(self._folder),
            runtime.name,
            runtime.packages_name,
            str(needed),
            str(_KEPT),
            *_tried(runtime, parts),
        ]
        where = f"{connection.name}: {self._folder}"
        try:
            done = _run(connection, python, _UNPACK, words, packed)
        except CommandFailed as error:
            raise python_failure(connection.name, python, error) from error
        match _answer(connection, done.stdout):
            case {"problem": "packages"} if runtime.packages_name not in parts:
                return False
            case {"problem": "space", "free": free}:
                raise Unsupported(f"{where} needs {needed} bytes for what an agent runs on, {free} are free there")
            case {"problem": "trial", "said": said}:
                raise Unsupported(f"{where}: the packages of this machine do not work there: {said}")
            case {"problem": _, "said": said}:
                raise CsitError(f"{where}: what an agent runs on cannot be installed: {said}")
        return True


def _tried(runtime: Runtime, parts: Mapping[str, PackedFolder]) -> Sequence[str]:
    """Modules that a node imports before the runtime is renamed into place."""
    if runtime.name in parts and not runtime.packages.origins:
        return MODULES
    return NATIVE_MODULES if runtime.packages_name in parts else ()


def _run(
    connection: Connection, python: str, script: Path, words: Sequence[str], more: bytes = b""
) -> CompletedProgram:
    """Run one of the scripts beside this file: it goes ahead of its input."""
    text = script.read_bytes()
    argv = [python, "-I", "-c", f"import sys; exec(sys.stdin.buffer.read({len(text)}))", *words]
    return connection.run(argv, stdin=text + more, within_s=_INSTALL_S if more else _PROBE_S, root=True)


def _answer(connection: Connection, text: str) -> dict[str, Any]:
    """The last line: a shell's start-up files may have said something before."""
    try:
        answer = record_of(text.strip().splitlines()[-1])
    except (CsitError, IndexError) as error:
        raise CsitError(f"{connection.name}: its Python answered with {text[-200:]!r}") from error
    return answer
