"""Whose key a known_hosts file vouches for: lines as OpenSSH's own tools write and read them."""

import base64
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from resources.libraries.python.errors import ConfigError, ConnectionFailed, HostRefused
from resources.libraries.python.testbed.connection import authentication
from resources.libraries.python.testbed.connection.known_hosts import (
    PresentedKey,
    check,
    entries_of,
    fingerprint,
    name_of,
)
from resources.libraries.python.testbed.connection.route import SshHop

KEY, OTHER = (base64.b64encode(bytes([number]) * 51).decode() for number in (1, 2))


def judge(text: str, folder: Path, name: str = "host.lab", key: str = KEY) -> str:
    """What is said against a host that shows a key; empty where it is let in."""
    file = folder / "known"
    file.write_text(text, encoding="utf-8")
    shown = PresentedKey(name, "ssh-ed25519", base64.b64decode(key))
    try:
        check(shown, entries_of([folder / "none", file], name), [file], "DUT1", "ssh-keyscan host.lab")
    except ConnectionFailed as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"host.lab ssh-ed25519 {KEY} a comment", "host.lab"),
        (f"a,host.lab,b\tssh-ed25519  {KEY}", "host.lab"),
        (f"HOST.lab ssh-ed25519 {KEY}", "host.lab"),
        (f"*.lab ssh-ed25519 {KEY}", "host.lab"),
        (f"hos?.lab ssh-ed25519 {KEY}", "host.lab"),
        (f"[host.lab]:2222 ssh-ed25519 {KEY}", "[host.lab]:2222"),
        (f"host.lab ssh-ed25519 {OTHER}\nhost.lab ssh-ed25519 {KEY}", "host.lab"),
        (f"# comment\n\nhost.lab\n@cert-authority * ssh-rsa {OTHER}\nhost.lab ssh-ed25519 {KEY}", "host.lab"),
    ],
)
def test_a_host_that_is_known(tmp_path: Path, line: str, name: str) -> None:
    assert judge(line, tmp_path, name) == ""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("", "host.lab"),
        (f"other.lab ssh-ed25519 {KEY}", "host.lab"),
        (f"*.lab,!host.lab ssh-ed25519 {KEY}", "host.lab"),
        (f"host.lab ssh-ed25519 {KEY}", "[host.lab]:2222"),
        (f"[host.lab]:2222 ssh-ed25519 {KEY}", "host.lab"),
        (f"h[o]st.lab ssh-ed25519 {KEY}", "host.lab"),
        ("host.lab ssh-ed25519 no*base64", "host.lab"),
        (f"@cert-authority host.lab ssh-ed25519 {KEY}", "host.lab"),
    ],
)
def test_a_host_that_is_unknown(tmp_path: Path, line: str, name: str) -> None:
    assert "is unknown" in judge(line, tmp_path, name)


def test_another_key_than_before(tmp_path: Path) -> None:
    said = judge(f"# one\nhost.lab ssh-rsa {OTHER}\n", tmp_path)
    assert "another host key than before" in said and "line 2 of" in said


def test_a_revoked_key(tmp_path: Path) -> None:
    row = f"host.lab ssh-ed25519 {KEY}\n"
    assert "line 2 of" in judge(f"{row}@revoked {row}", tmp_path)
    assert judge(f"@revoked host.lab ssh-ed25519 {OTHER}\n{row}", tmp_path) == ""


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed here")
def test_hashed_names_and_fingerprints_are_those_of_openssh(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    public = (tmp_path / "key.pub").read_text(encoding="utf-8").split()[1]
    known = tmp_path / "hashed"
    known.write_text(f"[host.lab]:2222 ssh-ed25519 {public}\n", encoding="utf-8")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    hashed = known.read_text(encoding="utf-8")
    assert hashed.startswith("|1|")
    assert judge(hashed, tmp_path, "[host.lab]:2222", public) == ""
    assert "is unknown" in judge(hashed, tmp_path, "[host.lab]:2223", public)
    shown = subprocess.run(["ssh-keygen", "-lf", str(tmp_path / "key.pub")], check=True, capture_output=True, text=True)
    assert fingerprint(base64.b64decode(public)) == shown.stdout.split()[1]


def test_names() -> None:
    assert (name_of("host", 22), name_of("host", 2222)) == ("host", "[host]:2222")


@pytest.mark.parametrize("device", ["/dev/zero", "pipe"])
def test_files_that_a_topology_names_have_an_end(tmp_path: Path, device: str) -> None:
    file = tmp_path / device
    if device == "pipe":
        os.mkfifo(file)
    with pytest.raises(HostRefused, match="not a regular file"):
        entries_of([file], "host.lab")
    hop = SshHop("host.lab", 22, "root", "host.lab", (file,), (file,), required=True, no_others=True)
    with pytest.raises(ConfigError, match="not a regular file"):
        authentication._load(file, None, hop, [], "DUT1")
