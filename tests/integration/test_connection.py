"""The contract of connections: what every connection does, here, over SSH, and as root behind sudo."""

import hashlib
import os
import secrets
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, ConnectionFailed, NotReady
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.connection.program import TAIL_BYTES
from resources.libraries.python.testbed.connection.ssh import SshConnection
from tests.integration.lab import Lab, missing
from tests.integration.machine_watch import running, wait_for, wait_for_end

pytestmark = [pytest.mark.parallel, pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]
NASTY = [
    "", " ", "two  words", "it's", '"quoted"', "back\\slash", "$HOME", "$(id)", "`id`", "*", "?[a]", "~", "!x",
    "-n", "--", "a=b", "a;b", "a&&b", "a|b", ">x", "#no comment", "{a,b}",
    "line\nbreak", "\ttab\r", "trailing\n", "größe ✓ 漢字", "\x01\x7f",
]  # fmt: skip
MEGABYTES = 10
LAB = {"cables": 2}


@pytest.fixture(params=["local", "ssh", "ssh and sudo"])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """The machine; root's rights are at hand on all, on the last by `sudo`."""
    made: Connection
    if request.param == "local":
        made = LocalConnection()
    else:
        lab: Lab = request.getfixturevalue("lab")
        user = "root" if request.param == "ssh" else "tester"
        made = SshConnection("DUT1", Access(**lab.access("DUT1", user=user)))
    yield made
    made.close()


@pytest.fixture
def word() -> str:
    """A number of seconds that no other process sleeps for."""
    return f"{1000 + secrets.randbelow(1000)}.{secrets.randbelow(10**9):09d}"


# -- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [False, True])
def test_words_and_environment_arrive_as_they_are(connection: Connection, root: bool) -> None:
    done = connection.run(["printf", r"%s\0", *NASTY], root=root)
    assert done.stdout.split("\0")[:-1] == NASTY
    assert (done.status, done.stderr) == (0, "")
    given = {"CSIT_ONE": "a b\n'\"$HOME", "CSIT_EMPTY": ""}
    done = connection.run(["printenv", "CSIT_ONE", "CSIT_EMPTY", "PATH"], environment=given, root=root)
    assert done.stdout.startswith("a b\n'\"$HOME\n\n/")
    assert not root or connection.run(["id", "-u"], root=True).stdout == "0\n"


def test_a_program_is_run_and_not_what_a_shell_has_of_that_name(connection: Connection) -> None:
    assert connection.run(["echo", r"a\tb"]).stdout == "a\\tb\n"
    for argv in ([], ["printf", "a\0b"]):
        with pytest.raises(ValueError, match="NUL"):
            connection.run(argv)


# -- input, output, status --------------------------------------------------------------------------------------------


def test_input_arrives_byte_by_byte(connection: Connection) -> None:
    data = os.urandom(300_001)
    assert connection.run(["sha256sum"], stdin=data).stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert connection.run(["true"], stdin=bytes(MEGABYTES * 10**6)).status == 0, "it is not read"


def test_much_output_on_both_ways_while_much_is_read(connection: Connection) -> None:
    data = secrets.token_hex(500_000).encode() * MEGABYTES
    done = connection.run(["tee", "/dev/stderr"], stdin=data)
    assert done.stdout.encode() == data
    assert done.stderr.encode() == data[-TAIL_BYTES:], "the end of what it says about itself"


def test_status_with_what_was_said(connection: Connection) -> None:
    argv = ["sh", "-c", "echo out; echo why >&2; exit 3"]
    done = connection.run(argv, check=False)
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "why\n")
    with pytest.raises(CommandFailed) as failed:
        connection.run(argv)
    assert (failed.value.argv, failed.value.status, failed.value.stderr) == (tuple(argv), 3, "why\n")
    assert connection.run(["sh", "-c", "kill -s TERM $$"], check=False).status == 128 + 15


def test_a_program_that_is_not_there(connection: Connection) -> None:
    for root in (False, True):
        with pytest.raises(CommandFailed, match=r"no-such-program.* ended with 127"):
            connection.run(["no-such-program", "-x"], check=False, root=root)
    with pytest.raises(CommandFailed, match="no-such-program"):
        connection.open(["no-such-program"])
    assert connection.run(["sh", "-c", "exit 127"], check=False).status == 127


