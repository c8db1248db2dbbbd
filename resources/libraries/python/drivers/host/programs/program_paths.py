"""Installed programs."""

import os
import shutil

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Folders of network administration programs, which the PATH of a non-interactive shell may lack."""


def path_of(program: str) -> str | None:
    """Return the path of a program; None if it is not installed."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_FOLDERS}")
