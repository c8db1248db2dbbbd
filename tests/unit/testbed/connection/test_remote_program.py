"""A program's start, announced among anything on its error output, and what its failure means."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import pytest

from resources.libraries.python.defects import expected
from resources.libraries.python.errors import CommandFailed, ConnectionFailed, CsitError, Unsupported
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.command import Streams, python_failure
from resources.libraries.python.testbed.connection.local import LocalConnection, _Pipes
from resources.libraries.python.testbed.connection.machine import StreamConnection
from resources.libraries.python.testbed.connection.program import TAIL_BYTES
from resources.libraries.python.testbed.connection.runtime import Runtimes
from resources.libraries.python.testbed.connection.ssh import SshConnection
from resources.libraries.python.testbed.maintenance import doctor
from resources.libraries.python.testbed.node.node_query import ask_all
from tests.builders import shell_program
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


class _OverSsh(SshConnection):
    """A node of a lab whose programs run here."""

    def __init__(self, name: str) -> None:
        super().__init__(name, Access(host="192.0.2.1"))

    def _start(self, command: Sequence[str]) -> Streams:
        return _Pipes(command)


CONNECTIONS: dict[str, Callable[[str], StreamConnection]] = {"here": LocalConnection, "SSH": _OverSsh}
QUESTION = {ModuleType("sent.nothing"): {"a": 1}}


@pytest.fixture(params=list(CONNECTIONS))
def connection(request: pytest.FixtureRequest) -> StreamConnection:
    return CONNECTIONS[request.param]("DUT1")


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
SCRIPTS: dict[str, tuple[dict[str, str], str]] = {
    "no Python": ({}, "python3 does not run there (there is no such program); say access.python where Python 3.11"),
    "a Python that may not run": (
        {"python3": "exit 126"},
        "python3 does not run there (nothing on stderr); say access.python where Python 3.11 or newer is",
    ),
    "an old Python": (
        {"python3": f"echo '{OLD}' >&2; exit 1"},
        "python3 is too old (SyntaxError: invalid syntax); say access.python where Python 3.11 or newer is",
    ),
    "a Python 2": (
        {"python3": "echo 'Unknown option: -I' >&2; exit 2"},
        "python3 is too old (Unknown option: -I); say access.python where Python 3.11 or newer is",
    ),
    "one that was killed": (
        {"python3": "kill -9 $$"},
        "python3 ended with 137 (SIGKILL) in the middle of its work, as where memory runs out: look at dmesg there, "
        "free memory, and repeat the command",
    ),
    "one without memory": ({"python3": "echo MemoryError >&2; exit 1"}, "as where memory runs out: look at dmesg"),
    "one that is broken": (
        {"python3": "echo 'Fatal Python error: no encodings' >&2; exit 1"},
        "python3 ended with 1 (Fatal Python error: no encodings); try there: python3 -I -c",
    ),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_python_that_fails_is_one_sentence(
    kind: str, connection: StreamConnection, programs: Callable[..., None]
) -> None:
    scripts, says = SCRIPTS[kind]
    programs(**scripts)
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
    def gather(*_: object, **__: object) -> NoReturn:
        raise python_failure("DUT1", "python3", CommandFailed(("python3",), status, ""))

    monkeypatch.setattr(doctor, "gather", gather)
    place: Any = SimpleNamespace(name="DUT1", nodes=(SimpleNamespace(access=None),), connection=None, python="python3")
    _, (finding,) = doctor._facts(place)
    assert finding.fix.startswith(fix)


NO_ROOT: dict[str, tuple[str | None, str]] = {
    "no sudo": (None, "DUT1: root's rights are needed, ann is not root, and there is no sudo: "),
    "refused": (
        "printf 'sudo: a terminal is required\\nsudo: a password is required\\n' >&2; exit 1",
        "DUT1: ann may not become root without a password (sudo: a terminal is required; sudo: a password is "
        "required); ",
    ),
}


@pytest.mark.parametrize("kind", NO_ROOT)
def test_without_root_what_to_do_is_said(
    kind: str, connection: StreamConnection, programs: Callable[..., None]
) -> None:
    script, says = NO_ROOT[kind]
    programs(id='[ "$1" = -u ] && echo 1000 || echo ann', **({} if script is None else {"sudo": script}))
    with pytest.raises(Unsupported) as refused:
        ask_all(connection, QUESTION)
    text = sentence(refused.value)
    assert says in text
    assert ("set access.user: root" if isinstance(connection, SshConnection) else "run as root") in text
    assert text.endswith("install sudo there" if script is None else ">/etc/sudoers.d/ann")
    with pytest.raises(Unsupported, match=r"DUT1: .*ann"):
        Runtimes()._probe(connection, "python3")
