"""Requirements of drivers on this machine: programs with their versions, features of the kernel. Sent to nodes."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

_WITHIN_S = 5.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""A shell without a terminal may lack half of these."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for programs and features.

    `arguments`: `programs`, a regular expression for the version of each program, by path or name; `kernel`,
      configuration option and module (or "") of each feature, by label; `root`, another tree for tests.
    """
    kernel = _Kernel(Path(arguments.get("root", "/")))
    return {
        "programs": {name: _program(name, version) for name, version in arguments.get("programs", {}).items()},
        "kernel": {label: kernel.has(*each) for label, each in arguments.get("kernel", {}).items()},
    }


class _Kernel:
    """The running kernel: its configuration and modules, as far as they can be read."""

    def __init__(self, root: Path) -> None:
        self._loaded = root / "sys/module"
        release = (_text(root / "proc/sys/kernel/osrelease") or "unknown").strip()
        modules = root / "lib/modules" / release
        places = (root / "proc/config.gz", root / f"boot/config-{release}", modules / "config")
        self._config = next((text for text in map(_text, places) if text is not None), None)
        listings = [_text(modules / name) for name in ("modules.builtin", "modules.dep")]
        self._listed = None if listings[1] is None else "".join(text or "" for text in listings)

    def has(self, config: str, module: str) -> bool | None:
        """Whether it has a feature; None where that cannot be seen."""
        if module and (self._loaded / module).is_dir():
            return True
        match = re.search(rf"^CONFIG_{config}=([ym])$", self._config or "", re.MULTILINE)
        if match and match.group(1) == "y":
            return True
        if module and self._listed is not None:
            name = re.sub("[-_]", "[-_]", module)
            return re.search(rf"/{name}\.ko", self._listed) is not None
        return None if self._config is None else match is not None


def _text(path: Path) -> str | None:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")
    except OSError:
        return None


def _program(name: str, version: str) -> dict[str, Any]:
    """Version of a program by `--version`; `problem` where it does not run."""
    path = shutil.which(name, path=_PATH)
    found: dict[str, Any] = {"there": path is not None, "version": None, "problem": None}
    if path is not None:
        output, found["problem"] = _output_of([path, "--version"])
        match = re.search(version, (output.splitlines() or [""])[0])
        found["version"] = match.group(1) if match else None
    return found


def _output_of(argv: list[str]) -> tuple[str, str | None]:
    environment = {"PATH": _PATH, "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return "", f"does not answer within {_WITHIN_S:.0f} s"
    except OSError as error:
        return "", error.strerror
    text = done.stdout.decode(errors="replace").strip()
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing on stderr"])[-1]
        return text, f"ended with {done.returncode}: {last}"
    return text, None
