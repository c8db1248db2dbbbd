"""A machine of the lab in namespaces: its files, its SSH server, and the processes that are on it.

What belongs to a machine is told by its UTS namespace: whatever is started on it is in that, also what has left its
session, its cgroup or its network namespace.
"""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.paths import PROJECT

USERS = {"tester": 64001, "guest": 64002}
"""Ordinary users: `tester` may use sudo without a password, `guest` with one only."""
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "/usr/sbin/sshd"
_LAYOUT = Path(__file__).with_name("lab_node.sh")
_SHADOW = "{user}:{hashed}:19000:0:99999:7:::"
_SSHD_CONFIG = """\
ListenAddress {address}
HostKey /run/lab/host_key
AuthorizedKeysFile /run/lab/authorized_keys
PermitRootLogin yes
PasswordAuthentication yes
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PidFile none
MaxStartups 200
Subsystem sftp internal-sftp
"""
_PENALTIES = "PerSourcePenalties"
"""OpenSSH 9.8 and later refuse an address for a while after failed logins, of which tests make many."""


class Machine:
    """One node: namespaces, files and an SSH server of its own; processor, kernel and programs are the machine's."""

    def __init__(self, name: str, address: str, state: Path) -> None:
        """Say what it will be."""
        self.name = name
        self.address = address
        self.state = state
        self.network = state / "net"
        """What its network namespace is mounted on."""
        self._holder: subprocess.Popen[str] | None = None
        self._sshd: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process that holds the namespaces open."""
        assert self._holder is not None, f"{self.name} is not there"
        return self._holder.pid

    def make(self, passwords: dict[str, str], authorized_key: str) -> None:
        """Make its files and namespaces; no server yet."""
        self._write_files(passwords, authorized_key)
        visible = {str(PROJECT), sys.prefix, sys.base_prefix}
        self._holder = subprocess.Popen(
            [
                "unshare", f"--net={self.network}", f"--uts={self.state / 'uts'}", "--mount", "--propagation=private",
                "sh", str(_LAYOUT), str(self.state), self.name, *visible,
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n", f"{self.name} could not be made"

    def _write_files(self, passwords: dict[str, str], authorized_key: str) -> None:
        etc, ssh = self.state / "etc", self.state / "ssh"
        etc.mkdir(parents=True)
        ssh.mkdir()
        for pinned in ("net", "uts"):
            (self.state / pinned).touch()
        rows = [row for row in Path("/etc/passwd").read_text(encoding="utf-8").splitlines() if row[:5] != "root:"]
        rows.append("root:x:0:0:root:/run/home/root:/bin/bash")
        rows += [f"{user}:x:{uid}:65534::/run/home/{user}:/bin/sh" for user, uid in USERS.items()]
        _write(etc / "passwd", "\n".join(rows))
        shadow = [_SHADOW.format(user=user, hashed=_hashed(word)) for user, word in passwords.items()]
        _write(etc / "shadow", "\n".join(shadow), 0o600)
        _write(etc / "hosts", f"127.0.0.1 localhost {self.name}")
        _write(etc / "hostname", self.name)
        _write(etc / "machine-id", uuid.uuid4().hex)
        _write(etc / "sudoers", "root ALL=(ALL) ALL\ntester ALL=(ALL) NOPASSWD: ALL\nguest ALL=(ALL) ALL", 0o440)
        _write(self.state / "boot_id", str(uuid.uuid4()))
        penalties = f"{_PENALTIES} no\n" if _PENALTIES.lower().encode() in Path(SSHD).read_bytes() else ""
        _write(ssh / "sshd_config", _SSHD_CONFIG.format(address=self.address) + penalties)
        _write(ssh / "authorized_keys", authorized_key)
        make_key(ssh / "host_key")

    def close(self) -> None:
        """Remove it, and know the end of what was started for it."""
        remove(self.state)
        if self._sshd is not None:
            self._sshd.wait(timeout=600)
        if self._holder is not None and self._holder.stdout is not None:
            self._holder.wait(timeout=600)
            self._holder.stdout.close()

    @property
    def host_key(self) -> str:
        """Kind and public part of the key that the server shows."""
        return " ".join(self.read("/run/lab/host_key.pub").split()[:2])

    def swap_host_key(self) -> None:
        """Give the server another key, as after a new installation."""
        self.run("rm", "/run/lab/host_key", "/run/lab/host_key.pub")
        self.run(*_keygen(Path("/run/lab/host_key")))
        self.kill_sshd()
        self.start_sshd()

    # -- what runs there ----------------------------------------------------------------------------------------------

    def inside(self, *argv: str) -> list[str]:
        """The command line that runs a program there, past the SSH server."""
        return ["nsenter", "--target", str(self.pid), "--mount", "--uts", "--net", "--root", "--wd", "--", *argv]

    def run(self, *argv: str) -> str:
        """Run a program there as root, past the SSH server, and return what it prints."""
        return subprocess.run(self.inside(*argv), check=True, capture_output=True, text=True, timeout=600).stdout

    def read(self, path: str) -> str:
        """A file there."""
        return self.run("cat", path)

    def processes(self) -> dict[int, str]:
        """Command lines of what runs there, by pid, without what holds the namespaces."""
        return {pid: line for pid, line in on_machine(self.state) if pid != self.pid}

    def start_sshd(self) -> None:
        """Start the SSH server and wait until it answers."""
        self._sshd = subprocess.Popen(
            self.inside(SSHD, "-D", "-E", "/run/sshd.log", "-f", "/run/lab/sshd_config"),
            stdin=subprocess.DEVNULL, start_new_session=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )  # fmt: skip
        wait_until(f"SSH server of {self.name}", self._missing_banner, 30.0, pause_s=0.01)

    def _missing_banner(self) -> str:
        try:
            with socket.create_connection((self.address, 22), timeout=1.0) as connection:
                said = connection.recv(64)
        except OSError as error:
            return f"{error}; its log: {self.read('/run/sshd.log') if self._has('/run/sshd.log') else 'none'}"
        return "" if said.startswith(b"SSH-") else f"it said {said!r}"

    def kill_sshd(self) -> None:
        """Kill the SSH server and its sessions, and nothing that was started through them."""
        self._kill(_is_sshd)
        if self._sshd is not None:
            self._sshd.wait(timeout=600)
            self._sshd = None

    def signal_sshd(self, number: signal.Signals) -> None:
        """Send a signal to the SSH server and its sessions."""
        for pid in filter(_is_sshd, self.processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_all(self) -> None:
        """Kill whatever runs there, as a reset does."""
        self._kill(lambda _: True)
        self._sshd = None

    def _kill(self, chosen: Callable[[int], bool]) -> None:
        def left() -> str:
            running = {pid: line for pid, line in self.processes().items() if chosen(pid)}
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self._sshd is not None:
                self._sshd.poll()
            return str(running) if running else ""

        wait_until(f"end of processes on {self.name}", left, 30.0, pause_s=0.005)

    def reset(self) -> None:
        """What a reset does to a machine: no process, no namespace, no file in memory, another boot id; no server yet.

        Cables stay plugged: those that a namespace had taken in are handed back first.
        """
        self.kill_all()
        for path in self.run("find", "/run/netns", "-type", "f").split() if self._has("/run/netns") else ():
            looked = subprocess.run(
                self.inside("nsenter", f"--net={path}", "cat", "/proc/net/dev"),
                check=False,
                capture_output=True,
                text=True,
            )
            if looked.returncode:  # only a name: who was killed just now was making or removing it
                continue
            for cable in re.findall(r"\bcab\d+\b", looked.stdout):
                self.run("nsenter", f"--net={path}", "ip", "link", "set", cable, "netns", str(self.pid))
            self.run("umount", "--lazy", path)  # what was killed just now may hold it for another moment
        # Folders that are not empty have the project or its Python mounted in them.
        self.run("sh", "-c", "find /run /tmp /var/tmp -xdev -depth -mindepth 1 "
                 "! -path '/run/lab*' ! -path /run/sshd ! -path '/run/home*' ! -path /run/netns "
                 "'(' ! -type d -o -empty ')' -delete")  # fmt: skip
        for link in self.run("ls", "/sys/class/net").split():
            if link not in ("lo", "mgmt") and not link.startswith("cab"):
                subprocess.run(self.inside("ip", "link", "delete", link), check=False, capture_output=True)
        _write(self.state / "boot_id", str(uuid.uuid4()))

    def _has(self, path: str) -> bool:
        return subprocess.run(self.inside("test", "-e", path), check=False).returncode == 0


def on_machine(state: Path) -> Iterator[tuple[int, str]]:
    """Pids and command lines of whatever is in the UTS namespace of a machine."""
    try:
        wanted = (state / "uts").stat()
    except FileNotFoundError:
        return
    if wanted.st_dev == state.stat().st_dev:  # nothing is mounted on it
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                namespace = (entry / "ns" / "uts").stat()
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if (namespace.st_dev, namespace.st_ino) == (wanted.st_dev, wanted.st_ino):
                yield int(entry.name), line


def remove(state: Path) -> None:
    """Remove a machine, also one that another process has left: processes first, then what its namespaces hang on."""
    deadline = time.monotonic() + 60.0
    while running := dict(on_machine(state)):
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < deadline, f"cannot be killed: {running}"
        time.sleep(0.005)
    for pinned in ("net", "uts"):
        subprocess.run(["umount", str(state / pinned)], check=False, capture_output=True)
    shutil.rmtree(state)


def make_key(path: Path, passphrase: str = "") -> None:
    """Make a key pair."""
    subprocess.run(_keygen(path, passphrase), check=True, capture_output=True)


def _keygen(path: Path, passphrase: str = "") -> list[str]:
    return ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "lab", "-f", str(path)]


def _hashed(password: str) -> str:
    library = ctypes.CDLL("libcrypt.so.1")  # Python's own `crypt` has gone
    library.crypt.restype = ctypes.c_char_p
    hashed: bytes = library.crypt(password.encode(), f"$6${uuid.uuid4().hex[:16]}$".encode())
    return hashed.decode()


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write over what is there: a file that is mounted elsewhere too must stay the same file."""
    path.write_text(f"{text}\n", encoding="utf-8")
    path.chmod(mode)


def _is_sshd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith("sshd")
    except (FileNotFoundError, ProcessLookupError):
        return False
