"""Programs of this machine."""

import os
import shutil

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where many are that change or watch a network; a shell that nobody sits at may not look there."""


def path_of(program: str) -> str | None:
    """Where a program is; None where it is not installed."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_FOLDERS}")
