"""Debian packages as files: fetched with the system's own sources and keys, unpacked, never installed."""

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from resources.libraries.python.errors import CommandFailed, Unsupported

_KERNELS = ("linux-image-cloud-amd64", "linux-image-virtual")
"""Debian's kernel for virtual machines, Ubuntu's. Both only name the package of the newest version."""
_KERNEL_PART = re.compile(r"linux-(image|modules)-\d")
_FETCH_WITHIN_S = 300.0
_log = logging.getLogger(__name__)


def fetch(folder: Path) -> list[Path]:
    """Fetch the packages that a guest is made of: kernel, its modules, busybox.

    Args:
        folder: Where to put them.

    Raises:
        Unsupported: This system has no apt, or its sources have no kernel for virtual machines.
        CommandFailed: They cannot be fetched.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Unsupported("a guest's kernel and busybox come from Debian's packages, and there is no apt-get here")
    try:
        return _download(folder)
    except (CommandFailed, Unsupported) as error:
        if os.geteuid() != 0:
            raise
        _log.info("%s; reading apt's lists anew", error)
        _run(("apt-get", "-q", "-o", "Acquire::Retries=3", "update"))
        return _download(folder)


def _download(folder: Path) -> list[Path]:
    kernel = next((name for name in _KERNELS if depends(_shown(name))), None)
    if kernel is None:
        raise Unsupported(f"apt knows none of {', '.join(_KERNELS)}; `apt-get update`, on amd64")
    names = sorted({"busybox-static", *_parts(kernel)})
    _log.info("fetching %s", ", ".join(names))
    # _apt, the user as which apt fetches, cannot write to a folder of root's; so no other user is taken.
    _run(("apt-get", "-q", "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root", "download", *names), folder)
    return sorted(folder.glob("*.deb"))


def _parts(name: str) -> set[str]:
    """Packages of a kernel's image and modules, by way of those that only name others."""
    found: set[str] = set()
    left = [name]
    while left:
        new = [each for each in depends(_shown(left.pop())) if _KERNEL_PART.match(each) and each not in found]
        found.update(new)
        left += new
    return found


def depends(description: str) -> list[str]:
    """Names of the packages that a package's description (of `apt-cache show`) says it needs."""
    rows = [line for line in description.splitlines() if line.startswith(("Depends:", "Pre-Depends:"))]
    words = [word for row in rows for word in row.partition(":")[2].split(",")]
    return [word.split("|")[0].split("(")[0].strip() for word in words]


def _shown(name: str) -> str:
    """A package's description; empty when apt does not know it."""
    done = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", name], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout


def unpack(packages: Iterable[Path], folder: Path) -> dict[str, str]:
    """Unpack packages into a folder; return their versions by name.

    Raises:
        CommandFailed: One cannot be unpacked.
    """
    versions = {}
    for package in packages:
        _run(("dpkg-deb", "--extract", str(package), str(folder)))
        name, version = _run(("dpkg-deb", "--show", "--showformat=${Package} ${Version}", str(package))).split()
        versions[name] = version
    return versions


def _run(argv: Sequence[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, check=False, timeout=_FETCH_WITHIN_S,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(argv, 124, f"not done after {_FETCH_WITHIN_S:g} s") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)
    return done.stdout
