"""Programs on a node or here: their start among anything on stderr, how much they may say, why they fail or end."""

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import paramiko
import pytest

from resources.libraries.python.defects import expected
from resources.libraries.python.errors import CommandFailed, ConnectionFailed, CsitError, NotReady, Unsupported
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.redaction import keep_secret
from resources.libraries.python.testbed.connection import machine
from resources.libraries.python.testbed.connection.command import python_failure
from resources.libraries.python.testbed.connection.local import LocalConnection, _Pipes
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.connection.program import TAIL_BYTES
from resources.libraries.python.testbed.connection.runtime import Runtimes
from resources.libraries.python.testbed.connection.ssh import OrderedTransport, SshConnection, _SshSession
from resources.libraries.python.testbed.maintenance import doctor
from resources.libraries.python.testbed.node.node_query import ask_all
from tests.builders import raising, shell_program
from tests.unit.testbed.connection.scripted_streams import TOKEN, started


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_announcement_is_found_however_the_pipe_cuts_it(size: int) -> None:
    text = f"Welcome!\n{TOKEN} 1234\na warning\n".encode()
    with started(*(text[at : at + size] for at in range(0, len(text), size))) as (program, killed):
        while "warning\n" not in program.stderr_tail():
            time.sleep(0.01)
        assert program.stderr_tail() == "Welcome!\na warning\n"
    assert killed == [1234]


@pytest.mark.slow
def test_a_flood_before_the_start_takes_neither_time_nor_memory() -> None:
    begin = time.process_time()
    flood = [b"x" * 65_536] * 500 + [b"y\n" * 5000] * 100
    with started(*flood, f"\n{TOKEN} 1234\n".encode()) as (program, _):
        assert len(program.stderr_tail()) <= 2 * TAIL_BYTES
    assert time.process_time() - begin < 20


@pytest.mark.parametrize("line", [f"{TOKEN}\n", f"{TOKEN} what\n", f"{TOKEN} {'9' * 5000}\n", f"{TOKEN} \xff\n"])
def test_a_line_that_begins_like_an_announcement_is_output(line: str) -> None:
    with started(line.encode("latin-1"), f"{TOKEN} 1234\n".encode()) as (_, killed):
        pass
    assert killed == [1234]


def test_an_error_output_that_ends_without_it_is_an_unknown_start() -> None:
    with pytest.raises(ConnectionFailed, match="whether agent was started is not known"), started(b"no\n", b""):
        pass


QUESTION = {ModuleType("sent.nothing"): {"a": 1}}


