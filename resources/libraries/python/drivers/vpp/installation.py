"""Where VPP is installed on this machine, and what is missing."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.preflight import PreflightProblem

_PLUGINS = "vpp_plugins"
_LIBRARIES = ("lib/*", "lib", "lib64")


def program(prefix: Path) -> Path:
    """The program of an installation."""
    return prefix / "bin" / "vpp"


def plugin_folder(prefix: Path) -> Path | None:
    """Where its plugins are; None where there are none. Debian's packages have a folder for each architecture."""
    found = (path for pattern in _LIBRARIES for path in sorted(prefix.glob(f"{pattern}/{_PLUGINS}")))
    return next((path for path in found if path.is_dir()), None)


def plugins(prefix: Path) -> frozenset[str]:
    """Names of the plugins of an installation, such as `memif`."""
    folder = plugin_folder(prefix)
    ending = "_plugin.so"
    return frozenset(path.name.removesuffix(ending) for path in folder.glob(f"*{ending}")) if folder else frozenset()


def missing(prefix: Path, plugins: Iterable[str]) -> Iterator[PreflightProblem]:
    """What this machine lacks for VPP.

    Args:
        prefix: Where it is to be installed.
        plugins: Names of those that are needed, such as `memif`.
    """
    where = "nodes.<DUT>.vpp.prefix"
    if not os.access(program(prefix), os.X_OK):
        yield PreflightProblem(
            f"VPP is not at {where}: there is no program {program(prefix)}",
            f"install it (packages vpp and vpp-plugin-core of packagecloud.io/fdio), or set {where} to the folder that "
            "has bin/vpp",
        )
        return
    folder = plugin_folder(prefix)
    lacking = [name for name in plugins if folder is None or not (folder / f"{name}_plugin.so").exists()]
    if lacking:
        yield PreflightProblem(
            f"VPP at {prefix} lacks the plugin{'s' * (len(lacking) > 1)} {', '.join(lacking)}",
            "install the package vpp-plugin-core, or build VPP with them",
        )
