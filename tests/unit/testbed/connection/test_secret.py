"""Passwords by reference: found, or a sentence that says where to put them; never shown."""

import sys
import types

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.testbed.connection.authentication import resolve


def test_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_PASSWORD", "open sesame")
    found = resolve("env:LAB_PASSWORD", "DUT1")
    assert found.get_secret_value() == "open sesame"
    assert "sesame" not in repr(found) + str(found)
    monkeypatch.delenv("LAB_PASSWORD")
    with pytest.raises(ConfigError, match="DUT1: password says env:LAB_PASSWORD, but the variable LAB_PASSWORD is not"):
        resolve("env:LAB_PASSWORD", "DUT1")


def test_of_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {("lab", "root"): "open sesame"}
    ring = types.ModuleType("keyring")
    monkeypatch.setattr(ring, "get_password", lambda service, user: kept.get((service, user)), raising=False)
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert resolve("keyring:lab/root", "DUT1").get_secret_value() == "open sesame"
    with pytest.raises(ConfigError, match=f"no such entry: {sys.prefix}/bin/keyring set lab ada"):
        resolve("keyring:lab/ada", "DUT1")


def test_a_keyring_that_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(service: str, user: str) -> str:
        raise RuntimeError(f"{service} of {user} is locked")

    ring = types.ModuleType("keyring")
    monkeypatch.setattr(ring, "get_password", locked, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", ring)
    with pytest.raises(ConfigError, match="cannot be read for keyring:lab/root: lab of root is locked"):
        resolve("keyring:lab/root", "DUT1")


def test_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=f"{sys.prefix}/bin/pip install keyring"):
        resolve("keyring:lab/root", "DUT1")
