"""A veth pair in a network namespace of its own, for tests and benchmarks that send real packets."""

import array
import fcntl
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, Unsupported

_REMOVED_WITHIN_S = 10.0
_SIOCETHTOOL = 0x8946
_ETHTOOL_STSO, _ETHTOOL_SGRO = 0x1F, 0x2C


def run(*argv: str) -> None:
    """Run a command.

    Raises:
        Unsupported: It is not installed.
        CommandFailed: It failed.
    """
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Unsupported(f"{argv[0]} is not installed") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr)


def _set_feature(namespace: str, interface: str, request: int, value: int) -> None:
    """Turn an offload of an interface on or off, as `ethtool -K` does."""

    def work() -> None:
        enter_namespace(namespace)
        wanted = array.array("I", (request, value))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            address, _ = wanted.buffer_info()
            fcntl.ioctl(sock, _SIOCETHTOOL, struct.pack("=16sQ16x", interface.encode(), address))

    aside(work)


def receive_by_napi(namespace: str, interface: str) -> None:
    """Make a veth interface receive by NAPI: that takes GRO on and TSO off."""
    _set_feature(namespace, interface, _ETHTOOL_STSO, 0)
    _set_feature(namespace, interface, _ETHTOOL_SGRO, 1)


@contextmanager
def veth_pair(
    namespace: str, names: tuple[str, str], *, mtu: int = 9000, receive_cpu: int | None = None, napi: bool = False
) -> Iterator[None]:
    """Make a veth pair in a new namespace, and remove both at the end.

    Args:
        namespace: Its name.
        names: Of the interfaces.
        mtu: In bytes.
        receive_cpu: CPU of the data threads of both ends; None: frames are received on the sender's CPU.
        napi: Receive by NAPI without threads too, as XDP frames require.

    Raises:
        Unsupported: Not root, or `ip` is not installed.
        CommandFailed: The kernel rejected a request.
    """
    if os.geteuid() != 0:
        raise Unsupported("network namespaces need root")
    _remove_left(namespace)
    _wait_gone(names)  # the kernel removes the threads of an earlier pair after the command has ended
    run("ip", "netns", "add", namespace)
    try:
        inside = ("ip", "-n", namespace)
        quiet = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        run("ip", "netns", "exec", namespace, "sysctl", "-qw", *quiet)
        left, right = names
        run(*inside, "link", "add", left, "mtu", str(mtu), "type", "veth", "peer", "name", right, "mtu", str(mtu))
        for name in names:
            run(*inside, "link", "set", name, "up")
            if receive_cpu is not None or napi:
                receive_by_napi(namespace, name)
            if receive_cpu is not None:
                switch = f"/sys/class/net/{name}/threaded"
                run("ip", "netns", "exec", namespace, "sh", "-c", f"echo 1 >{switch}")
        if receive_cpu is not None:
            for thread in data_threads.find(names).values():
                data_threads.pin(thread, receive_cpu)
        yield
    finally:
        run("ip", "netns", "del", namespace)


def _wait_gone(names: tuple[str, str]) -> None:
    def left() -> str:
        return ", ".join(data_threads.running(names))

    wait_until("the data threads of an earlier pair to end", left, _REMOVED_WITHIN_S)


def _remove_left(namespace: str) -> None:
    """Remove the namespace that a killed run left, with the processes in it. Nothing happens without one."""
    found = subprocess.run(("ip", "netns", "pids", namespace), capture_output=True, text=True, check=False)
    if found.returncode == 0:
        for pid in map(int, found.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run("ip", "netns", "del", namespace)
