"""A lab in namespaces: a TG and one or two DUTs, each with an SSH server of its own, joined by virtual cables.

The nodes answer on a management network that this process reaches too; host keys are in `known_hosts`, and nothing but
the lab's own key or a password gets in. All is named after a number that is the lab's alone as long as it lives;
what a lab that was killed has left is removed by the next one.
"""

import atexit
import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.testbed.connection.runtime import FOLDER
from tests.integration.lab_machine import SSHD, USERS, Machine, make_key, remove

STATE = Path("/run/csit-lab")
_LABS = 16
_PROGRAMS = ("ip", "unshare", "nsenter", "ssh-keygen", "sudo")


def missing() -> str:
    """What this machine lacks for a lab; empty when nothing does."""
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    lacking += [] if Path(SSHD).exists() else ["sshd"]
    return f"not installed here: {', '.join(lacking)}" if lacking else "" if os.geteuid() == 0 else "needs root"


@cache
def _runtimes() -> Path:
    """A folder of what agents run on, by version, until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="csit-lab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _runtimes_of(node: Machine) -> Path:
    return Path(f"/proc/{node.pid}/root{FOLDER}")


def _keep_runtimes(node: Machine) -> None:
    _copy_runtimes(_runtimes_of(node), _runtimes())


def _copy_runtimes(source: Path, target: Path) -> None:
    """Copy what is not there, with its compiled modules; nothing that is being unpacked."""
    for each in source.iterdir() if source.is_dir() else ():
        if each.name.startswith(".") or (target / each.name).exists():
            continue
        target.mkdir(mode=0o755, exist_ok=True)
        new = target / f".new-{each.name}"
        if subprocess.run(["cp", "-a", str(each), str(new)], check=False).returncode == 0:
            new.rename(target / each.name)
        else:  # an agent that is ending has changed something there
            shutil.rmtree(new)


class Lab:
    """The lab; a context manager.

    A node's own things are in `nodes`: its address, its processes, `run` past the SSH server, `reset`.
    """

    def __init__(self, *, duts: int = 1, cables: int = 4, loops: int = 0, queues: int = 1, used: bool = False) -> None:
        """Say what it will be. Nothing happens before `with`."""
        self._used = used
        self._names = ("TG", *(f"DUT{number + 1}" for number in range(duts)))
        self._cables = cables
        self._loops = loops
        self._queues = f"numrxqueues {queues} numtxqueues {queues}"
        self._stack = ExitStack()
        self.nodes: dict[str, Machine] = {}
        self.passwords = {user: secrets.token_hex(8) for user in ("root", *USERS)}

    def __enter__(self) -> Self:
        """Make it; its SSH servers answer afterwards."""
        with ExitStack() as stack:
            self.number = stack.enter_context(_Number())
            self.directory = STATE / str(self.number)
            self.key_file = self.directory / "key"
            self.known_hosts = self.directory / "known_hosts"
            stack.callback(_remove, self.number)
            self.directory.mkdir()
            make_key(self.key_file)
            self._make_management()
            authorized = self.key_file.with_suffix(".pub").read_text(encoding="utf-8")
            for position, name in enumerate(self._names):
                node = Machine(name.lower(), self._address(position + 2), self.directory / name)
                stack.callback(node.close)
                node.make(self.passwords, authorized)
                self.nodes[name] = node
                self.reconnect(name)
            self._plug_cables()
            for node in self.nodes.values():
                if self._used:
                    _copy_runtimes(_runtimes(), _runtimes_of(node))
                    stack.callback(_keep_runtimes, node)
                node.start_sshd()
            self.trust()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it, with everything that runs on its nodes."""
        self._stack.close()

    # -- networks -----------------------------------------------------------------------------------------------------

    def _address(self, host: int) -> str:
        return f"203.0.113.{self.number * 16 + host}"

    def _make_management(self) -> None:
        """A switch in a namespace of its own, so that no firewall of this machine has a say between nodes."""
        switch, link = self.directory / "switch", f"csl{self.number}"
        switch.touch()
        subprocess.run(["unshare", f"--net={switch}", "true"], check=True)
        _ip(switch, "link add switch type bridge", "link set switch up")
        _ip(None, f"link add {link} type veth peer name own netns {switch}")
        _ip(switch, "link set own master switch up")
        _ip(None, f"address add {self._address(1)}/28 dev {link}", f"link set {link} up")

    def cut(self, name: str) -> None:
        """Cut a node off the management network, as when a cable is pulled: nobody is told."""
        _ip(self.directory / "switch", f"link set {name} nomaster")

    def reconnect(self, name: str) -> None:
        """Join a node to the management network."""
        switch, node = self.directory / "switch", self.nodes[name]
        known = subprocess.run(
            ["nsenter", f"--net={switch}", "ip", "link", "show", name], check=False, capture_output=True
        )
        if known.returncode:
            _ip(switch, f"link add {name} type veth peer name mgmt netns {node.network}")
            _ip(node.network, f"address add {node.address}/28 dev mgmt", "link set mgmt up")
        _ip(switch, f"link set {name} master switch up")

    def _plug_cables(self) -> None:
        """Make the cables that are not there."""
        for _, (node, port), (peer, peer_port) in self._links():
            if f"cab{port}" not in self.nodes[node].run("ls", "/sys/class/net").split():
                end, far = self.nodes[node].network, f"netns {self.nodes[peer].network} {self._queues}"
                ours = f"cab{port} address {self._mac(node, port)} {self._queues}"
                _ip(
                    end,
                    f"link add {ours} type veth peer name cab{peer_port} address {self._mac(peer, peer_port)} {far}",
                )
            for end, number in ((node, port), (peer, peer_port)):
                _ip(self.nodes[end].network, f"link set cab{number} up")
        wait_until("link on cables", self._without_link, 30.0, pause_s=0.02)

    def _half_cables(self) -> str:
        """Cables with one end: the other was in a namespace that has ended, and the kernel is still at it."""
        there = {name: node.run("ls", "/sys/class/net").split() for name, node in self.nodes.items()}
        return "; ".join(
            link for link, *ends in self._links() if len({f"cab{port}" in there[name] for name, port in ends}) == 2
        )

    def _without_link(self) -> str:
        shown = {name: node.run("ip", "-br", "link") for name, node in self.nodes.items()}
        return "; ".join(f"{name}: {text}" for name, text in shown.items() if "DOWN" in text)

    def _links(self) -> Iterator[tuple[str, tuple[str, int], tuple[str, int]]]:
        """Names of links with both ends as node and port."""
        for pair in range(self._cables // 2):
            odd, even = 2 * pair + 1, 2 * pair + 2
            way = [("TG", odd), *((dut, port) for dut in self._names[1:] for port in (odd, even)), ("TG", even)]
            for position in range(0, len(way), 2):
                yield f"link{pair * len(way) // 2 + position // 2 + 1}", way[position], way[position + 1]
        for number in range(self._loops):
            first = self._cables + 2 * number + 1
            yield f"loop{number + 1}", ("TG", first), ("TG", first + 1)

    def _mac(self, name: str, port: int) -> str:
        return f"02:c5:17:{self.number:02x}:{self._names.index(name):02x}:{port:02x}"

    # -- what a user has ----------------------------------------------------------------------------------------------

    def access(self, name: str, **changes: Any) -> dict[str, Any]:
        """How a node is reached, as a topology says it."""
        return {
            "host": self.nodes[name].address, "user": "root", "key_file": str(self.key_file),
            "known_hosts": str(self.known_hosts), **changes,
        }  # fmt: skip

    def topology(self, folder: Path, *, numa: bool = True, **changes: Any) -> Path:
        """Write the topology file of this lab."""
        ports: dict[str, dict[str, Any]] = {name: {} for name in self._names}
        for link, *ends in self._links():
            for name, port in ends:
                ports[name][f"port{port}"] = {
                    "link": link, "device": f"cab{port}", "mac_address": self._mac(name, port), "driver": "veth",
                    **({"numa_node": 0} if numa else {}),
                }  # fmt: skip
        nodes = {
            name: {
                "type": "TG" if name == "TG" else "DUT",
                "access": self.access(name),
                "cpus": [
                    {"cpus": str(row.cpu), "cores": str(row.core), "socket": row.socket, "node": row.node}
                    for row in discover().cpus
                ],
                **({"generator": {"driver": "auto", "cores": 1}} if name == "TG" else _DUT),
                "interfaces": dict(sorted(ports[name].items(), key=lambda port: int(port[0][4:]))),
            }
            for name in self._names
        }
        content = {
            "metadata": {"version": 1, "name": f"lab{self.number}", "description": "A lab in network namespaces"},
            "world": "lab",
            "nodes": nodes,
        }
        path = folder / "lab.yaml"
        path.write_text(yaml.safe_dump(merged(content, changes), sort_keys=False), encoding="utf-8")
        return path

    def trust(self) -> None:
        """Write the host keys as they are now into `known_hosts`."""
        rows = [f"{node.address} {node.host_key}\n" for node in self.nodes.values()]
        self.known_hosts.write_text("".join(rows), encoding="utf-8")

    # -- mishaps ------------------------------------------------------------------------------------------------------

    def reboot(self, name: str, down_s: float = 0.5, *, reimaged: bool = False) -> None:
        """Reset a node; returns when its SSH server answers again.

        One that is used again has what an agent runs on afterwards, too: /var/tmp outlives a reboot.
        """
        node = self.nodes[name]
        if self._used:
            _keep_runtimes(node)
        node.reset()
        wait_until("end of its cables", self._half_cables, 30.0, pause_s=0.02)
        # Before they are plugged again: other nodes first have to let go of their ends, which have the same names.
        time.sleep(down_s)
        self._plug_cables()
        if self._used and not reimaged:
            _copy_runtimes(_runtimes(), _runtimes_of(node))
        node.start_sshd()

    def fill_disk(self, name: str, path: str = "/tmp") -> None:  # noqa: S108 (the node's own)
        """Leave no space where a path is: one of /tmp, /var/tmp, /dev/shm, /run (with home folders)."""
        node = self.nodes[name]
        target, used = node.run("df", "--output=target,used", path).splitlines()[-1].split()
        node.run("mount", "-o", f"remount,size={max(4, int(used))}k", target)

    def free_disk(self, name: str, path: str = "/tmp") -> None:  # noqa: S108 (the node's own)
        """Give the space back."""
        target = self.nodes[name].run("df", "--output=target", path).split()[-1]
        self.nodes[name].run("mount", "-o", "remount,size=256m", target)


_DUT: Mapping[str, Any] = {"vswitch": "linux_bridge", "containers": "linux_router", "oversubscribe": True}


def merged(base: Any, changes: Any) -> Any:
    """A mapping with changes in it, deep inside too; None takes a key away."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    kept = {key: value for key, value in base.items() if changes.get(key, value) is not None}
    return kept | {key: merged(base.get(key), value) for key, value in changes.items() if value is not None}


def _ip(namespace: Path | None, *commands: str) -> None:
    where = [] if namespace is None else ["nsenter", f"--net={namespace}"]
    subprocess.run([*where, "ip", "-batch", "-"], input="\n".join(commands), check=True, text=True, timeout=600)


class _Number:
    """A lab's number; the kernel gives it back when this process has ended, however it did."""

    def __enter__(self) -> int:
        STATE.mkdir(mode=0o755, parents=True, exist_ok=True)
        mine: int | None = None
        for number in range(_LABS):
            # One at a time, so that labs that begin together find free numbers beside each other.
            if (lock := _locked(number)) is None:
                continue
            _remove(number)
            if mine is None:
                mine, self._lock = number, lock
            else:
                os.close(lock)
        assert mine is not None, f"all {_LABS} labs of {STATE} are in use"
        return mine

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)


def _locked(number: int) -> int | None:
    lock = os.open(STATE / f"{number}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _remove(number: int) -> None:
    """Remove all of a lab that is there."""
    directory = STATE / str(number)
    subprocess.run(["ip", "link", "delete", f"csl{number}"], check=False, capture_output=True)
    if directory.is_dir():
        for uts in directory.glob("*/uts"):
            remove(uts.parent)
        subprocess.run(["umount", str(directory / "switch")], check=False, capture_output=True)
        shutil.rmtree(directory)
