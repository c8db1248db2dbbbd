"""Passwords by reference: found, or a sentence that says where to put them; never shown."""

import sys
import types
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.testbed.connection.authentication import resolve


def test_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSIT_LAB_PASSWORD", "open sesame")
    found = resolve("env:CSIT_LAB_PASSWORD", "192.0.2.1", "DUT1")
    assert found.get_secret_value() == "open sesame"
    assert "sesame" not in repr(found) + str(found)
    monkeypatch.delenv("CSIT_LAB_PASSWORD")
    with pytest.raises(
        ConfigError, match="DUT1: password says env:CSIT_LAB_PASSWORD, but the variable CSIT_LAB_PASSWORD is not"
    ):
        resolve("env:CSIT_LAB_PASSWORD", "192.0.2.1", "DUT1")


def test_of_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {("csit", "root"): "open sesame"}
    ring = types.ModuleType("keyring")
    monkeypatch.setattr(ring, "get_password", lambda service, user: kept.get((service, user)), raising=False)
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert resolve("keyring:csit/root", "192.0.2.1", "DUT1").get_secret_value() == "open sesame"
    with pytest.raises(ConfigError, match=f"no such entry: {sys.prefix}/bin/keyring set csit ada"):
        resolve("keyring:csit/ada", "192.0.2.1", "DUT1")


def test_a_keyring_that_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(service: str, user: str) -> str:
        raise RuntimeError(f"{service} of {user} is locked")

    ring = types.ModuleType("keyring")
    monkeypatch.setattr(ring, "get_password", locked, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", ring)
    with pytest.raises(ConfigError, match="cannot be read for keyring:csit/root: csit of root is locked"):
        resolve("keyring:csit/root", "192.0.2.1", "DUT1")


def test_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=f"{sys.prefix}/bin/pip install keyring"):
        resolve("keyring:csit/root", "192.0.2.1", "DUT1")


def write_bindings(folder: Path, text: str, mode: int = 0o600) -> None:
    (folder / "csit").mkdir()
    (folder / "csit" / "passwords.yaml").write_text(text, encoding="utf-8")
    (folder / "csit" / "passwords.yaml").chmod(mode)


@pytest.mark.parametrize(
    "reference", ["env:AWS_SECRET_ACCESS_KEY", "keyring:mail/ada", "env:XCSIT_A", "keyring:csitx/a"]
)
def test_a_topology_names_no_other_secret_of_the_user(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "open sesame")
    with pytest.raises(ConfigError, match=rf"DUT1: {reference} is not used: .* write the line '{reference}: \[evil\]'"):
        resolve(reference, "evil", "DUT1")


def test_one_that_the_user_has_bound_to_hosts_goes_to_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("LAB_PASSWORD", "CSIT_PASSWORD"):
        monkeypatch.setenv(name, "open sesame")
    write_bindings(tmp_path, "env:LAB_PASSWORD: [dut1]\nenv:CSIT_PASSWORD: [dut1, 192.0.2.1]\n")
    assert resolve("env:LAB_PASSWORD", "dut1", "DUT1").get_secret_value() == "open sesame"
    assert resolve("env:CSIT_PASSWORD", "192.0.2.1", "DUT1").get_secret_value() == "open sesame"
    for reference in ("env:LAB_PASSWORD", "env:CSIT_PASSWORD"):
        with pytest.raises(ConfigError, match=rf"{reference} is not for evil: .*passwords.yaml binds it to dut1"):
            resolve(reference, "evil", "DUT1")


def test_bindings_that_others_may_write_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write_bindings(tmp_path, "env:LAB_PASSWORD: [evil]\n", 0o666)
    with pytest.raises(ConfigError, match=r"passwords\.yaml: others may write it"):
        resolve("env:LAB_PASSWORD", "evil", "DUT1")
