"""Access to the nodes of a lab. No secret is ever in a topology: only where it is kept."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from resources.libraries.python.model.base import Frozen

Port = Annotated[int, Field(ge=1, le=65535)]


def _is_reference(text: str) -> str:
    """Refuse a secret itself, without repeating it."""
    if not re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*|keyring:[^/\s]+/[^/\s]+", text):
        raise ValueError(
            "a password in a file is refused; write env:NAME for an environment variable, or "
            "keyring:SERVICE/USER, or leave it out and log in by a key or SSH agent"
        )
    return text


SecretReference = Annotated[str, AfterValidator(_is_reference)]
"""`env:NAME` is a variable of the environment, `keyring:SERVICE/USER` an entry of the user's keyring."""


class Jump(Frozen):
    """A host on the way to a node."""

    host: Annotated[str, Field(min_length=1)]
    port: Port = 22
    user: str | None = None


class Access(Frozen):
    """SSH server of a node, with user and credentials. Missing values are those of the user's SSH configuration."""

    host: Annotated[str, Field(min_length=1)]
    port: Port = 22
    user: str | None = None
    key_file: str | None = None
    """A private key; None for those of the agent and the user's default ones. `~` is the user's home."""
    password: SecretReference | None = None
    """Password of the user, or of the key where that is locked."""
    known_hosts: str | None = None
    """A file beside the user's own one, such as one that belongs to the lab. A host in neither is refused."""
    jump: tuple[Jump, ...] = ()
    """Hosts to go through, the nearest first."""
    become: Literal["auto", "sudo", "no"] = "auto"
    """How to become root: `auto` is `sudo -n` where the user is not root."""
    python: str = "python3"
    """Python 3.11 or newer on the node."""
    silence_s: Annotated[float, Field(ge=5, le=300)] = 20.0
    """Time without a heartbeat after which the other side counts as lost: a cable that is cut ends no connection."""