def test_several_at_the_same_time(connection: Connection) -> None:
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda number: connection.run(["echo", str(number)], root=True).stdout, range(40)))
    assert said == [f"{number}\n" for number in range(40)]


# -- deadlines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [False, True])
def test_what_does_not_end_in_time_is_ended_with_its_children(connection: Connection, word: str, root: bool) -> None:
    script = f"echo begun >&2; sleep {word}1 & sh -c 'sleep {word}2; true' & sleep {word}3"
    with pytest.raises(NotReady, match=r"end of sh on .* after 3\.0 s; last seen: begun"):
        connection.run(["sh", "-c", script], within_s=3.0, root=root)
    wait_for_end(f"{word}1", f"{word}2", f"{word}3")


def test_a_program_goes_on_only_where_it_lets_go_of_its_output(connection: Connection, word: str) -> None:
    with pytest.raises(NotReady):
        connection.run(["sh", "-c", f"sleep {word} & exit 0"], within_s=0.5)
    wait_for_end(word)
    connection.run(["sh", "-c", f"setsid sleep {word} </dev/null >/dev/null 2>&1 &"])
    wait_for(word)
    for pid in running(word):
        os.kill(pid, signal.SIGKILL)
    wait_for_end(word)


# -- talking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [False, True])
def test_a_talk(connection: Connection, root: bool) -> None:
    program = connection.open(
        ["sh", "-c", 'echo "$HI" >&2; while read -r line; do echo "<$line>"; done; exit 7'],
        root=root, environment={"HI": "hello"},
    )  # fmt: skip
    for line in ("one", "it's two"):
        program.send(f"{line}\n".encode())
        assert program.receive(60.0) == f"<{line}>\n".encode()
    assert program.status() is None
    wait_until("standard error", lambda: "" if program.stderr_tail() else "nothing", 60.0)
    with pytest.raises(NotReady, match=r"output of sh on .* after 0.1 s; last seen: hello"):
        program.receive(0.1)
    program.close()
    assert program.status() == 7
    assert program.stderr_tail() == "hello\n"
    program.close()
    for talk in (lambda: program.send(b"more"), lambda: program.receive(1.0)):
        with pytest.raises(ConnectionFailed, match="has been closed"):
            talk()


def test_a_program_that_ends_while_it_is_talked_with(connection: Connection) -> None:
    program = connection.open(["sh", "-c", "echo last; echo why >&2; exit 4"])
    assert program.receive(60.0) == b"last\n"
    assert program.receive(60.0) == b""
    with pytest.raises(ConnectionFailed, match=r"sh on .* has ended with 4: why"):
        _send_until_it_fails(program)
    program.close()


def _send_until_it_fails(program: object) -> None:
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        program.send(bytes(100_000))  # type: ignore[attr-defined]


def test_much_in_both_directions_of_a_talk(connection: Connection) -> None:
    data = os.urandom(MEGABYTES * 10**6)
    program = connection.open(["cat"])
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(program.send, data)
        received = bytearray()
        while len(received) < len(data):
            received += program.receive(60.0)
        sent.result()
    assert received == data
    program.close()


def test_much_on_standard_error_blocks_nothing_and_its_end_is_kept(connection: Connection) -> None:
    program = connection.open(["sh", "-c", "yes x | head -c 5000000 >&2; echo end >&2; echo done; cat"])
    assert program.receive(60.0) == b"done\n"
    program.close()
    assert program.stderr_tail().endswith("x\nend\n")
    assert len(program.stderr_tail()) < 100_000


def test_programs_end_with_the_connection(connection: Connection, word: str) -> None:
    heeds = connection.open(["sh", "-c", "read -r line || exit 5"])
    deaf = connection.open(["sleep", word], root=True)
    wait_for(word)
    connection.close()
    connection.close()
    wait_for_end(word)
    assert heeds.status() == 5
    with pytest.raises(ConnectionFailed, match="closed"):
        deaf.send(b"more")
    with pytest.raises(ConnectionFailed, match="closed"):
        connection.run(["true"])
