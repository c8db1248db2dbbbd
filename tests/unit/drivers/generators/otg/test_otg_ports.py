"""What the OTG server checks of interfaces, namespaces and CPUs before it serves them."""

import errno
import socket
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace

import pytest

from resources.libraries.python.drivers.generators.otg.server import ports
from resources.libraries.python.drivers.generators.otg.server.ports import missing_ports
from resources.libraries.python.errors import ConfigError, CsitError


class Host:
    """Interfaces of this machine and of namespaces, CPUs, and whether raw packets may be sent."""

    def __init__(self, namespaces: Path) -> None:
        self.namespaces = namespaces
        self.interfaces: dict[str, list[str]] = {"": ["lo", "eth1"]}
        self.cpus = {0, 1}
        self.may_send = True
        self._inside = ""

    def add(self, namespace: str, *interfaces: str) -> None:
        (self.namespaces / namespace).touch()
        self.interfaces[namespace] = list(interfaces)

    def enter(self, namespace: str) -> None:
        self._inside = namespace

    def index(self, name: str) -> int:
        if name not in self.interfaces[self._inside]:
            raise OSError(errno.ENODEV, "No such device")
        return 1

    def names(self) -> list[tuple[int, str]]:
        return list(enumerate(self.interfaces[self._inside], 1))

    def socket(self, family: int, kind: int, protocol: int) -> SimpleNamespace:
        assert (family, kind, protocol) == (socket.AF_PACKET, socket.SOCK_RAW, 0)
        if not self.may_send:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return SimpleNamespace(close=lambda: None)

    def run_on(self, _: int, cpus: Collection[int]) -> None:
        """Take those that exist, as the kernel does."""
        if not (taken := self.cpus & set(cpus)):
            raise OSError(errno.EINVAL, "Invalid argument")
        self.cpus = taken


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path)
    sockets = {"AF_PACKET": socket.AF_PACKET, "SOCK_RAW": socket.SOCK_RAW, "socket": made.socket}
    sockets |= {"if_nametoindex": made.index, "if_nameindex": made.names}
    for name, value in {
        "DIRECTORY": tmp_path,
        "socket": SimpleNamespace(**sockets),
        "os": SimpleNamespace(sched_setaffinity=made.run_on, sched_getaffinity=lambda _: made.cpus),
        "kernel": SimpleNamespace(enter_namespace=made.enter),
    }.items():
        monkeypatch.setattr(ports, name, value)
    return made


@pytest.mark.usefixtures("host")
def test_a_missing_interface_is_refused_before_anything_is_served() -> None:
    assert missing_ports(["eth1", "lo"], cpus=(0, 1)) == missing_ports([]) == ""
    with pytest.raises(ConfigError, match=r"^no interface 'eth2' on this machine, only lo, eth1$"):
        missing_ports(["eth1", "eth2"])


def test_a_namespace_and_its_interfaces_may_be_made_later(host: Host) -> None:
    assert missing_ports(["eth2"], "lab") == missing_ports([], "lab") == "there is no namespace lab yet"
    host.add("lab", "eth4")
    assert missing_ports(["eth2", "eth3", "eth4"], "lab") == "not in namespace lab yet: eth2, eth3"
    assert missing_ports(["eth4"], "lab") == missing_ports([], "lab") == ""


@pytest.mark.parametrize("cpus", [(1, 7), (7,)])
@pytest.mark.usefixtures("host")
def test_cpus_that_are_not_there_are_refused(cpus: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"^--cpus: no worker can run on CPU 7 of this machine$"):
        missing_ports(["eth1"], cpus=cpus)


def test_without_raw_packets_nothing_is_served(host: Host) -> None:
    host.may_send = False
    with pytest.raises(CsitError, match=r"^raw packets cannot be sent: Operation not permitted; run as root$"):
        missing_ports(["eth1"], "lab")
