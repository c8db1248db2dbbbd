"""The Python that the client runs on."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator

_ASK = (
    "import sys, importlib.util as u;"
    "sys.exit(0 if sys.version_info[:2] >= (3, 6) and (u.find_spec('cgi') or sys.version_info[:2] < (3, 13)) else 1)"
)
"""The library's copy of scapy needs the module `cgi`, which Python 3.13 has no more; the package legacy-cgi is that."""
_NAMES = ("python3", "python3.12", "python3.11", "python3.10", "python3.9", "python3.8", "python3.6")
_WITHIN_S = 10.0


def interpreter(asked: str) -> str | None:
    """A Python that can run TRex's library; None where there is none.

    Args:
        asked: `auto` for this process's own, or else the first of the system's that can; or a path, which is tried.
    """
    return next((path for path in _candidates(asked) if _can(path)), None)


def _candidates(asked: str) -> Iterator[str]:
    if asked != "auto":
        yield asked
        return
    yield sys.executable
    yield from filter(None, map(shutil.which, _NAMES))


def _can(path: str) -> bool:
    if path == sys.executable:
        return sys.version_info < (3, 13) or importlib.util.find_spec("cgi") is not None
    try:
        return (
            subprocess.run([path, "-I", "-c", _ASK], check=False, timeout=_WITHIN_S, capture_output=True).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
