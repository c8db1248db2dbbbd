"""Questions to a node: modules of `scripts` go there, run, and answer with one JSON document. One round trip."""

import inspect
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from resources.libraries.python.dialogue import record_of, shown
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.bounds import LATEST_S
from resources.libraries.python.redaction import outgoing, with_texts
from resources.libraries.python.testbed.connection.command import python_failure
from resources.libraries.python.testbed.connection.machine import CompletedProgram, Connection

MARK = "csit-answer:"
"""Text before it is not ours: shells print greetings, also without a terminal."""
# Records are written by root and read by all users, whatever umask a login on the node has.
_FRAME = """\
import json, os, sys, time
os.umask(0o022)
began_s = time.time()
def answer_of(source, asked):
    space = {{"__name__": "script"}}
    exec(compile(source, "script", "exec"), space)
    return space["answer"](asked)
answers = {{name: answer_of(*each) for name, each in json.loads({asked}).items()}}
said = json.dumps(dict(answers=answers, began_s=began_s, ended_s=time.time()))
sys.stdout.write({mark!r} + said + "\\n")
"""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answer of a node, and its clock at that time."""

    by_program: Mapping[str, dict[str, Any]]
    clock_offset_s: float
    """The node's clock minus ours."""
    clock_error_s: float
    """How wrong that may be: half of the time on the way."""
    round_trip_s: float


def program(questions: Mapping[ModuleType, Mapping[str, Any]]) -> bytes:
    """The text of a program that says what `answer` of each module returns, by the module's name."""
    asked = {_name(module): (inspect.getsource(module), arguments) for module, arguments in questions.items()}
    return _FRAME.format(mark=MARK, asked=ascii(json.dumps(asked))).encode()


def ask_all(
    connection: Connection,
    questions: Mapping[ModuleType, Mapping[str, Any]],
    *,
    python: str = "python3",
    within_s: float = 30.0,
    root: bool = True,
) -> Answers:
    """Run modules of `scripts` on a node, one after the other.

    `questions`: Programs, each with the arguments of its function `answer`. The node's list of processes does not
      show them.

    Returns:
        What the functions returned, by the last part of the module's name.

    Raises:
        CsitError: It did not run to its end, or answered with something else.
        NotReady: It did not end in time.
        ConnectionFailed: The node cannot be reached.
    """
    sent_s, begin = time.time(), time.perf_counter()
    try:
        done = connection.run([python, "-I", "-"], stdin=program(questions), within_s=within_s, root=root)
    except CommandFailed as failed:
        raise python_failure(connection.name, python, failed) from failed
    round_trip_s = time.perf_counter() - begin
    answered = read_answer(connection, python, done)
    # It began after we asked, and ended before we heard of it.
    match answered:
        case {"began_s": int() | float() as began_s, "ended_s": int() | float() as ended_s, "answers": dict(said)}:
            times_fit = max(abs(began_s), abs(ended_s)) <= LATEST_S and began_s <= ended_s  # also false for NaN
            if times_fit and all(isinstance(said.get(_name(module)), dict) for module in questions):
                latest_s, earliest_s = began_s - sent_s, ended_s - (sent_s + round_trip_s)
                return Answers(said, (latest_s + earliest_s) / 2, (latest_s - earliest_s) / 2, round_trip_s)
    raise CsitError(f"{connection.name}: {python} gave an answer of another form: {shown(answered)}")


def read_answer(connection: Connection, python: str, done: CompletedProgram) -> dict[str, Any]:
    """The document that a program has written behind the mark.

    Raises:
        CsitError: There is none.
    """
    _, mark, body = done.stdout.rpartition(MARK)
    try:
        answered = record_of(body) if mark else None
    except CsitError as error:
        raise CsitError(f"{connection.name}: {python} gave half an answer: {error}") from error
    if answered is None:
        text = outgoing((done.stdout + done.stderr).strip())[-200:] or "nothing"
        raise CsitError(f"{connection.name}: {python} did not answer; it said {text!r}")
    found: dict[str, Any] = with_texts(answered, outgoing)  # all of it may be shown on a terminal
    return found


def ask(
    connection: Connection,
    module: ModuleType,
    arguments: Mapping[str, Any],
    *,
    python: str = "python3",
    within_s: float = 30.0,
    root: bool = True,
) -> dict[str, Any]:
    """As `ask_all`, for one program; raises CsitError too where that answers with `failed`."""
    answers = ask_all(connection, {module: arguments}, python=python, within_s=within_s, root=root)
    answered = answers.by_program[_name(module)]
    if "failed" in answered:
        raise CsitError(f"{connection.name}: {answered['failed']}")
    return answered


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]
