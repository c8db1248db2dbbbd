"""The way to a node: what the topology says first, then the user's SSH configuration, then OpenSSH's defaults."""

import getpass
from pathlib import Path

import paramiko
import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.route import route

CONFIG = """
Host dut
    HostName 192.0.2.7
    Port 2222
    User ada
    IdentityFile /keys/dut
    IdentitiesOnly yes
    ProxyJump bob@first:2200,second,[2001:db8::1]:2201
Host second
    HostName 192.0.2.2
Host behind
    ProxyCommand nc %h %p
Host alias
    HostKeyAlias the-dut
"""


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> paramiko.SSHConfig:
    monkeypatch.setenv("HOME", str(tmp_path))
    return paramiko.SSHConfig.from_text(CONFIG)


def test_the_user_s_configuration_completes_the_options(config: paramiko.SSHConfig) -> None:
    *jumps, node = route(Access(host="dut"), config)
    assert (node.host, node.port, node.user, node.known_as) == ("192.0.2.7", 2222, "ada", "[192.0.2.7]:2222")
    assert (node.keys, node.asked_for) == ((Path("/keys/dut"),), True)
    assert [(jump.host, jump.port, jump.user) for jump in jumps] == [
        ("first", 2200, "bob"),
        ("192.0.2.2", 22, getpass.getuser()),
        ("2001:db8::1", 2201, getpass.getuser()),
    ]


def test_what_the_topology_says_comes_first(config: paramiko.SSHConfig, tmp_path: Path) -> None:
    access = Access.model_validate(
        {
            "host": "dut", "port": 22, "user": "root", "key_file": "~/lab", "known_hosts": "~/known",
            "password": "env:X", "jump": [{"host": "gate"}],
        }
    )  # fmt: skip
    jump, node = route(access, config)
    assert (node.port, node.user, node.keys, node.password) == (22, "root", (tmp_path / "lab",), "env:X")
    assert node.known_hosts[0] == tmp_path / "known"
    assert tmp_path / ".ssh" / "known_hosts" in node.known_hosts
    assert (jump.host, jump.password) == ("gate", None)


def test_defaults_are_those_of_openssh(config: paramiko.SSHConfig, tmp_path: Path) -> None:
    (node,) = route(Access(host="unheard"), config)
    assert (node.host, node.port, node.user, node.asked_for) == ("unheard", 22, getpass.getuser(), False)
    assert tmp_path / ".ssh" / "id_ed25519" in node.keys
    assert route(Access(host="alias"), config)[0].known_as == "the-dut"


def test_a_proxy_command_is_refused(config: paramiko.SSHConfig) -> None:
    with pytest.raises(ConfigError, match="has ProxyCommand; use ProxyJump"):
        route(Access(host="behind"), config)
