"""Whether a host is who it says: its key against what OpenSSH's known_hosts files say."""

import base64
import binascii
import fnmatch
import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.errors import ConfigError, HostRefused
from resources.libraries.python.model.load import content_of
from resources.libraries.python.redaction import command_text

SYSTEM_FILES = (Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2"))
_LARGEST_BYTES = 16 << 20
"""Maximum size of a file, which a topology may name; a line has 100 to 800."""
USER_FILES = (Path("~/.ssh/known_hosts"), Path("~/.ssh/known_hosts2"))


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A line of a known_hosts file."""

    file: Path
    line: int
    revoked: bool
    hosts: str
    kind: str
    """Such as `ssh-ed25519`."""
    key: bytes


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """The key that a host has shown."""

    name: str
    """The host as known_hosts files name it: `host`, or `[host]:port` for another port than 22."""
    kind: str
    key: bytes


def name_of(host: str, port: int) -> str:
    """A host as known_hosts files name it."""
    return host if port == 22 else f"[{host}]:{port}"


def fingerprint(key: bytes) -> str:
    """As `ssh-keygen -l` shows it."""
    return f"SHA256:{base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip('=')}"


def entries_of(files: Iterable[Path], name: str) -> list[KnownHost]:
    """Lines that speak of a host. A file that is not there has none; certificates' authorities are passed over."""
    return [entry for file in files for entry in _read(file) if _speaks_of(entry.hosts, name)]


def check(shown: PresentedKey, entries: Sequence[KnownHost], files: Sequence[Path], who: str, scan: str) -> None:
    """Refuse a host that is not known, or is not who it was.

    `files`: Where that was looked for; the first is where it would be added.

    Raises:
        HostRefused: The text says what was shown, what is known, and what to do.
    """
    for entry in entries:
        if entry.revoked and entry.key == shown.key:
            raise HostRefused(
                f"{who} shows the host key {fingerprint(shown.key)} that line {entry.line} of {entry.file} revokes"
            )
    known = [entry for entry in entries if not entry.revoked]
    if any(entry.key == shown.key for entry in known):
        return
    offered = f"{shown.kind} {fingerprint(shown.key)}"
    if not known:
        looked = ", ".join(map(str, files))
        raise HostRefused(
            f"{who} is unknown: no known_hosts file has {shown.name} (looked in {looked}); it shows {offered}. "
            "Where `ssh-keygen -lf` prints the same for its key on the host itself: ",
            f"{scan} >>{command_text(files[0])}",
        )
    entry = next((entry for entry in known if entry.kind == shown.kind), known[0])
    file = command_text(entry.file)
    raise HostRefused(
        f"{who} shows another host key than before: {offered}, but line {entry.line} of {entry.file} has {entry.kind} "
        f"{fingerprint(entry.key)}. The connection may be intercepted; if the host was reinstalled: ",
        f"ssh-keygen -R {command_text(shown.name)} -f {file} && {scan} >>{file}",
    )


def _read(file: Path) -> Iterator[KnownHost]:
    if not file.exists():
        return
    try:
        lines = content_of(file, _LARGEST_BYTES).decode(errors="replace").splitlines()
    except ConfigError as error:
        raise HostRefused(str(error)) from error
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        mark = words.pop(0) if words[0].startswith("@") else ""
        if mark not in ("", "@revoked") or len(words) < 3:
            continue
        try:
            yield KnownHost(file, number, bool(mark), words[0], words[1], base64.b64decode(words[2], validate=True))
        except binascii.Error:
            continue  # OpenSSH passes over it too


def _speaks_of(hosts: str, name: str) -> bool:
    found = False
    for pattern in hosts.split(","):
        if pattern.startswith("|1|"):
            found |= _is_hash_of(pattern, name)
        elif pattern.startswith("!"):
            if _matches(pattern[1:], name):
                return False
        else:
            found |= _matches(pattern, name)
    return found


def _matches(pattern: str, name: str) -> bool:
    # Brackets stand for themselves here: they are part of a name with a port.
    return fnmatch.fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]"))


def _is_hash_of(pattern: str, name: str) -> bool:
    try:
        salt, hashed = (base64.b64decode(part, validate=True) for part in pattern.split("|")[2:4])
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), hashed)
