"""Fingerprint of the machine: the first thing to compare when two results differ."""

import os
import platform
import struct
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from resources.libraries.python.model.result import Environment
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.version import program_version

_PACKAGES = ("robotframework", "MLRsearch", "pyroute2", "pydantic", "numpy", "hdrhistogram")

SMT_CONTROL = "/sys/devices/system/cpu/smt/control"
_SETTINGS = (
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/net/core/netdev_budget",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    SMT_CONTROL,
)
"""Read where they exist."""
_IDLE = Path("/dev/cpu_dma_latency")
"""Wake-up latency bound of idle CPUs in microseconds, over all requests to the kernel; 0: the CPU polls."""


def fingerprint() -> Environment:
    """Return the fingerprint of this machine. Unknown facts are None."""
    cpu = _cpu_info()
    return Environment(
        hostname=platform.node(),
        cpu_model=cpu.get("model name", platform.processor() or "unknown"),
        microcode=cpu.get("microcode"),
        cpus_online=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.release()} {platform.version()}",
        command_line=_text(Path("/proc/cmdline")),
        distribution=_distribution(),
        virtualization="hypervisor" if "hypervisor" in cpu.get("flags", "").split() else None,
        python=platform.python_version(),
        versions={name: version for name in _PACKAGES if (version := _version(name))},
        settings=_settings(),
        program_version=program_version(),
        git_revision=_git("rev-parse", "HEAD"),
        git_dirty=None if (changes := _git("status", "--porcelain")) is None else bool(changes),
    )


def boot_id() -> str | None:
    """Return the boot id, which differs after each start of the kernel."""
    return _text(Path("/proc/sys/kernel/random/boot_id"))


def _settings() -> dict[str, str]:
    found = {path: text for path in _SETTINGS if (text := _text(Path(path)))}
    with suppress(OSError, struct.error):  # not every kernel has it, and only root may read it
        found[str(_IDLE)] = str(*struct.unpack("i", _IDLE.read_bytes()[:4]))
    return found


def _version(package: str) -> str | None:
    """Installed version of a package; None where it is missing: a node of a lab has only what it needs."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _cpu_info() -> dict[str, str]:
    """The first processor of /proc/cpuinfo."""
    first = (_text(Path("/proc/cpuinfo")) or "").split("\n\n")[0]
    rows = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in rows}


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _git(*arguments: str) -> str | None:
    """Output of git in the project; None where there is no git or no checkout."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(PROJECT), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
