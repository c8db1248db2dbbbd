"""Restricts passwords to hosts: a topology from a third party names both, so it cannot authorize the combination.

Variables `CSIT_...` and entries of the keyring's service `csit` are meant for testbeds. Any other reference, and any of
these that is to go to certain hosts only, is bound to hosts by the user: `~/.config/csit/passwords.yaml` has lines such
as `env:LAB_PASSWORD: [dut1.example.org, 192.0.2.7]`.
"""

import os
import stat
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.testbed.access import SecretReference

_OWN = ("env:CSIT_", "keyring:csit/")


class HostsOfPasswords(RootModel[dict[SecretReference, Annotated[tuple[str, ...], Field(min_length=1)]]]):
    """References of passwords to the hosts that may have them."""

    model_config = ConfigDict(frozen=True)


def bindings_file() -> Path:
    """The user's file."""
    below = os.environ.get("XDG_CONFIG_HOME")
    return (Path(below) if below else Path.home() / ".config") / "csit" / "passwords.yaml"


def check_binding(reference: SecretReference, host: str, whose: str) -> None:
    """Refuse to send a password to a host that it is not meant for.

    Args:
        reference: Of the password.
        host: Name or address that is connected to.
        whose: Where the reference is, for messages.

    Raises:
        ConfigError: It is not, or the user's file is wrong or may be written by others.
    """
    path = bindings_file()
    bound: dict[SecretReference, tuple[str, ...]] = {}
    if path.exists():
        status = path.stat()
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(f"{path}: others may write it; chown and chmod 600 it")
        bound = load_yaml(path, HostsOfPasswords).root
    if reference in bound:
        if host not in bound[reference]:
            named = ", ".join(bound[reference])
            raise ConfigError(f"{whose}: {reference} is not for {host}: {path} binds it to {named}")
    elif not reference.startswith(_OWN):
        raise ConfigError(
            f"{whose}: {reference} is not used: a topology may name variables CSIT_... and the keyring's service csit "
            f"only; for another one write the line '{reference}: [{host}]' into {path}"
        )
