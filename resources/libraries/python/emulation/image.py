"""Boot image of emulated machines: a disk of Debian's packages with their kernel, and an initramfs; kept in a cache.

What agents import is on the disk too, as on a node of earlier runs: sending it takes an emulated machine a minute.

The disk is Debian 12 with its kernel 6.1, or another release that is asked for, whatever this machine runs. A cached
image is used for as long as it is there and was made by the present recipe; removing its folder brings the newest
packages.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from resources.libraries.python.drivers.functions.vm.archive import cpio, file, folder, secret
from resources.libraries.python.drivers.functions.vm.image import load_order, module_name, read_module
from resources.libraries.python.drivers.host.programs.image_cache import SHARED, alone, cache_folder, make, newest
from resources.libraries.python.drivers.host.programs.program_output import completed
from resources.libraries.python.emulation.machine import CONTROL_MAC, Boot
from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported
from resources.libraries.python.rendering import render
from resources.libraries.python.testbed.connection.command import Streams
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.packing import closure
from resources.libraries.python.testbed.connection.runtime import Runtimes

RELEASE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
OWN = "/etc/emulated"
"""Folder of what is not of Debian's packages: keys, host name, what a start does. Comes with the initramfs."""
_PACKAGES = (
    "linux-image-amd64", "kmod", "mount", "busybox-static", "openssh-server", "sudo", "python3", "procps",
    "iproute2", "iputils-ping", "nftables", "ethtool", "tcpdump", "pciutils", "numactl", "irqbalance",
    "dpdk", "dpdk-dev", "openvswitch-switch-dpdk", "wireguard-tools", "netsniff-ng", "xdp-tools",
)  # fmt: skip
_LEFT_OUT = (
    "/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/lintian/*", "/usr/include/*",
    "/usr/lib/x86_64-linux-gnu/*.a",
    # The machine boots from an initramfs of its own.
    "/etc/kernel/postinst.d/initramfs-tools",
    *(
        f"/lib/modules/*/kernel/{path}/*"
        for path in (
            "sound", "drivers/gpu", "drivers/media", "drivers/staging", "drivers/iio", "drivers/infiniband",
            "drivers/scsi", "drivers/usb", "drivers/input", "drivers/hid", "drivers/hwmon", "drivers/mmc",
            "drivers/mtd", "drivers/bluetooth", "drivers/isdn", "drivers/nfc", "drivers/net/wireless",
            "drivers/md", "drivers/ata", "drivers/comedi", "drivers/video", "drivers/platform",
        )
    ),
)  # fmt: skip
"""Files of packages that no emulated machine needs: half of all bytes."""
_ALTERNATIVES = {"ovs-vswitchd": "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"}
_DISK_MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")
"""Modules that the initramfs loads to mount the disk; ext4 asks for the last one by the name of its algorithm."""
_NETWORK_MODULES = ("virtio_net", "e1000e", "igb", "vmxnet3", "tun")
_DISK_MB = 3072
"""Size of the disk; what is empty takes no space."""
_FILE_SYSTEM = ("-q", "-J", "size=16", "-E", "lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0")
"""With a journal: without one, a reset left files with blocks of other files."""
_FREE_MB = 2500
"""Free space that making it takes."""
_WITHIN_S = 3600.0
_STEP = re.compile(r"^I: (.*)")
_STEPS = 10
"""Lines of progress that mmdebstrap prints, and two steps of our own."""

Progress = Callable[[int, int, str], None]
"""Is given how many steps are done, how many there are, and the present one."""


class MachineImage:
    """A complete image."""

    def __init__(self, place: Path) -> None:
        self.kernel = place / "vmlinuz"
        self.initramfs = place / "initramfs.cpio"
        self.disk = place / "disk.ext4"

    def boot(self, name: str, keys: dict[str, bytes], target: Path) -> Boot:
        """Write the initramfs of one machine, and return what it boots from.

        `keys`: Contents of `host_key` and `authorized_keys`.
        """
        values = {"own": OWN, "drivers": _NETWORK_MODULES, "control_mac": CONTROL_MAC}
        texts = {each: render(f"emulated/{each}.j2", values).encode() for each in ("inittab", "sshd_config", "boot.sh")}
        own = [folder("own"), file("own/hostname", f"{name.lower()}\n".encode())]
        own += [file(f"own/{each}", content, executable=each == "boot.sh") for each, content in texts.items()]
        own += [secret(f"own/{each}", content) for each, content in keys.items()]
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            # The kernel unpacks archives that follow one another.
            out.write(self.initramfs.read_bytes() + cpio(own))
        return Boot(self.kernel, target, self.disk)


def cached(release: str = RELEASE) -> MachineImage | None:
    """The newest image of the present recipe in the user's cache, or in root's; None when there is none."""
    for cache in (_cache(), SHARED / _FOLDER):
        for place in newest(cache, f"{release}-*-{recipe()}"):
            return MachineImage(place)
    return None


