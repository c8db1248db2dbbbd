"""Start, show and end an emulated testbed, whose machines run on in the background.

All of a testbed is in one folder: keys, consoles, sockets, its record. Each QEMU has that folder as its working
directory, and is found by it, also after a start that was killed: machines without a record, of which no process holds
the lock, are ended by `end_unfinished`. A machine's disk is a file without a name, which ends with its QEMU.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from resources.libraries.python.drivers.functions.vm.qemu import Monitor
from resources.libraries.python.drivers.functions.vm.taps import TapDevice, bring_up, close_taps, join, open_taps
from resources.libraries.python.drivers.host import kernel_files
from resources.libraries.python.drivers.host.links.namespace_syscalls import CLONE_NEWNET, aside, unshare
from resources.libraries.python.drivers.host.links.netlink import Netlink
from resources.libraries.python.drivers.host.ownership.processes import Process, process
from resources.libraries.python.drivers.host.programs.program_output import tail_of
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.emulation.image import MachineImage
from resources.libraries.python.emulation.layout import EmulatedLayout, access
from resources.libraries.python.emulation.machine import QEMU, Boot, EmulatedMachine, arguments
from resources.libraries.python.errors import CsitError, NotReady, Unsupported
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.whole_files import opened

TOPOLOGY = "topology.yaml"
_RECORD = "testbed.json"
_ENDS_WITHIN_S = 10.0
_ANSWERS_WITHIN_S = 30.0
_TRIES = 3
"""Times that a machine is started: another program may take its port first."""
_SETTLE_S = 0.5
_LISTENING = "Server listening on 0.0.0.0 port 22"
"""Console message of a machine's SSH server."""
_TAIL_BYTES = 1 << 20
_BANNER_S = 15.0
"""A machine that shares its host's CPUs with others may take so long to greet."""
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
"""Before a command: the kernel kills it when the thread that has started it ends."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class TestbedRecord(Frozen):
    """Parameters of a started testbed."""

    layout: EmulatedLayout
    ports: dict[str, int]
    """TCP ports on 127.0.0.1 that lead to the SSH servers."""


class State(Frozen):
    """A machine as it is now."""

    name: str
    port: int
    pid: int | None
    """PID of its QEMU; None where that has ended."""
    memory_mb: int | None
    """That QEMU takes now."""
    answers: bool
    """Its SSH server does."""


WaitCallback = Callable[[str, float, float], None]
"""Is given what is waited for, the seconds since, and those that it may take."""


def state_folder() -> Path:
    """Where testbeds are: below `XDG_STATE_HOME`, `/var/lib` for root, or `~/.local/state`."""
    if given := os.environ.get("XDG_STATE_HOME"):
        return Path(given) / "csit-density" / "emulated"
    shared = Path("/var/lib/csit-density/emulated")
    return shared if os.geteuid() == 0 else Path.home() / ".local" / "state" / "csit-density" / "emulated"


class EmulatedTestbed:
    """An emulated testbed, by its folder.

    `folder`: Of this testbed; made when it is started, removed when it is ended.
    """

    def __init__(self, folder: Path, *, ends_with_us: bool = False) -> None:
        self._ends_with_us = ends_with_us
        self.folder = folder.absolute()
        self.topology = self.folder / TOPOLOGY
        self._children: list[subprocess.Popen[bytes]] = []
        """Machines that this process has started: they are its children, and are reaped when they have ended."""

    @property
    def record(self) -> TestbedRecord | None:
        """Parameters of the start; None where nothing is running, or was started only in part."""
        try:
            return TestbedRecord.model_validate_json((self.folder / _RECORD).read_bytes())
        except (OSError, ValidationError):
            return None

    def up(self, layout: EmulatedLayout, image: MachineImage, within_s: float, report: WaitCallback) -> None:
        """Start all machines; return when their SSH servers answer. What is left of an earlier start is ended first.

        `within_s`: The deadline for the servers, in seconds.

        Raises:
            Unsupported: There is not enough memory, or no QEMU.
            NotReady: A server does not answer in time; the text has the end of the machine's console.
            CsitError: A machine ended, or the folder cannot be written.
        """
        check(layout)
        try:
            with self._alone():
                self._end()
                self.folder.mkdir(parents=True, mode=0o700)
                self._start(layout, image, within_s, report)
        except OSError as error:
            raise CsitError(f"{self.folder}: {error}") from error

    def down(self) -> bool:
        """End all machines and remove their folder. Returns whether there was anything."""
        try:
            with self._alone():
                return self._end()
        except OSError as error:
            raise CsitError(f"{self.folder}: {error}") from error

    def reset(self, name: str) -> None:
        """Reset a machine as its power button does: nothing in it is ended in order. It starts again by itself.

        Raises:
            CsitError: It does not run.
        """
        try:
            with kernel_files.opened(self.folder) as folder, socket.socket(socket.AF_UNIX) as near:
                near.settimeout(_ANSWERS_WITHIN_S)
                near.connect(f"/proc/self/fd/{folder}/{name}.qmp")  # a path of a socket has at most 107 characters
                Monitor(name, near).ask("system_reset")
        except (OSError, ValueError, CsitError) as error:
            raise CsitError(f"{name} of {self.folder}: QEMU does not reset it: {error}") from error

    def states(self) -> tuple[State, ...]:
        """All machines on record, as they are now."""
        record, running = self.record, self._running()
        if record is None:
            return ()
        return tuple(
            State(
                name=name,
                port=port,
                pid=running[name].pid if name in running else None,
                memory_mb=_resident_mb(running[name].pid) if name in running else None,
                answers=not _missing_banner(port),
            )
            for name, port in record.ports.items()
        )

    def _start(self, layout: EmulatedLayout, image: MachineImage, within_s: float, report: WaitCallback) -> None:
        authorized = _write_key(self.folder / "key")
        ports, hosts = {}, []
        cables = layout.taps()
        taps = open_cables(cables, layout.queues) if cables else {}
        held = {mac: taps[name, end].descriptors for name, ends in cables.items() for mac, end in ends.items()}
        try:
            for machine in layout.machines():
                host_key = self.folder / f"{machine.name}.host_key"
                public = _write_key(host_key)
                keys = {"host_key": host_key.read_bytes(), "authorized_keys": authorized.encode()}
                boot = image.boot(machine.name, keys, self.folder / f"{machine.name}.initramfs")
                ports[machine.name] = self._start_machine(machine, boot, layout, held)
                hosts.append(f"[127.0.0.1]:{ports[machine.name]} {public}")
            (self.folder / "known_hosts").write_text("".join(hosts), encoding="ascii")
            content = layout.topology({name: access(self.folder, port) for name, port in ports.items()})
            self.topology.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
            self._wait(ports, within_s, report)
            record = TestbedRecord(layout=layout, ports=ports)
            (self.folder / _RECORD).write_text(record.model_dump_json(indent=2), encoding="utf-8")
        except BaseException:
            self._end()
            raise
        finally:
            close_taps(taps.values())

    def _start_machine(
        self, machine: EmulatedMachine, boot: Boot, layout: EmulatedLayout, held: Mapping[str, tuple[int, ...]]
    ) -> int:
        """Start QEMU on a free port, and return that."""
        for _ in range(_TRIES):
            port = _free_port()
            taps = {nic.mac: held[nic.mac] for nic in machine.nics if nic.mac in held}
            argv = [
                *(_ENDS_WITH_US if self._ends_with_us else ()),
                *arguments(machine, boot, port, layout.accelerator, taps),
            ]
            passed = tuple(descriptor for row in taps.values() for descriptor in row)
            with (self.folder / f"{machine.name}.log").open("wb") as log:
                started = subprocess.Popen(
                    argv,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=passed,
                )
            try:
                started.wait(_SETTLE_S)
            except subprocess.TimeoutExpired:
                self._children.append(started)
                return port
        raise CsitError(f"{machine.name}: QEMU ended with {started.returncode}: {self._tail(machine.name, 'log')}")

    def _wait(self, ports: Mapping[str, int], within_s: float, report: WaitCallback) -> None:
        begun = time.monotonic()

        def missing() -> str:
            running = self._running()
            for name in ports:
                if name not in running:
                    raise CsitError(f"{name}: QEMU ended: {self._tail(name, 'log')}")
            silent = {name: why for name, port in ports.items() if (why := self._missing(name, port))}
            if silent:
                report(f"SSH of {', '.join(silent)}", time.monotonic() - begun, within_s)
            return "; ".join(f"{name}: {why}; console: {self._tail(name, 'console')}" for name, why in silent.items())

        wait_until("the SSH servers of the emulated machines", missing, within_s, pause_s=0.2)

    def _missing(self, name: str, port: int) -> str:
        """Why a machine that is starting cannot be logged in to. Connections before it listens would only slow it."""
        console = tail_of(self.folder / f"{name}.console", _TAIL_BYTES)
        return _missing_banner(port) if _LISTENING in console else "no SSH server yet"

    def _tail(self, name: str, kind: str) -> str:
        text = tail_of(self.folder / f"{name}.{kind}", _TAIL_BYTES)
        lines = [line for line in text.splitlines() if line.strip() and "TCG doesn't support" not in line]
        return " / ".join(lines[-3:]) or "empty"

    def _running(self) -> dict[str, Process]:
        return dict(_emulators(self.folder))

    def _end(self) -> bool:
        """End all machines, those of a start that was killed too."""
        there = self.folder.exists()
        asked = self._running()
        for running in asked.values():
            for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process could not end
                with suppress(ProcessLookupError):
                    os.kill(running.pid, number)
        with suppress(NotReady):
            wait_until("end of machines", lambda: ", ".join(self._running()), _ENDS_WITHIN_S, pause_s=0.02)
        for running in self._running().values():
            running.kill()
        wait_until("end of machines", lambda: ", ".join(self._running()), _ENDS_WITHIN_S, pause_s=0.02)
        for child in self._children:
            child.wait(_ENDS_WITHIN_S)
        self._children = []
        if there:
            shutil.rmtree(self.folder)
        return there

    @contextmanager
    def _alone(self, *, wait: bool = True) -> Iterator[None]:
        """One start or end at a time; without waiting, `BlockingIOError` says that there is another one."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with opened(self.folder.with_name(f".{self.folder.name}.lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            yield


