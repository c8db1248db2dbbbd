"""VPP on this machine: where it is installed, what is missing, and what the VPPs of a plan share."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.drivers.host.cpu.memory import discover_memory
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.sockets.socket_paths import folder_of
from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, IdleBehaviour, choose_pages, waiting
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import Plan

_PLUGINS = "vpp_plugins"
_ENGINES = "vpp_crypto_engines"
_ENGINE_PLUGINS = {"crypto_native", "crypto_openssl", "crypto_ipsecmb"}
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


def crypto_engines(prefix: Path) -> frozenset[str]:
    """Crypto engines of an installation: plugins such as `crypto_native`, or libraries that VPP loads itself.

    VPP 24.10 and earlier have plugins, which are loaded by name.
    """
    ending = "_crypto_engine.so"
    found = (path.name for pattern in _LIBRARIES for path in prefix.glob(f"{pattern}/{_ENGINES}/*{ending}"))
    libraries = (f"crypto_{name.removesuffix(ending)}" for name in found)
    return frozenset({*libraries, *(name for name in plugins(prefix) if name in _ENGINE_PLUGINS)})


def missing(prefix: Path, plugins: Iterable[str]) -> Iterator[PreflightProblem]:
    """Requirements of VPP that this machine lacks.

    `plugins`: names of those that are needed, such as `memif`.
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


@dataclass(frozen=True, slots=True)
class Site:
    """A plan, a machine, and how VPP is run there."""

    plan: Plan
    fabric: Fabric
    machine: MachineLock
    settings: Vpp
    largest_frame_bytes: int

    @property
    def folder(self) -> Path:
        """Has a folder for each VPP, and the sockets where two of them meet."""
        return folder_of(self.machine)

    @property
    def prefix(self) -> Path:
        """Where VPP is installed."""
        return Path(self.settings.prefix)

    def pages(self, instances: int) -> HugePageChoice:
        """Which pages some VPPs get, by what is free now."""
        node = self.plan.cores.numa_node
        here = [each for each in discover_memory() if each.node == node]
        free_2mb, free_1gb = sum(each.hugepages_2mb for each in here), sum(each.hugepages_1gb for each in here)
        return choose_pages(self.settings, instances, free_2mb, free_1gb)

    def waiting(self, owner: str) -> IdleBehaviour:
        """Behaviour of an owner's threads without packets."""
        return waiting(self.settings, oversubscribed=self.plan.cores.takes_turns(owner))


def remove_folder(folder: Path, owner: str) -> None:
    """Remove the folder of an owner, and the common one with the last."""
    shutil.rmtree(folder / owner, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()
