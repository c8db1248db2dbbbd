"""Container engines of this machine. Sent to nodes."""

from __future__ import annotations

import errno
import http.client
import json
import os
import shutil
import socket
import subprocess
from typing import Any

_WITHIN_S = 5.0
_MAX_BYTES = 1 << 20
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for Docker, Podman and Podman's runtime runc.

    `arguments`: `docker`, the socket of its engine, for tests.
    """
    return {
        "docker": _docker(arguments.get("docker", "/var/run/docker.sock")),
        "podman": _podman(),
        "runc": _installed("runc"),
    }


def _installed(program: str) -> dict[str, Any]:
    return {"there": shutil.which(program, path=_PATH) is not None, "version": None, "problem": None}


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
    """Docker is asked through its socket. `there` is the program, `version` that of the engine that answers."""
    found = _installed("docker")
    connection = _OverSocket(path)
    try:
        connection.request("GET", "/version")
        found["version"] = json.loads(connection.getresponse().read(_MAX_BYTES))["Version"]
    except OSError as error:
        text = "no engine runs" if error.errno in (errno.ENOENT, errno.ECONNREFUSED) else error.strerror or str(error)
        found["problem"] = f"{path}: {text}"
    except (http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        found["problem"] = f"{path}: {error!r}"
    finally:
        connection.close()
    return found


def _podman() -> dict[str, Any]:
    """Podman has no daemon; it prints its version as JSON."""
    found = _installed("podman")
    if not found["there"]:
        return found
    argv = ["podman", "version", "--format", "json"]
    environment = {"PATH": _PATH, "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False, env=environment
        )
        found["version"] = json.loads(done.stdout)["Client"]["Version"]
    except subprocess.TimeoutExpired:
        found["problem"] = f"does not answer within {_WITHIN_S:.0f} s"
    except OSError as error:
        found["problem"] = error.strerror
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing on stderr"])[-1]
        found["problem"] = f"prints no version (status {done.returncode}): {last}"
    return found
