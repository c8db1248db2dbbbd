"""Authentication to a node: keys from files and from the SSH agent, and passwords by reference."""

import importlib
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import paramiko
from pydantic import ConfigDict, Field, RootModel, SecretStr

from resources.libraries.python.errors import ConfigError, ConnectionFailed
from resources.libraries.python.model.load import load_yaml, text_of
from resources.libraries.python.model.testbed.access import SecretReference
from resources.libraries.python.redaction import command_text, keep_secret
from resources.libraries.python.testbed.connection.route import SshHop

_PROGRAMS = Path(sys.prefix) / "bin"
"""Of the environment that this runs in."""
Transport = Any
"""`paramiko.Transport`, which has no types."""
_KINDS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
_log = logging.getLogger(__name__)


def authenticate(transport: Transport, hop: SshHop, who: str) -> None:
    """Log in.

    Raises:
        ConnectionFailed: It takes nothing of what we have; the text lists what was tried, and no secret.
        ConfigError: A key or a password that was asked for is not there.
    """
    password = resolve(hop.password, hop.host, who) if hop.password else None
    tried: list[str] = []
    try:
        with closing(paramiko.Agent()) as agent:
            for what, key in _keys(hop, agent, password, tried, who):
                tried.append(what)
                if _accepted(transport, hop.user, key):
                    return
        if password is not None:
            tried.append(f"password of {hop.password}")
            transport.auth_password(hop.user, password.get_secret_value())
            if transport.is_authenticated():
                return
    except paramiko.AuthenticationException:
        pass
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise ConnectionFailed(f"{who} broke off the login as {hop.user} ({reason}); {_tried(tried)}") from error
    raise ConnectionFailed(f"{who} does not let {hop.user} in; {_tried(tried)}")


def _accepted(transport: Transport, user: str, key: object) -> bool:
    """Whether a key was enough. Where a password is wanted too, that is tried afterwards."""
    try:
        transport.auth_publickey(user, key)
    except paramiko.AuthenticationException:
        return False
    return bool(transport.is_authenticated())


def _keys(
    hop: SshHop, agent: paramiko.Agent, password: SecretStr | None, tried: list[str], who: str
) -> Iterator[tuple[str, object]]:
    """Keys to try, each with what it is called in messages."""
    in_agent = agent.get_keys()
    for path in hop.keys:
        if not path.exists():
            if hop.required:
                raise ConfigError(f"{who}: the key {path} is not there")
            continue
        # A locked key may be in the agent, opened.
        public = _public(path)
        held = [key for key in in_agent if key.asbytes() == public]
        if held:
            yield f"key {path} in the agent", held[0]
        elif (key := _load(path, password, hop, tried, who)) is not None:
            yield f"key {path}", key
    if not hop.no_others:
        for key in in_agent:
            yield f"key {key.comment or key.get_name()} of the agent", key


def _load(path: Path, password: SecretStr | None, hop: SshHop, tried: list[str], who: str) -> object | None:
    """A private key; None for one of the user's own that cannot be used."""
    problem = f"is of a kind that is not known; use one of {', '.join(kind.__name__ for kind in _KINDS)}"
    try:
        text = text_of(path)
    except ConfigError as error:
        text, problem = "", str(error).removeprefix(f"{path}: ")
    for kind in _KINDS if text else ():
        try:
            return kind.from_private_key(StringIO(text))  # type: ignore[no-any-return]
        except paramiko.PasswordRequiredException:
            problem = (
                "is locked; say where its passphrase is with password: env:NAME, or add it to the agent with ssh-add"
            )
            if password is not None:
                problem = f"does not open with the passphrase of {hop.password}"
                try:
                    return kind.from_private_key(StringIO(text), password.get_secret_value())  # type: ignore[no-any-return]
                except (paramiko.SSHException, ValueError):
                    continue
        except (paramiko.SSHException, ValueError):
            continue
    if hop.required:
        raise ConfigError(f"{who}: the key {path} {problem}")
    tried.append(f"not {path}, which {problem}")
    return None


def _public(path: Path) -> bytes:
    """The public half of a key, from the file beside it."""
    try:
        return bytes(paramiko.PublicBlob.from_string(text_of(Path(f"{path}.pub"))).key_blob)
    except (ConfigError, ValueError):
        return b""


def _tried(tried: list[str]) -> str:
    return f"tried: {', '.join(tried)}" if tried else "there was nothing to try: no key file, no agent, no password"


def resolve(reference: SecretReference, host: str, whose: str) -> SecretStr:
    """Look a password up.

    Raises:
        ConfigError: There is none, and the text says how to put it there; or it is not for that host.
    """
    _check_binding(reference, host, whose)
    kind, _, name = reference.partition(":")
    if kind == "env":
        if not (found := os.environ.get(name)):
            raise ConfigError(f"{whose}: password says {reference}, but the variable {name} is not set")
        keep_secret(found)
        return SecretStr(found)
    service, _, user = name.partition("/")
    try:
        keyring = importlib.import_module("keyring")
    except ImportError as error:
        raise ConfigError(
            f"{whose}: password says {reference}, but this Python has no keyring: ",
            command_text(_PROGRAMS / "pip", "install", "keyring"),
        ) from error
    try:
        kept = keyring.get_password(service, user)
    except Exception as error:  # boundary to a program of the user's desktop, which raises what it likes
        raise ConfigError(f"{whose}: the keyring cannot be read for {reference}: {error}") from error
    if not kept:
        raise ConfigError(
            f"{whose}: password says {reference}, but the keyring has no such entry: ",
            command_text(_PROGRAMS / "keyring", "set", service, user),
        )
    keep_secret(kept)
    return SecretStr(kept)


_OWN = ("env:CSIT_", "keyring:csit/")


class HostsOfPasswords(RootModel[dict[SecretReference, Annotated[tuple[str, ...], Field(min_length=1)]]]):
    """References of passwords to the hosts that may have them."""

    model_config = ConfigDict(frozen=True)


def _check_binding(reference: SecretReference, host: str, whose: str) -> None:
    """Refuse to send a password to a host that it is not meant for.

    Raises:
        ConfigError: It is not, or the user's file is wrong or may be written by others.
    """
    below = os.environ.get("XDG_CONFIG_HOME")
    path = (Path(below) if below else Path.home() / ".config") / "csit" / "passwords.yaml"
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