def image(mirror: str, progress: Progress, release: str = RELEASE) -> MachineImage:
    """The cached image, or a new one.

    Raises:
        Unsupported: It cannot be made on this system.
        CsitError: It could not be made.
    """
    if found := cached(release):
        return found
    cache = _cache()
    if missing := [name for name in ("mmdebstrap", "mkfs.ext4") if shutil.which(name, path=_path()) is None]:
        raise Unsupported(f"no {missing[0]} here; as root: resources/tools/packages.sh emulate")
    if os.geteuid() != 0:
        raise Unsupported("making the image of the machines takes root, once: run ./csit emulate build as root")
    try:
        with alone(cache):
            if (free_mb := shutil.disk_usage(cache).free // 2**20) < _FREE_MB:
                raise Unsupported(f"the image of the machines needs {_FREE_MB} MB in {cache}, and {free_mb} are free")
            return cached(release) or MachineImage(
                make(cache, lambda work, made: _build(work, made, mirror, release, progress))
            )
    except OSError as error:
        raise CsitError(f"the image of the machines cannot be kept in {cache}: {error}") from error


_FOLDER = "emulated"


def _cache() -> Path:
    """A folder of its own, so that making an image of minutes holds up no other."""
    return cache_folder() / _FOLDER


def _build(work: Path, made: Path, mirror: str, release: str, progress: Progress) -> str:
    root = work / "root"
    _install(root, mirror, release, progress)
    progress(_STEPS - 2, _STEPS, "adding the machines' own files")
    for name, program in _ALTERNATIVES.items():
        _run(("chroot", str(root), "update-alternatives", "--set", name, program))
    (kernel,) = root.glob("boot/vmlinuz-*")
    version = kernel.name.removeprefix("vmlinuz-")
    for key in root.glob("etc/ssh/ssh_host_*"):
        key.unlink()
    for name in ("init", "reboot", "poweroff", "halt"):
        (root / "sbin" / name).symlink_to("/bin/busybox")
    shutil.copyfile(kernel, made / "vmlinuz")
    (made / "initramfs.cpio").write_bytes(_initramfs(root, version))
    Runtimes().install_packages(_Root(root), "python3")
    progress(_STEPS - 1, _STEPS, "writing the disk")
    _run(("mkfs.ext4", *_FILE_SYSTEM, "-d", str(root), str(made / "disk.ext4"), f"{_DISK_MB}M"))
    return f"{release}-{version}-{recipe()}"


class _Root(LocalConnection):
    """The connection to a folder that is the root of another system."""

    def __init__(self, root: Path) -> None:
        super().__init__("the machines' image")
        self._root = root

    def _start(self, command: Sequence[str]) -> Streams:
        return super()._start(("unshare", "--mount", "sh", "-c", _INSIDE, str(self._root), *command))


_INSIDE = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
"""In a mount namespace of its own, which is gone with the command."""


def _install(root: Path, mirror: str, release: str, progress: Progress) -> None:
    # In namespaces of its own: whatever ends this process, also kill -9, ends all of it, and its mounts.
    argv = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    argv += ["mmdebstrap", "--mode=root", "--variant=apt", f"--include={','.join(_PACKAGES)}"]
    argv += ["--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Retries 3"]
    argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT]
    argv += [release, str(root), mirror]
    errors: deque[str] = deque(maxlen=8)
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        env={**os.environ, "LC_ALL": "C", "PATH": _path(), "TMPDIR": str(root.parent)}, cwd=root.parent,
    ) as process:  # fmt: skip
        done = 0
        for line in process.stderr or ():
            errors.append(line)
            if step := _STEP.match(line):
                progress(min(done, _STEPS - 3), _STEPS, step[1])
                done += 1
    if process.returncode:
        raise CommandFailed(argv, process.returncode, "".join(errors))


def _initramfs(root: Path, version: str) -> bytes:
    modules = root / "lib" / "modules" / version / "kernel"
    paths = {module_name(path): path for path in modules.rglob("*.ko*")}
    near = {name: read_module(path) for name, path in paths.items() if _may_be_needed(path.relative_to(modules))}
    order = load_order(_DISK_MODULES, near)
    entries = [
        *(folder(path) for path in ("bin", "dev", "modules", "proc", "sys", "root")),
        file("bin/busybox", (root / "bin" / "busybox").read_bytes(), executable=True),
        *(file(f"modules/{name}.ko", near[name]) for name in order),
        file("init", _init(order).encode(), executable=True),
    ]
    return cpio(entries)


def _may_be_needed(path: Path) -> bool:
    """A kernel has thousands of modules, and each is read as a whole to see what it needs."""
    return path.parts[:2] in {("drivers", "virtio"), ("drivers", "block"), ("fs", "ext4"), ("fs", "jbd2")} or (
        path.parts[0] in {"lib", "crypto"} or path.name.startswith("mbcache")
    )


def _init(modules: list[str]) -> str:
    return render("emulated/init.sh.j2", {"modules": modules, "own": OWN})


def recipe() -> str:
    """Changes with whatever goes into an image besides the versions of Debian's packages."""
    agents = [f"{name} {found.version}" for name, found in closure().items()]
    parts = (_PACKAGES, _LEFT_OUT, _ALTERNATIVES, _DISK_MODULES, _DISK_MB, _FILE_SYSTEM, _init([]), agents)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _run(argv: tuple[str, ...]) -> None:
    completed(argv, _WITHIN_S, environment={**os.environ, "LC_ALL": "C", "PATH": _path()})
