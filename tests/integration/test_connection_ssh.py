"""What only a connection over SSH does: who the host is, who we are, the way there, and what breaks on it."""

import logging
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import (
    ConfigError,
    ConnectionFailed,
    CsitError,
    NotReady,
    Unsupported,
)
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection import command as words
from resources.libraries.python.testbed.connection import ssh
from resources.libraries.python.testbed.connection.program import TAIL_BYTES
from resources.libraries.python.testbed.connection.ssh import SshConnection
from resources.libraries.python.testbed.maintenance.machines import Connections
from tests.integration.lab import Lab, missing
from tests.integration.lab_machine import make_key
from tests.integration.machine_watch import running, wait_for, wait_for_end

pytestmark = [pytest.mark.parallel, pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]
DUT = "DUT1"
PASSWORD = "env:CSIT_DUT_PASSWORD"  # noqa: S105 (says where it is)
COUNT = "/run/count"
LAB = {"duts": 2, "cables": 2}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without keys, known hosts and agent."""
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path / "home" / ".ssh"


def refusal(access: Access, kind: type[CsitError] = ConnectionFailed) -> str:
    """The sentence with which a connection fails."""
    with closing(SshConnection(DUT, access)) as connection, pytest.raises(kind) as failed:
        connection.run(["true"])
    assert "\n" not in str(failed.value)
    return str(failed.value)


def said_by(access: Access, *argv: str) -> str:
    """What a program on the node that is reached prints."""
    with closing(SshConnection(DUT, access)) as connection:
        return connection.run(argv).stdout.strip()


def logins(lab: Lab) -> int:
    """How often somebody has logged in to the node."""
    return lab.nodes[DUT].read("/run/sshd.log").count("Accepted ")


# -- who the host is --------------------------------------------------------------------------------------------------


def test_an_unknown_host_is_refused_with_the_fix(lab: Lab, tmp_path: Path) -> None:
    known = tmp_path / "known hosts"
    access = Access(**lab.access(DUT, known_hosts=str(known)))
    said = refusal(access)
    assert re.match(rf"DUT1 \(root@{lab.nodes[DUT].address}\) is unknown: .*ssh-ed25519 SHA256:", said)
    subprocess.run(["sh", "-c", said[said.index("ssh-keyscan") :]], check=True, capture_output=True)
    assert said_by(access, "hostname") == "dut1"


def test_a_changed_host_key_is_refused_with_the_fix(lab: Lab) -> None:
    access = Access(**lab.access(DUT))
    lab.nodes[DUT].swap_host_key()
    try:
        said = refusal(access)
        assert "shows another host key than before: ssh-ed25519 SHA256:" in said
        assert re.search(rf"line 2 of {lab.known_hosts} has ssh-ed25519 SHA256:", said)
        subprocess.run(["sh", "-c", said[said.index("ssh-keygen -R") :]], check=True, capture_output=True)
        assert said_by(access, "hostname") == "dut1"
    finally:
        lab.trust()


# -- who we are -------------------------------------------------------------------------------------------------------


def test_password_by_reference_and_a_wrong_one_is_shown_nowhere(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    access = Access(**lab.access(DUT, user="guest", key_file=None, password=PASSWORD))
    monkeypatch.setenv("CSIT_DUT_PASSWORD", lab.passwords["guest"])
    assert said_by(access, "id", "-un") == "guest"
    caplog.set_level(logging.DEBUG)
    wrong = secrets.token_hex(8)
    monkeypatch.setenv("CSIT_DUT_PASSWORD", wrong)
    said = refusal(access)
    assert said.endswith("does not let guest in; tried: password of env:CSIT_DUT_PASSWORD")
    assert wrong not in said + caplog.text


def test_a_key_that_the_host_does_not_take_and_none(lab: Lab, tmp_path: Path) -> None:
    said = refusal(Access(**lab.access(DUT, key_file=None)))
    assert said.endswith("there was nothing to try: no key file, no agent, no password")
    make_key(tmp_path / "stranger")
    said = refusal(Access(**lab.access(DUT, key_file=str(tmp_path / "stranger"))))
    assert said.endswith(f"does not let root in; tried: key {tmp_path / 'stranger'}")
    assert "is not there" in refusal(Access(**lab.access(DUT, key_file=str(tmp_path / "none"))), ConfigError)


@pytest.fixture
def locked_key(lab: Lab, tmp_path: Path) -> Path:
    """The lab's key behind the passphrase `open sesame`."""
    locked = tmp_path / "locked"
    locked.write_bytes(lab.key_file.read_bytes())
    locked.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(locked)], check=True)
    locked.with_suffix(".pub").write_bytes(lab.key_file.with_suffix(".pub").read_bytes())
    return locked


