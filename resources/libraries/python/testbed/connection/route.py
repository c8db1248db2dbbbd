"""The way to a node: what a topology says of it, completed by the user's SSH configuration as OpenSSH would."""

import getpass
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.access import Access, Jump, SecretReference
from resources.libraries.python.testbed.connection.known_hosts import SYSTEM_FILES, USER_FILES, name_of

CONFIG_FILES = (Path("~/.ssh/config"), Path("/etc/ssh/ssh_config"))
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


@dataclass(frozen=True, slots=True)
class SshHop:
    """One SSH server of a route, and the account there."""

    host: str
    port: int
    user: str
    known_as: str
    """Its name in known_hosts files."""
    known_hosts: tuple[Path, ...]
    """Files that may vouch for it; the first one is where a key would be added."""
    keys: tuple[Path, ...]
    """Private keys to try. Only those that were asked for have to be there."""
    asked_for: bool
    """Whether the keys were asked for: then no others are tried."""
    password: SecretReference | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.host}" + (f" port {self.port}" if self.port != 22 else "")


def user_configuration() -> paramiko.SSHConfig:
    """The user's and the system's SSH configuration; what is said first counts.

    Raises:
        ConfigError: A file is wrong.
    """
    config = paramiko.SSHConfig()
    for path in CONFIG_FILES:
        try:
            with path.expanduser().open(encoding="utf-8") as file:
                config.parse(file)
        except FileNotFoundError:
            continue
        except (OSError, paramiko.SSHException, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read: {error}") from error
    return config


def route(access: Access, config: paramiko.SSHConfig) -> tuple[SshHop, ...]:
    """The hosts on the way to a node, the nearest first, the node last.

    Raises:
        ConfigError: The configuration wants something that this connection cannot do.
    """
    options = _lookup(config, access.host)
    jumps = access.jump or tuple(_jumps(access.host, options))
    hops = [_hop(config, jump, access, None) for jump in jumps]
    return (*hops, _hop(config, access, access, access.password))


def _hop(config: paramiko.SSHConfig, end: Access | Jump, access: Access, password: SecretReference | None) -> SshHop:
    options = _lookup(config, end.host)
    port = end.port if "port" in end.model_fields_set else int(str(options.get("port", end.port)))
    host = str(options.get("hostname", end.host))
    asked = [access.key_file] if access.key_file else list(options.get("identityfile", ()))
    alias = options.get("hostkeyalias")
    files = [Path(name).expanduser() for name in str(options.get("userknownhostsfile", "")).split()]
    own = [Path(access.known_hosts).expanduser()] if access.known_hosts else []
    return SshHop(
        host=host,
        port=port,
        user=end.user or str(options.get("user") or getpass.getuser()),
        known_as=name_of(str(alias), 22) if alias else name_of(host, port),
        known_hosts=(*own, *(files or [file.expanduser() for file in USER_FILES]), *SYSTEM_FILES),
        keys=tuple(Path(key).expanduser() for key in asked or _DEFAULT_KEYS),
        asked_for=access.key_file is not None or str(options.get("identitiesonly", "no")).lower() == "yes",
        password=password,
    )


def _lookup(config: paramiko.SSHConfig, host: str) -> dict[str, str | list[str]]:
    try:
        return dict(config.lookup(host))
    except (paramiko.SSHException, ImportError, KeyError) as error:
        # `Match exec` needs a package that is not one of ours; a canonical name may not be found.
        raise ConfigError(f"the SSH configuration for {host} cannot be used: {error}") from error


def _jumps(host: str, options: dict[str, str | list[str]]) -> Iterator[Jump]:
    named = str(options.get("proxyjump", "none"))
    if named.lower() == "none":
        if str(options.get("proxycommand", "none")).lower() != "none":
            raise ConfigError(
                f"the SSH configuration for {host} has ProxyCommand; use ProxyJump, or jump in the topology"
            )
        return
    for step in named.split(","):
        user, _, place = step.strip().removeprefix("ssh://").rpartition("@")
        name, colon, port = place.rpartition(":")
        if not colon or "]" in port:
            name, port = place, ""
        given = {"port": int(port)} if port else {}
        yield Jump.model_validate({"host": name.strip("[]"), "user": user or None, **given})
