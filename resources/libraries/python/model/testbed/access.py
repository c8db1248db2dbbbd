"""Access to the nodes of a lab and to their energy meters. No secret is in a topology: only where it is kept."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from resources.libraries.python.model.base import Frozen, Inconsistency, of_form

Port = Annotated[int, Field(ge=1, le=65535)]


def _is_reference(text: object) -> object:
    """Refuse a secret itself, a number too, without repeating it."""
    form = r"env:[A-Za-z_][A-Za-z0-9_]*|keyring:[^/\s]+/[^/\s]+"
    if not isinstance(text, str) or not re.fullmatch(form, text):
        raise ValueError(
            "a password in a file is refused; write env:NAME for an environment variable, or "
            "keyring:SERVICE/USER, or leave it out and log in by a key or SSH agent"
        )
    return text


def _is_python(text: str) -> str:
    if not re.fullmatch(r"([\w.+~/-]*/)?(python|pypy)[\w.-]*", text):
        raise ValueError("no name of a Python; write one such as python3.12 or /opt/lab/bin/python3")
    return text


SecretReference = Annotated[str, BeforeValidator(_is_reference)]
"""`env:NAME` is a variable of the environment, `keyring:SERVICE/USER` an entry of the user's keyring."""


Host = Annotated[
    str, Field(min_length=1), of_form(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:%\[\]-]*", "the name or address of a host")
]
User = Annotated[str, of_form(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*", "the name of a user")]
"""No option of ssh, and one word for a shell: proxy commands of the user's SSH configuration may have both."""


class Jump(Frozen):
    """A host on the way to a node."""

    host: Host
    port: Port = 22
    user: User | None = None


class Access(Frozen):
    """SSH server of a node, with user and credentials. Missing values are those of the user's SSH configuration."""

    host: Host
    port: Port = 22
    user: User | None = None
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
    python: Annotated[str, AfterValidator(_is_python)] = "python3"
    """Python 3.11 or newer on the node; no other program, since checks start it, too."""
    silence_s: Annotated[float, Field(ge=5, le=300)] = 20.0
    """Time without a heartbeat after which the other side counts as lost: a cable that is cut ends no connection."""


_Interval = Annotated[float, Field(ge=0.1, le=60)]


class Powercap(Frozen):
    """Energy counters of the processors (RAPL), which the kernel shows under `/sys/class/powercap`."""

    meter: Literal["powercap"] = "powercap"


class Ipmi(Frozen):
    """Power reading of DCMI: of the node's own BMC through the kernel's driver, or of a BMC over the network."""

    meter: Literal["ipmi"]
    host: Annotated[str, of_form(r"[A-Za-z0-9_.:-]+", "the name or address of a host")] | None = None
    """Address of the BMC, which the controller asks; None for that of the node itself, which is asked there."""
    port: Port = 623
    user: str | None = None
    password: SecretReference | None = None
    cipher_suite: Annotated[int, Field(ge=0, le=17)] | None = None
    """Cipher suite of the session; None for the best that the BMC names."""
    interval_s: _Interval = 1.0
    """Time over which the BMC takes the mean, and after which it has another reading."""

    @model_validator(mode="after")
    def _login_needs_host(self) -> Self:
        if self.host is None and (self.user is not None or self.password is not None):
            raise Inconsistency(("host",), "required with user and password: the node's own BMC needs no login")
        return self


class Redfish(Frozen):
    """Power of a chassis, which its BMC serves over HTTPS. The certificate is always checked."""

    meter: Literal["redfish"]
    url: Annotated[str, of_form(r"https://[A-Za-z0-9_.:\[\]-]+/?", "a URL such as https://192.0.2.9")]
    chassis: Annotated[str, Field(min_length=1)] | None = None
    """Id of the chassis; None for the only one."""
    user: str | None = None
    password: SecretReference | None = None
    interval_s: _Interval = 1.0
    """As that of `Ipmi`."""
    ca_file: str | None = None
    """Certificates that are trusted, as PEM; None for those of the system."""


EnergyMeter = Annotated[Powercap | Ipmi | Redfish, Field(discriminator="meter")]