def test_a_locked_key(lab: Lab, locked_key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(**lab.access(DUT, key_file=str(locked_key)))
    assert "is locked; say where its passphrase is" in refusal(access, ConfigError)
    access = access.model_copy(update={"password": "env:CSIT_KEY_PASSPHRASE"})
    monkeypatch.setenv("CSIT_KEY_PASSPHRASE", "open barley")
    said = refusal(access, ConfigError)
    assert said.endswith("does not open with the passphrase of env:CSIT_KEY_PASSPHRASE")
    monkeypatch.setenv("CSIT_KEY_PASSPHRASE", "open sesame")
    assert said_by(access, "hostname") == "dut1"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ssh-agent without keys."""
    path = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL) as process:

        def deaf() -> str:
            assert process.poll() is None
            with socket.socket(socket.AF_UNIX) as probe:
                return "" if probe.connect_ex(str(path)) == 0 else "nothing listens"

        wait_until("ssh-agent", deaf, 60.0)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield
        process.terminate()


@pytest.mark.usefixtures("agent")
def test_keys_of_the_agent(lab: Lab, locked_key: Path) -> None:
    subprocess.run(["ssh-add", "-q", str(lab.key_file)], check=True, capture_output=True)
    assert said_by(Access(**lab.access(DUT, key_file=None)), "hostname") == "dut1"
    # A locked key counts as given by the agent that holds it opened.
    assert said_by(Access(**lab.access(DUT, key_file=str(locked_key))), "hostname") == "dut1"


def test_no_way_to_root(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSIT_DUT_PASSWORD", lab.passwords["guest"])
    for become, said in {
        "auto": r"DUT1: guest may not become root without a password .*, or as root there: echo 'guest ALL=",
        "no": r"DUT1: root's rights are needed, guest is not root, and access.become is 'no'",
    }.items():
        access = Access(**lab.access(DUT, user="guest", key_file=None, password=PASSWORD, become=become))
        with closing(SshConnection(DUT, access)) as connection, pytest.raises(Unsupported, match=said):
            connection.run(["true"], root=True)


# -- the way there ----------------------------------------------------------------------------------------------------


def test_jump_hosts(lab: Lab) -> None:
    way = [{"host": lab.nodes[name].address, "user": "root"} for name in ("TG", "DUT2")]
    came_from = said_by(Access(**lab.access(DUT, jump=way)), "sh", "-c", 'echo "$SSH_CONNECTION"').split()[0]
    assert came_from == lab.nodes["DUT2"].address
    access = Access(**lab.access(DUT, jump=way[:1], port=2222))
    assert "cannot be reached from the host before it: Connect" in refusal(access)


def test_the_host_keys_of_jump_hosts_are_checked_and_the_fix_for_a_host_behind_one_goes_through_it(
    lab: Lab, tmp_path: Path
) -> None:
    known, gate = tmp_path / "known", lab.nodes["TG"]
    jump = [{"host": gate.address, "user": "root"}]
    access = Access(**lab.access(DUT, jump=jump, known_hosts=str(known)))
    known.write_text(f"{lab.nodes[DUT].address} {lab.nodes[DUT].host_key}\n", encoding="utf-8")
    assert refusal(access).startswith(f"the jump host root@{gate.address} towards DUT1 is unknown")
    known.write_text(f"{gate.address} {gate.host_key}\n", encoding="utf-8")
    said = refusal(access)
    command = shlex.split(said[said.index("ssh -p") :])
    assert command[:4] == ["ssh", "-p", "22", f"root@{gate.address}"]
    assert command[4:] == ["ssh-keyscan", "-t", "ed25519", lab.nodes[DUT].address, f">>{known}"]


def test_the_user_s_ssh_configuration(lab: Lab, home: Path) -> None:
    (home / "config").write_text(
        f"Host the-dut\n HostName {lab.nodes[DUT].address}\n User tester\n IdentityFile {lab.key_file}\n"
        f" UserKnownHostsFile {lab.known_hosts}\n ProxyJump root@{lab.nodes['TG'].address}:22\n"
        f"Host *\n IdentityFile {lab.key_file}\n UserKnownHostsFile {lab.known_hosts}\n",
        encoding="utf-8",
    )
    said = said_by(Access(host="the-dut"), "sh", "-c", 'id -un; echo "$SSH_CONNECTION"; hostname').split()
    assert (said[0], said[1], said[-1]) == ("tester", lab.nodes["TG"].address, "dut1")


def test_include_match_and_proxy_command_are_those_of_openssh(lab: Lab, home: Path) -> None:
    """The connection goes through a real jump host by the user's command, and its key is checked at the end of it."""
    gate = f"ssh -F none -i {lab.key_file} -o UserKnownHostsFile={lab.known_hosts} -o BatchMode=yes"
    (home / "config").write_text(
        f'Include {home}/labs/*\nMatch originalhost the-dut exec "test %n = the-dut"\n User tester\n'
    )
    (home / "labs").mkdir()
    (home / "labs" / "one").write_text(
        f"Host the-dut\n HostName {lab.nodes[DUT].address}\n IdentityFile {lab.key_file}\n"
        f" UserKnownHostsFile {lab.known_hosts}\n ProxyCommand {gate} -W %h:%p root@{lab.nodes['TG'].address}\n"
    )
    connection = SshConnection(DUT, Access(host="the-dut"))
    said = connection.run(["sh", "-c", 'id -un; echo "$SSH_CONNECTION"; hostname']).stdout.split()
    assert (said[0], said[1], said[-1]) == ("tester", lab.nodes["TG"].address, "dut1")
    proxies = running(f"{lab.nodes[DUT].address}:22")
    connection.close()
    assert proxies and not running(f"{lab.nodes[DUT].address}:22")
    (home / "labs" / "one").write_text("Host the-dut\n ProxyCommand false\n")
    assert refusal(Access(host="the-dut")).endswith(
        "ProxyCommand of your SSH configuration brings no SSH version: false"
    )
    (home / "config").write_text("Unheard yes\n")
    assert "Bad configuration option: unheard" in refusal(Access(host="the-dut"), ConfigError)


def test_an_address_where_nothing_listens(lab: Lab) -> None:
    assert "nothing listens on port 2222" in refusal(Access(**lab.access(DUT, port=2222)))
    said = refusal(Access(**lab.access(DUT, host="no-such-host.invalid")))
    assert "there is no host of that name" in said


def test_a_server_that_is_silent_or_drops_the_connection_at_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latter as OpenSSH does after failed logins of an address."""

    def drop() -> None:
        dropping.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as silent, monkeypatch.context() as soon:
        soon.setattr(ssh, "CONNECT_S", 0.5)
        access = Access(**lab.access(DUT, host="127.0.0.1", port=silent.getsockname()[1]))
        assert "does not answer as an SSH server" in refusal(access)
    with socket.create_server(("127.0.0.1", 0)) as dropping:
        thread = threading.Thread(target=drop)
        thread.start()
        said = refusal(Access(**lab.access(DUT, host="127.0.0.1", port=dropping.getsockname()[1])))
        thread.join()
    assert "does not answer as an SSH server: it sent no SSH version" in said
    assert "PerSourcePenalties" in said


# -- one connection, and what breaks on it ----------------------------------------------------------------------------


def test_one_connection_for_all(lab: Lab) -> None:
    before = logins(lab)
    with Connections({DUT: Access(**lab.access(DUT)), "here": None}) as connections:
        for _ in range(3):
            connections.of(DUT).run(["true"])
        talk = connections.of(DUT).open(["cat"])
        talk.close()
        assert connections.of("here").run(["id", "-u"]).stdout == f"{os.getuid()}\n"
    assert logins(lab) == before + 1


def test_a_connection_that_died_unnoticed_is_made_anew(lab: Lab) -> None:
    connection = SshConnection(DUT, Access(**lab.access(DUT)))
    connection.run(["true"])
    before = logins(lab)
    lab.nodes[DUT].kill_sshd()
    with pytest.raises(ConnectionFailed) as failed:
        connection.run(["true"])
    said = str(failed.value)
    assert "nothing listens on port 22" in said and "\n" not in said
    lab.nodes[DUT].start_sshd()
    assert connection.run(["hostname"]).stdout == "dut1\n"
    assert connection.run(["hostname"]).stdout == "dut1\n"
    assert logins(lab) == before + 1
    connection.close()


def test_what_may_have_run_is_not_run_again(lab: Lab) -> None:
    connection = SshConnection(DUT, Access(**lab.access(DUT)))
    word = f"1234.{secrets.randbelow(10**9)}"
    killer = threading.Thread(target=lambda: (wait_for(word), lab.nodes[DUT].kill_sshd()))
    killer.start()
    with pytest.raises(ConnectionFailed, match=r"the connection ended while sh ran"):
        connection.run(["sh", "-c", f"echo once >>{COUNT}; exec sleep {word}"])
    killer.join()
    lab.nodes[DUT].start_sshd()
    assert connection.run(["cat", COUNT]).stdout == "once\n"
    for pid in running(word):
        os.kill(pid, signal.SIGKILL)
    connection.close()


def test_a_cable_that_is_pulled(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_AFTERWARDS_S", 0.2)
    connection = SshConnection(DUT, Access(**lab.access(DUT)).model_copy(update={"silence_s": 1.0}))
    word = f"1235.{secrets.randbelow(10**9)}"
    talk = connection.open(["cat"])
    with monkeypatch.context() as while_cut:

        def cut() -> None:
            wait_for(word)
            while_cut.setattr(ssh, "CONNECT_S", 1.0)
            lab.cut(DUT)

        cutter = threading.Thread(target=cut)
        cutter.start()
        with pytest.raises((NotReady, ConnectionFailed)):
            connection.run(["sleep", word], within_s=10.0)
        cutter.join()
        with pytest.raises(ConnectionFailed, match="DUT1: the connection ended while cat ran"):
            talk.receive(60.0)
    # Nobody could tell the node to end it, and it has done so by itself.
    wait_for_end(word)
    lab.reconnect(DUT)
    assert connection.run(["hostname"]).stdout == "dut1\n"
    connection.close()


def test_a_login_script_that_speaks_or_floods(lab: Lab) -> None:
    lab.nodes[DUT].run("sh", "-c", "echo 'echo welcome >&2' >/run/home/root/.bashrc")
    with closing(SshConnection(DUT, Access(**lab.access(DUT)))) as connection:
        done = connection.run(["sh", "-c", "echo out; echo err >&2"])
        assert (done.stdout, done.stderr) == ("out\n", "welcome\nerr\n")
    flood = "head -c 30000000 /dev/zero | tr '\\\\0' x >&2; yes | head -c 3000000 >&2"
    lab.nodes[DUT].run("sh", "-c", f'echo "{flood}" >/run/home/root/.bashrc')
    connection = SshConnection(DUT, Access(**lab.access(DUT)))
    talk = connection.open(["cat"])
    talk.send(b"there\n")
    assert talk.receive(60.0) == b"there\n"
    assert len(talk.stderr_tail()) <= TAIL_BYTES
    lab.nodes[DUT].run("rm", "/run/home/root/.bashrc")
    connection.close()