@pytest.fixture(params=["here", "SSH"])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """A node, programs on which run here."""
    if request.param == "here":
        return LocalConnection("DUT1")
    monkeypatch.setattr(SshConnection, "_start", lambda _, command: _Pipes(command))
    return SshConnection("DUT1", Access(host="192.0.2.1"))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes these scripts of shell the only programs beside those that start programs; root needs no sudo."""

    def make(**scripts: str) -> None:
        for name in ("sh", "timeout", "env"):
            found = shutil.which(name)
            assert found is not None
            (tmp_path / name).symlink_to(found)
        for name, script in {"id": '[ "$1" = -u ] && echo 0 || echo root', **scripts}.items():
            shell_program(tmp_path / name, script)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr("resources.libraries.python.testbed.node.node_query.program", lambda _: b"")

    return make


def sentence(error: CsitError) -> str:
    """What a user sees of it; its causes have an end."""
    text = expected(error)
    assert "\n" not in text and "Traceback" not in text and "Errno" not in text
    assert text.startswith("DUT1: ")
    return text


OLD = 'File "<stdin>", line 3\n    match x:\n          ^\nSyntaxError: invalid syntax'
SCRIPTS: dict[str, tuple[str | None, str]] = {
    "no Python": (None, "python3 does not run there (there is no such program); say access.python where Python 3.11"),
    "a Python that may not run": ("exit 126", "python3 does not run there (nothing on stderr); say access.python"),
    "an old Python": (f"echo '{OLD}' >&2; exit 1", "python3 is too old (SyntaxError: invalid syntax)"),
    "a Python 2": ("echo 'Unknown option: -I' >&2; exit 2", "python3 is too old (Unknown option: -I)"),
    "one that was killed": ("kill -9 $$", "python3 ended with 137 (SIGKILL) in the middle of its work"),
    "one without memory": ("echo MemoryError >&2; exit 1", "as where memory runs out: look at dmesg"),
    "one that is broken": (
        "echo 'Fatal Python error: no encodings' >&2; exit 1",
        "python3 ended with 1 (Fatal Python error: no encodings); try there: python3 -I -c",
    ),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_python_that_fails_is_one_sentence(kind: str, connection: Connection, programs: Callable[..., None]) -> None:
    script, says = SCRIPTS[kind]
    programs(**({} if script is None else {"python3": script}))
    with pytest.raises(CsitError) as asked:
        ask_all(connection, QUESTION)
    assert says in sentence(asked.value)
    with pytest.raises(CsitError) as probed:  # before an agent is started
        Runtimes()._probe(connection, "python3")
    assert says in sentence(probed.value)


@pytest.mark.parametrize(("last", "kind"), [("SyntaxError: invalid syntax", Unsupported), ("ValueError: x", CsitError)])
def test_a_traceback_is_kept_for_developers(last: str, kind: type[CsitError]) -> None:
    trace = f'Traceback (most recent call last):\n  File "x", line 1\n{last}\n'
    error = python_failure("DUT1", "python3", CommandFailed(("python3",), 1, trace))
    assert type(error) is kind
    assert [*getattr(error, "__notes__", ())] == ([f"DUT1: {trace}"] if kind is CsitError else [])


@pytest.mark.parametrize(("status", "fix"), [(127, "install Python 3.11"), (137, "look at it from its console")])
def test_the_doctor_names_the_fix_of_the_failure(monkeypatch: pytest.MonkeyPatch, status: int, fix: str) -> None:
    failed = python_failure("DUT1", "python3", CommandFailed(("python3",), status, ""))
    monkeypatch.setattr(doctor, "gather", raising(failed))
    place: Any = SimpleNamespace(name="DUT1", nodes=(SimpleNamespace(access=None),), connection=None, python="python3")
    _, (finding,) = doctor._facts(place)
    assert finding.fix.startswith(fix)


REFUSED = "printf 'sudo: a terminal is required\\nsudo: a password is required\\n' >&2; exit 1"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "DUT1: root's rights are needed, ann is not root, and there is no sudo: "),
        (REFUSED, "ann may not become root without a password (sudo: a terminal is required; sudo: a password is req"),
    ],
)
def test_without_root_what_to_do_is_said(
    script: str | None, says: str, connection: Connection, programs: Callable[..., None]
) -> None:
    programs(id='[ "$1" = -u ] && echo 1000 || echo ann', **({} if script is None else {"sudo": script}))
    with pytest.raises(Unsupported) as refused:
        ask_all(connection, QUESTION)
    text = sentence(refused.value)
    assert says in text
    assert ("set access.user: root" if isinstance(connection, SshConnection) else "run as root") in text
    assert text.endswith("install sudo there" if script is None else ">/etc/sudoers.d/ann")
    with pytest.raises(Unsupported, match=r"DUT1: .*ann"):
        Runtimes()._probe(connection, "python3")


def test_output_without_end_and_a_program_that_goes_on_speaking_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LARGEST_OUTPUT_BYTES", 1 << 20)
    with pytest.raises(CsitError, match=r"^DUT1: cat was ended: it wrote more than 1 MB$"):
        LocalConnection("DUT1").run(["cat", "/dev/zero"], within_s=600)
    with pytest.raises(NotReady, match=r"end of sh on DUT1 not ready after 1\.0 s"):
        LocalConnection("DUT1").run(["sh", "-c", "while :; do echo x; sleep 0.01; done"], within_s=1.0)


def test_the_end_of_what_a_program_says_is_kept_and_escaped_without_secrets() -> None:
    keep_secret("open sesame")
    line = "echo out; head -c 5000000 /dev/zero >&2; echo open sesame >&2; exit 3"
    with pytest.raises(CommandFailed) as failed:
        LocalConnection("DUT1").run(["sh", "-c", line])
    assert failed.value.stderr.endswith("\\x00***\n")
    assert len(failed.value.stderr) < 4 * TAIL_BYTES + 4


WITHIN_S = 60.0


class Server(paramiko.ServerInterface):  # type: ignore[misc]
    """Lets anybody in."""

    def check_auth_none(self, *_: object) -> int:
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_channel_request(self, *_: object) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


@pytest.fixture
def ends() -> Iterator[tuple[paramiko.Transport, paramiko.Transport]]:
    """A connection: the client's end, and the server's."""
    near, far = socket.socketpair()
    client, server = OrderedTransport(near), paramiko.Transport(far)
    for end in (client, server):
        end.banner_timeout = end.handshake_timeout = WITHIN_S
    server.add_server_key(paramiko.ECDSAKey.generate())
    server.start_server(event=threading.Event(), server=Server())
    client.start_client(timeout=WITHIN_S)
    client.auth_none("anybody")
    yield client, server
    for end in (client, server):
        end.close()


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda _, channel: channel.close(), "the session ended without a word"),
        (lambda server, _: server.close(), "the connection ended"),
    ],
)
def test_a_session_that_ends_without_a_status_names_what_ended(
    ends: tuple[paramiko.Transport, paramiko.Transport],
    end: Callable[[paramiko.Transport, paramiko.Channel], None],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also while the transport still counts as active, as it does when it closes its channels at its end."""
    client, server = ends
    session = _SshSession(client.open_ordered_session(WITHIN_S))
    channel = server.accept(WITHIN_S)
    assert session.broken() == ""
    monkeypatch.setattr(client, "is_active", lambda: True)
    end(server, channel)
    assert session.status(WITHIN_S) is None
    assert session.broken() == why
