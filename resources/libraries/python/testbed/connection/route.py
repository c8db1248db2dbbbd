"""The way to a node: what a topology says of it, completed by the user's SSH configuration as OpenSSH reads it."""

import getpass
import os
import pwd
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.access import Access, Jump, SecretReference

Options = Mapping[str, Sequence[str]]
"""Values by the lower-case name of an option of ssh_config(5)."""
_SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_KNOWN_TO_SYSTEM = (Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2"))
_KNOWN_TO_USER = (Path("~/.ssh/known_hosts"), Path("~/.ssh/known_hosts2"))
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_LOOKUP_S = 10.0
_MAX_HOPS = 8


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
    """Private keys to try. Only a key that the topology names has to be there."""
    required: bool
    """Whether the topology names the key."""
    no_others: bool
    """Whether other keys of the agent are left out."""
    password: SecretReference | None = None
    proxy: str = ""
    """Command of the user's configuration whose input and output are the connection; empty for TCP."""

    def __str__(self) -> str:
        return f"{self.user}@{self.host}" + (f" port {self.port}" if self.port != 22 else "")


def openssh_options(host: str) -> Options:
    """The user's and the system's SSH configuration for a host; nothing where there is none.

    OpenSSH reads it (`ssh -G`), so that Include, Match and canonical names are what they are for `ssh host`.

    Raises:
        ConfigError: The configuration is wrong, or there is no program to read it.
    """
    home = Path.home()
    user_config = home / ".ssh" / "config"
    if not user_config.exists() and not _SYSTEM_CONFIG.exists():
        return {}
    # OpenSSH looks in the home folder of the account, whatever HOME says.
    other_home = home != Path(pwd.getpwuid(os.getuid()).pw_dir)
    argv = [
        "ssh",
        "-G",
        *(("-F", str(user_config) if user_config.exists() else "none") if other_home else ()),
        "--",
        host,
    ]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_LOOKUP_S, check=False)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{user_config}: reading it for {host} needs OpenSSH's client; apt-get install openssh-client"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the SSH configuration for {host} cannot be read: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"`ssh -G {host}` did not end within {_LOOKUP_S:.0f} s; does a Match exec wait?") from error
    if done.returncode:
        reason = " ".join(done.stderr.split())[-400:] or f"status {done.returncode}"
        raise ConfigError(f"the SSH configuration for {host} cannot be used: {reason}")
    found = options_in(done.stdout)
    if other_home and found.get("userknownhostsfile") == _of_account():
        del found["userknownhostsfile"]
    return found


def options_in(text: str) -> dict[str, list[str]]:
    """Options in the output of `ssh -G`: a line for each value."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name.lower(), []).append(value)
    return found


def _of_account() -> list[str]:
    folder = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"
    return [" ".join(str(folder / path.name) for path in _KNOWN_TO_USER)]


def route(access: Access, options_of: Callable[[str], Options]) -> tuple[SshHop, ...]:
    """The hosts on the way to a node, the nearest first, the node last.

    As for OpenSSH, the first jump host may have jump hosts or a proxy of its own in the user's configuration.

    Raises:
        ConfigError: The configuration cannot be used.
    """
    ends: list[Access | Jump] = [access]
    jumps: Sequence[Jump] = access.jump
    proxy = ""
    while True:
        options = options_of(ends[0].host)
        if not jumps:
            jumps = _jumps(_one(options, "proxyjump"))
        if not jumps:
            proxy = _one(options, "proxycommand")
            break
        ends = [*jumps, *ends]
        jumps = ()
        if len(ends) > _MAX_HOPS:
            raise ConfigError(
                f"{access.host}: more than {_MAX_HOPS} hosts on the way; "
                "does ProxyJump of your SSH configuration lead in a circle?"
            )
    hops = [_hop(options_of(end.host), end, access) for end in ends]
    if proxy:
        hops[0] = _through(hops[0], ends[0].host, proxy)
    return tuple(hops)


def _hop(options: Options, end: Access | Jump, access: Access) -> SshHop:
    port = end.port if "port" in end.model_fields_set else int(_one(options, "port") or end.port)
    host = _one(options, "hostname") or end.host
    keys = [access.key_file] if access.key_file else options.get("identityfile", _DEFAULT_KEYS)
    alias = _one(options, "hostkeyalias")
    files = [Path(name).expanduser() for name in _one(options, "userknownhostsfile").split()]
    own = [Path(access.known_hosts).expanduser()] if access.known_hosts else []
    return SshHop(
        host=host,
        port=port,
        user=end.user or _one(options, "user") or getpass.getuser(),
        known_as=alias or (host if port == 22 else f"[{host}]:{port}"),
        known_hosts=(*own, *(files or [file.expanduser() for file in _KNOWN_TO_USER]), *_KNOWN_TO_SYSTEM),
        keys=tuple(Path(key).expanduser() for key in keys),
        required=access.key_file is not None,
        no_others=access.key_file is not None or _one(options, "identitiesonly").lower() == "yes",
        password=access.password if end is access else None,
    )


def _one(options: Options, name: str) -> str:
    value = next(iter(options.get(name, ())), "")
    return "" if value.lower() == "none" else value


def _through(hop: SshHop, asked: str, command: str) -> SshHop:
    """A hop with its proxy command, whose tokens are filled in (ssh_config(5), TOKENS)."""
    tokens = {"%": "%", "h": hop.host, "n": asked, "p": str(hop.port), "r": hop.user}

    def value(token: re.Match[str]) -> str:
        if token[1] not in tokens:
            raise ConfigError(
                f"the SSH configuration for {asked}: ProxyCommand has %{token[1]}; known are %h, %n, %p, %r"
            )
        return tokens[token[1]]

    return replace(hop, proxy=re.sub(r"%(.)", value, command))


def _jumps(named: str) -> tuple[Jump, ...]:
    found = []
    for step in filter(None, named.split(",")):
        user, _, place = step.strip().removeprefix("ssh://").rpartition("@")
        name, colon, port = place.rpartition(":")
        if not colon or "]" in port:
            name, port = place, ""
        given = {"port": int(port)} if port else {}
        found.append(Jump.model_validate({"host": name.strip("[]"), "user": user or None, **given}))
    return tuple(found)
