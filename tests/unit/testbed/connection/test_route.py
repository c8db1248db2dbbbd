"""The way to a node: what the topology says first, then the user's SSH configuration, then OpenSSH's defaults."""

import getpass
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.route import Options, options_in, route

CONFIG = {
    "dut": {
        "hostname": ["192.0.2.7"], "port": ["2222"], "user": ["ada"], "identityfile": ["/keys/dut"],
        "identitiesonly": ["yes"], "proxyjump": ["bob@first:2200,second,[2001:db8::1]:2201"],
    },
    "second": {"hostname": ["192.0.2.2"]},
    "behind": {"hostname": ["192.0.2.8"], "proxycommand": ["nc -x socks:1080 %h %p # %r %n %%"]},
    "alias": {"hostkeyalias": ["the-dut"], "proxyjump": ["none"], "proxycommand": ["none"]},
    "far": {"proxyjump": ["behind"]},
    "circle": {"proxyjump": ["circle"]},
    "tokens": {"proxycommand": ["connect %C"]},
}  # fmt: skip


def options_of(host: str) -> Options:
    return CONFIG.get(host, {})


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_user_s_configuration_completes_the_options() -> None:
    *jumps, node = route(Access(host="dut"), options_of)
    assert (node.host, node.port, node.user, node.known_as) == ("192.0.2.7", 2222, "ada", "[192.0.2.7]:2222")
    assert (node.keys, node.no_others, node.required) == ((Path("/keys/dut"),), True, False)
    assert [(jump.host, jump.port, jump.user) for jump in jumps] == [
        ("first", 2200, "bob"),
        ("192.0.2.2", 22, getpass.getuser()),
        ("2001:db8::1", 2201, getpass.getuser()),
    ]


def test_what_the_topology_says_comes_first(tmp_path: Path) -> None:
    access = Access.model_validate(
        {
            "host": "dut", "port": 22, "user": "root", "key_file": "~/lab", "known_hosts": "~/known",
            "password": "env:X", "jump": [{"host": "gate"}],
        }
    )  # fmt: skip
    jump, node = route(access, options_of)
    assert (node.port, node.user, node.keys, node.password) == (22, "root", (tmp_path / "lab",), "env:X")
    assert node.required
    assert node.known_hosts[0] == tmp_path / "known"
    assert tmp_path / ".ssh" / "known_hosts" in node.known_hosts
    assert (jump.host, jump.password) == ("gate", None)


def test_defaults_are_those_of_openssh_and_each_value_of_an_option_is_a_line(tmp_path: Path) -> None:
    (node,) = route(Access(host="unheard"), options_of)
    assert (node.host, node.port, node.user) == ("unheard", 22, getpass.getuser())
    assert (node.no_others, node.required, node.proxy) == (False, False, "")
    assert tmp_path / ".ssh" / "id_ed25519" in node.keys
    (alias,) = route(Access(host="alias"), options_of)
    assert (alias.known_as, alias.proxy) == ("the-dut", "")
    found = options_in("host a\nuser bob\nidentityfile ~/.ssh/a\nidentityfile ~/b c\nproxycommand nc %h %p\n")
    assert found["identityfile"] == ["~/.ssh/a", "~/b c"]
    assert (found["user"], found["proxycommand"]) == (["bob"], ["nc %h %p"])


def test_tokens_of_a_proxy_command_are_filled_in_and_the_first_jump_host_has_its_own_way() -> None:
    (node,) = route(Access(host="behind", user="ada"), options_of)
    assert node.proxy == "nc -x socks:1080 192.0.2.8 22 # ada behind %"
    with pytest.raises(ConfigError, match="tokens: ProxyCommand has %C; known are %h, %n, %p, %r"):
        route(Access(host="tokens"), options_of)
    jump, node = route(Access(host="far"), options_of)
    assert (jump.proxy.split()[0], jump.host, node.proxy, node.host) == ("nc", "192.0.2.8", "", "far")
    with pytest.raises(
        ConfigError, match=r"circle: more than 8 hosts on the way; does ProxyJump .* lead in a circle\?"
    ):
        route(Access(host="circle"), options_of)


@pytest.mark.parametrize("host", ["-oProxyCommand=sh", "a;b", "a b", "$(id)", "`id`"])
def test_a_host_is_no_option_and_one_word(host: str) -> None:
    """A topology may come from a colleague, and a command of the user's configuration has the host in it."""
    with pytest.raises(ValueError, match="is not the name or address of a host"):
        Access(host=host)
    with pytest.raises(ValueError, match="is not the name of a user"):
        Access(host="dut", user=host)
