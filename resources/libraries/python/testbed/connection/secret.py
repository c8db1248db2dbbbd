"""Passwords by reference; each is masked in all texts from the moment when it is known."""

import importlib
import os

from pydantic import SecretStr

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.access import SecretReference
from resources.libraries.python.redaction import keep_secret


def resolve(reference: SecretReference, whose: str) -> SecretStr:
    """Look a password up.

    Args:
        reference: `env:NAME` or `keyring:SERVICE/USER`.
        whose: Where it is said, for a person.

    Raises:
        ConfigError: There is none; the text says how to put it there.
    """
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
            f"{whose}: password says {reference}, but Python's keyring is not installed: pip install keyring"
        ) from error
    try:
        kept = keyring.get_password(service, user)
    except Exception as error:  # boundary to a program of the user's desktop, which raises what it likes
        raise ConfigError(f"{whose}: the keyring does not tell {reference}: {error}") from error
    if not kept:
        raise ConfigError(
            f"{whose}: password says {reference}, but the keyring has no such entry: keyring set {service} {user}"
        )
    keep_secret(kept)
    return SecretStr(kept)