def end_unfinished(parent: Path) -> tuple[str, ...]:
    """End machines of testbeds whose start was killed, of which nothing else knows; return a sentence for each testbed.

    Raises:
        CsitError: A folder cannot be removed, or a machine does not end.
    """
    ended = []
    for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
        if not folder.is_dir():
            continue
        testbed = EmulatedTestbed(folder)
        try:
            with testbed._alone(wait=False):
                names = sorted(testbed._running())
                if names and testbed.record is None:
                    testbed._end()
                    ended.append(f"ended {', '.join(names)} of testbed '{folder.name}', whose start was interrupted")
        except BlockingIOError:
            continue
        except OSError as error:
            raise CsitError(f"{folder}: {error}") from error
    return tuple(ended)


def check(layout: EmulatedLayout) -> None:
    """Refuse what this machine has no room for.

    Raises:
        Unsupported: With the numbers.
    """
    if shutil.which(QEMU) is None:
        raise Unsupported(f"no {QEMU} here; as root: resources/tools/packages.sh emulate")
    needed, free = layout.memory_mb, _available_mb()
    if free < needed:
        raise Unsupported(f"{len(layout.names)} machines take up to {needed} MB of memory, and {free} are available")


def _available_mb() -> int:
    rows = (line.split() for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    return next(int(row[1]) // 1024 for row in rows if row[0] == "MemAvailable:")


def _emulators(folder: Path) -> Iterator[tuple[str, Process]]:
    """QEMU processes whose working directory is a folder, with the names of their machines."""
    try:
        wanted = folder.stat()
    except FileNotFoundError:
        return
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            here = (entry / "cwd").stat()
            argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if (here.st_dev, here.st_ino) == (wanted.st_dev, wanted.st_ino) and Path(argv[0]).name == QEMU:
                yield argv[argv.index("-name") + 1], process(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue


def _resident_mb(pid: int) -> int | None:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(pages) * _PAGE_BYTES // 2**20


def _write_key(path: Path) -> str:
    """Write a new private key; return its public part as a line."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    path.touch(mode=0o600)
    path.write_bytes(private)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return f"{public.decode('ascii')}\n"


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


def _missing_banner(port: int) -> str:
    """Why no SSH server answers; empty when one does. QEMU itself takes the connection before the guest can."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_BANNER_S) as connection:
            greeting = connection.recv(64)
    except OSError as error:
        return str(error)
    return "" if greeting.startswith(b"SSH-") else "no SSH server yet"


_MTU = 9500
"""As the largest frames that suites send, and more."""


def open_cables(names: Iterable[str], queues: int) -> dict[tuple[str, int], TapDevice]:
    """Make cables.

    Returns:
        Tap devices by name of the cable and end, 0 or 1, for the caller to close once the machines have them.

    Raises:
        Unsupported: This system has no tap devices, or this user may not make them.
    """
    cables = tuple(names)

    def make() -> dict[tuple[str, int], TapDevice]:
        try:
            unshare(CLONE_NEWNET)
        except PermissionError as error:
            raise Unsupported("ports with several queues are on tap devices, which takes root") from error
        ends = [(name, end) for name in cables for end in (0, 1)]
        devices = [f"end{number}" for number in range(len(ends))]
        taps = dict(zip(ends, open_taps(devices, queues, offloads=False), strict=True))
        try:
            with closing(Netlink()) as netlink:
                for name in cables:
                    near, far = taps[name, 0], taps[name, 1]
                    netlink.do([*join(near, (far.name, far.index), _MTU), bring_up(far, _MTU)])
        except BaseException:
            close_taps(taps.values())
            raise
        return taps

    return aside(make)
