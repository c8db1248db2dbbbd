"""Host keys by known_hosts files as OpenSSH's tools write and read them, and passwords by reference."""

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from resources.libraries.python.errors import ConfigError, ConnectionFailed, HostRefused
from resources.libraries.python.testbed.connection import authentication
from resources.libraries.python.testbed.connection.authentication import resolve
from resources.libraries.python.testbed.connection.route import SshHop
from resources.libraries.python.testbed.connection.ssh import PresentedKey, check_host_key, entries_of, fingerprint
from tests.builders import raising

KEY, OTHER = (base64.b64encode(bytes([number]) * 51).decode() for number in (1, 2))


def judge(text: str, folder: Path, name: str = "host.lab", key: str = KEY) -> str:
    """What is said against a host that shows a key; empty where it is let in."""
    file = folder / "known"
    file.write_text(text, encoding="utf-8")
    shown = PresentedKey(name, "ssh-ed25519", base64.b64decode(key))
    try:
        check_host_key(shown, entries_of([folder / "none", file], name), [file], "DUT1", "ssh-keyscan host.lab")
    except ConnectionFailed as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("host.lab ssh-ed25519 KEY a comment", ""),
        ("a,host.lab,b\tssh-ed25519  KEY", ""),
        ("HOST.lab ssh-ed25519 KEY", ""),
        ("*.lab ssh-ed25519 KEY", ""),
        ("hos?.lab ssh-ed25519 KEY", ""),
        ("host.lab ssh-ed25519 OTHER\nhost.lab ssh-ed25519 KEY", ""),
        ("# comment\n\nhost.lab\n@cert-authority * ssh-rsa OTHER\nhost.lab ssh-ed25519 KEY", ""),
        ("@revoked host.lab ssh-ed25519 OTHER\nhost.lab ssh-ed25519 KEY", ""),
        ("", "is unknown"),
        ("other.lab ssh-ed25519 KEY", "is unknown"),
        ("*.lab,!host.lab ssh-ed25519 KEY", "is unknown"),
        ("[host.lab]:2222 ssh-ed25519 KEY", "is unknown"),
        ("h[o]st.lab ssh-ed25519 KEY", "is unknown"),
        ("host.lab ssh-ed25519 no*base64", "is unknown"),
        ("@cert-authority host.lab ssh-ed25519 KEY", "is unknown"),
        ("# one\nhost.lab ssh-rsa OTHER\n", "another host key than before"),
        ("# one\nhost.lab ssh-rsa OTHER\n", "line 2 of"),
        ("host.lab ssh-ed25519 KEY\n@revoked host.lab ssh-ed25519 KEY", "line 2 of"),
    ],
)
def test_a_host_is_let_in_by_its_key_alone(tmp_path: Path, line: str, said: str) -> None:
    found = judge(line.replace("KEY", KEY).replace("OTHER", OTHER), tmp_path)
    assert said in found and bool(said) == bool(found)


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
    assert "is unknown" in judge(hashed, tmp_path, "host.lab", public), "on another port it is another host"
    shown = subprocess.run(["ssh-keygen", "-lf", str(tmp_path / "key.pub")], check=True, capture_output=True, text=True)
    assert fingerprint(base64.b64decode(public)) == shown.stdout.split()[1]


def test_of_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {("csit", "root"): "open sesame"}
    ring = SimpleNamespace(get_password=lambda service, user: kept.get((service, user)))
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert resolve("keyring:csit/root", "192.0.2.1", "DUT1").get_secret_value() == "open sesame"
    with pytest.raises(ConfigError, match=f"no such entry: {sys.prefix}/bin/keyring set csit ada"):
        resolve("keyring:csit/ada", "192.0.2.1", "DUT1")
    ring.get_password = raising(RuntimeError("it is locked"))
    with pytest.raises(ConfigError, match="cannot be read for keyring:csit/root: it is locked"):
        resolve("keyring:csit/root", "192.0.2.1", "DUT1")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=f"{sys.prefix}/bin/pip install keyring"):
        resolve("keyring:csit/root", "192.0.2.1", "DUT1")


@pytest.fixture
def bindings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file that binds passwords to hosts, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "csit").mkdir()
    return tmp_path / "csit" / "passwords.yaml"


@pytest.mark.parametrize("reference", ["env:AWS_SECRET_ACCESS_KEY", "keyring:mail/a", "env:XCSIT_A", "keyring:csitx/a"])
@pytest.mark.usefixtures("bindings")
def test_a_topology_names_no_other_secret_of_the_user(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "open sesame")
    with pytest.raises(ConfigError, match=rf"DUT1: {reference} is not used: .* write the line '{reference}: \[evil\]'"):
        resolve(reference, "evil", "DUT1")


def test_one_that_the_user_has_bound_to_hosts_goes_to_these(bindings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAB_PASSWORD", "CSIT_PASSWORD"):
        monkeypatch.setenv(name, "open sesame")
    bindings.write_text("env:LAB_PASSWORD: [dut1]\nenv:CSIT_PASSWORD: [dut1, 192.0.2.1]\n", encoding="utf-8")
    assert resolve("env:LAB_PASSWORD", "dut1", "DUT1").get_secret_value() == "open sesame"
    assert resolve("env:CSIT_PASSWORD", "192.0.2.1", "DUT1").get_secret_value() == "open sesame"
    for reference in ("env:LAB_PASSWORD", "env:CSIT_PASSWORD"):
        with pytest.raises(ConfigError, match=rf"{reference} is not for evil: .*passwords.yaml binds it to dut1"):
            resolve(reference, "evil", "DUT1")
    found = resolve("env:LAB_PASSWORD", "dut1", "DUT1")
    assert "sesame" not in repr(found) + str(found)
    monkeypatch.delenv("CSIT_PASSWORD")
    with pytest.raises(ConfigError, match="the variable CSIT_PASSWORD is"):
        resolve("env:CSIT_PASSWORD", "dut1", "DUT1")
    bindings.chmod(0o666)
    with pytest.raises(ConfigError, match=r"passwords\.yaml: others may write it"):
        resolve("env:LAB_PASSWORD", "dut1", "DUT1")


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
