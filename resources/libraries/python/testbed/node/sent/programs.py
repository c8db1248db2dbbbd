"""Programs that a run may need on this machine: which are there, which versions, which answer. Sent to nodes."""

from __future__ import annotations

import errno
import fcntl
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

_KVM_GET_API_VERSION = 0xAE00
_WITHIN_S = 5.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Of a shell that nobody sits at may lack the half."""


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for programs.

    Args:
        arguments: `trex`, where TRex is installed, None where it is not used; `drivers`, a regular expression for the
            version of each program that drivers need, by its path or name.
    """
    trex = arguments.get("trex")
    return {
        "kvm": _kvm(Path(arguments.get("kvm", "/dev/kvm"))),
        "docker": _docker(arguments.get("docker", "/var/run/docker.sock")),
        "podman": _podman(),
        "runc": _program("runc", r"version (\S+)"),
        "trex": _trex(Path(trex)) if trex else None,
        "drivers": {name: _program(name, version) for name, version in arguments.get("drivers", {}).items()},
    }


def _kvm(device: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"there": device.exists(), "usable": False, "problem": None, "paravirtual": False}
    found["paravirtual"] = Path("/sys/module/kvm_pvm").is_dir()
    if not found["there"]:
        return found
    try:
        descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        found["problem"] = error.strerror
        return found
    try:
        found["usable"] = fcntl.ioctl(descriptor, _KVM_GET_API_VERSION) > 0
    except OSError as error:
        found["problem"] = error.strerror
    finally:
        os.close(descriptor)
    return found


class _OverSocket(http.client.HTTPConnection):
    """HTTP over a socket of the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_WITHIN_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_WITHIN_S)
        self.sock.connect(self._path)


def _docker(path: str) -> dict[str, Any]:
    """Docker is asked through its own interface. `there` is the program, `version` that of the engine that answers."""
    found: dict[str, Any] = {"there": shutil.which("docker", path=_PATH) is not None, "version": None, "problem": None}
    connection = _OverSocket(path)
    try:
        connection.request("GET", "/version")
        found["version"] = json.loads(connection.getresponse().read())["Version"]
    except OSError as error:
        text = "no engine runs" if error.errno in (errno.ENOENT, errno.ECONNREFUSED) else error.strerror or str(error)
        found["problem"] = f"{path}: {text}"
    except (http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        found["problem"] = f"{path}: {error!r}"
    finally:
        connection.close()
    return found


def _podman() -> dict[str, Any]:
    """Podman has no engine that runs; it says its version as JSON."""
    found: dict[str, Any] = {"there": shutil.which("podman", path=_PATH) is not None, "version": None, "problem": None}
    if found["there"]:
        said, found["problem"] = _said(["podman", "version", "--format", "json"])
        try:
            found["version"] = json.loads(said)["Client"]["Version"]
        except (ValueError, KeyError, TypeError):
            found["problem"] = found["problem"] or "it does not say its version"
    return found


def _trex(directory: Path) -> dict[str, Any]:
    client = directory / "automation/trex_control_plane/interactive/trex"
    found: dict[str, Any] = {
        "directory": str(directory),
        "there": os.access(directory / "t-rex-64", os.X_OK),
        "client": (client / "stl").is_dir(),
        "version": None,
        "problem": None,
    }
    # A release has its version in a file, and in its folder's name.
    for text in (_text(directory / "VERSION"), directory.resolve().name):
        match = re.search(r"v?\d+\.\d+", text or "")
        if found["there"] and match:
            found["version"] = match.group(0)
            break
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _program(name: str, version: str) -> dict[str, Any]:
    """A program that says its version when it is asked; `problem` where it does not run."""
    path = shutil.which(name, path=_PATH)
    found: dict[str, Any] = {"there": path is not None, "version": None, "problem": None}
    if path is not None:
        said, found["problem"] = _said([path, "--version"])
        match = re.search(version, (said.splitlines() or [""])[0])
        found["version"] = match.group(1) if match else None
    return found


def _said(argv: list[str]) -> tuple[str, str | None]:
    """What a program prints, and why it could not."""
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
