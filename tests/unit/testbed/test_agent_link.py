"""Controller and agent, two real processes: what one does when the other fails."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, ConnectionFailed, CsitError, NotReady
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import BY_NAME, Call
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.deployment.health import within
from resources.libraries.python.testbed.remote import link as link_module
from resources.libraries.python.testbed.remote.link import AgentLink, Pending
from tests.unit.testbed.scripted_channel import ScriptedChannel

START = b'{"id": 1, "call": "switch.start", "value": []}\n'
NEVER_S = 60.0


def of(name: str) -> Call[Any, Any]:
    """A call by its name."""
    return BY_NAME[name].call


@contextmanager
def deadline_over_while_waiting() -> Iterator[None]:
    """A deadline whose alarm rings as soon as this thread waits for the answer of a call, however busy the machine."""
    waiting, main = Pending.result.__code__, threading.get_ident()
    over = threading.Event()

    def ring() -> None:
        while not over.is_set():
            frame = sys._current_frames()[main]
            while frame.f_back is not None and frame.f_code is not waiting:
                frame = frame.f_back
            if frame.f_code is waiting:
                signal.pthread_kill(main, signal.SIGALRM)
                return
            over.wait(0.01)

    bell = threading.Thread(target=ring)
    try:
        with within("the trial", 10 * NEVER_S):
            bell.start()
            yield
    finally:
        over.set()
        bell.join()


def test_what_drivers_and_their_programs_print_does_not_disturb(tmp_path: Path) -> None:
    with linked(tmp_path) as (agent, link):
        assert link.call(of("switch.facts"), ()) == {"role": "switch", "stdin": ""}
        # What is written comes by another pipe than the answer, and may be read after it.
        said = ("a driver prints", "a program writes", "so does a child")
        wait_until("what was written", lambda: "".join(x for x in said if x not in agent.channel.stderr_tail()), 60)
        link.close()
        assert agent.end() == "the connection to the controller has ended"


def test_errors_come_back_with_the_node_in_front_and_the_agent_goes_on(tmp_path: Path) -> None:
    with linked(tmp_path) as (_, link):
        with pytest.raises(CommandFailed, match="DUT1: ip link ended with 1: no such link") as found:
            link.call(of("functions.start"), ())
        assert found.value.stderr == "no such link"
        with pytest.raises(RuntimeError, match="DUT1: KeyError"):
            link.call(of("generator.start"), ())
        assert link.call(of("switch.problems"), ()) == ()


def test_an_abandoned_call_is_interrupted_and_one_that_has_not_begun_is_left_out(tmp_path: Path) -> None:
    with linked(tmp_path) as (agent, link):
        first, second = (link.begin(of("switch.start"), ()) for _ in range(2))
        agent.wait_for("work")
        for pending in (second, first):
            with pytest.raises(NotReady, match="the trial not ready"), deadline_over_while_waiting():
                pending.result()
        assert link.call(of("switch.problems"), ()) == ("switch.start was interrupted",), "and did not end by itself"


def test_an_agent_that_is_killed_is_a_sentence_for_all_who_wait(tmp_path: Path) -> None:
    with linked(tmp_path) as (agent, link):
        pending = [link.begin(of("switch.start"), ()) for _ in range(3)]
        os.kill(agent.pid, signal.SIGKILL)
        for wait in (*(each.result for each in pending), lambda: link.call(of("switch.problems"), ())):
            with pytest.raises(ConnectionFailed, match=r"DUT1: .* ended with 137 \(SIGKILL\)"):
                wait()


def test_an_agent_whose_controller_is_gone_stops_in_the_middle_of_a_call(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        agent.channel.send(START)
        agent.wait_for("work")
        agent.channel.close()
        assert agent.end() == "switch.start was interrupted | the connection to the controller has ended"


@pytest.mark.slow
def test_an_agent_that_hears_nothing_is_alone(tmp_path: Path) -> None:
    with running(tmp_path, silence_s=5.0) as agent:
        agent.channel.send(START)
        assert agent.end() == "switch.start was interrupted | nothing heard from the controller for 5 s"


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_signal_ends_an_agent_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with linked(tmp_path) as (agent, link):
        link.call(of("switch.problems"), ())
        pending = link.begin(of("switch.start"), ())
        agent.wait_for("work")
        os.kill(agent.pid, number)
        with pytest.raises(ConnectionFailed):
            pending.result()
        assert agent.end() == f"switch.start was interrupted | signal {number.name}"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"id": [1], "call": "switch.start"}', "neither call nor cancellation: {'id': [1]"),
        pytest.param(b"[" * 100_000, "no JSON: [[[", marks=pytest.mark.slow),
    ],
)
def test_an_agent_ends_in_order_on_any_line_that_is_no_request(tmp_path: Path, line: bytes, why: str) -> None:
    with running(tmp_path) as agent:
        agent.channel.send(START)
        agent.wait_for("work")
        agent.channel.send(line + b"\n")
        assert agent.end().startswith(f"switch.start was interrupted | invalid input from the controller: {why}")


PROGRAM = """
import os, pathlib, subprocess, sys, time
from resources.libraries.python.testbed.agent import __main__ as process
from resources.libraries.python.errors import *

def facts(role):
    print("a driver prints")
    os.write(1, b"a program writes")
    subprocess.run(["echo", "so does a child"], check=True)
    return {"role": role, "stdin": sys.stdin.read() if role == "switch" else ""}

def start(role):
    if role == "switch":
        put("work", "")
        time.sleep(60)
    if role == "functions":
        raise CommandFailed(["ip", "link"], 1, "no such link")
    if role == "generator":
        raise KeyError(role)

def answer(name, value):
    role, _, method = name.partition(".")
    return {"facts": facts, "start": start, "problems": lambda role: trace}[method](role)

def put(name, text):
    (folder / "new").write_text(text)
    (folder / "new").rename(folder / name)

folder, trace = pathlib.Path(sys.argv[2]), []
put("pid", str(os.getpid()))
class Service:
    def answer(self, name, value):
        try:
            return answer(name, value)
        except process.Interrupted:
            trace.append(f"{name} was interrupted")
            raise

source, sink = process.take_streams()
process.log_to_stderr()
why = process.Conversation(source, sink, float(sys.argv[1])).serve(Service().answer)
put("end", " | ".join([*trace, why]))
"""


class Agent:
    """A process with the agent's side of a conversation."""

    def __init__(self, folder: Path, silence_s: float = 20.0) -> None:
        self._folder = folder
        self.connection = LocalConnection("DUT1", "no")
        argv = [sys.executable, "-c", PROGRAM, str(silence_s), str(folder)]
        self.channel = self.connection.open(argv, environment={"PYTHONPATH": str(PROJECT)})

    @property
    def pid(self) -> int:
        return int(self.wait_for("pid"))

    def end(self) -> str:
        """Why it has ended, and what was interrupted before."""
        return self.wait_for("end")

    def wait_for(self, name: str, within_s: float = 120.0) -> str:
        """What it has put into its folder under a name."""
        file = self._folder / name
        wait_until(f"{name} of the agent", lambda: "" if file.exists() else "nothing", within_s, pause_s=0.01)
        return file.read_text(encoding="utf-8")


@contextmanager
def running(folder: Path, silence_s: float = 20.0) -> Iterator[Agent]:
    """An agent before its first call."""
    agent = Agent(folder, silence_s)
    try:
        yield agent
    finally:
        agent.channel.close()
        agent.connection.close()


@contextmanager
def linked(folder: Path) -> Iterator[tuple[Agent, AgentLink]]:
    """An agent and the controller's end of the conversation with it."""
    with running(folder) as agent:
        agent.wait_for("pid")  # a slow start is no silence
        link = AgentLink("DUT1", agent.channel, silence_s=20.0)
        try:
            yield agent, link
        finally:
            link.close()


def answered(*pieces: bytes | BaseException, call: Call[Any, Any] = calls.LEFTOVERS, asked: object = None) -> object:
    """What a caller gets when the agent writes this, as soon as it is asked."""
    channel = ScriptedChannel()
    link = AgentLink("DUT1", channel, silence_s=60.0)
    pending = link.begin(call, asked)
    for piece in pieces:
        channel.says(piece)
    begin = time.monotonic()
    try:
        return pending.result()
    finally:
        link.close()
        assert time.monotonic() - begin < 30  # and not the 60 s of the call


def line(record: object) -> bytes:
    return json.dumps(record).encode() + b"\n"


def test_an_answer_arrives_between_heartbeats_and_abandoned_answers() -> None:
    assert answered(line({"beat": 1}), line({"id": 99, "value": 1}), line({"id": 1, "value": ["left"]})) == ("left",)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        *((line(row), f"DUT1: neither answer nor heartbeat from the agent: {row}")
          for row in ({"id": [1]}, {"id": {}, "value": 1}, {"id": 1}, {})),
        (b"Welcome!\n", "DUT1: no JSON: Welcome!"),
        (b"x" * 65_000_000, "DUT1: a line of more than 64000000 bytes, which begins with xxx"),
        (ValueError("boom"), "DUT1: reading from the agent failed: ValueError('boom')"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_message_loses_the_agent_with_the_line(said: bytes | BaseException, message: str) -> None:
    with pytest.raises(ConnectionFailed) as found:
        answered(said)
    assert str(found.value).startswith(message)
    assert len(str(found.value)) < 320


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("switch.problems", '"left"'),
        ("switch.problems", '["x", [1]]'),
        *(
            ("generator.counters", f'{{"csit-p1": {{"rx_packets": {number}, "tx_packets": 1}}}}')
            for number in ("NaN", "1e300", "9" * 30)
        ),
    ],
)
def test_an_answer_of_the_wrong_type_is_an_error_of_that_call(name: str, value: str) -> None:
    with pytest.raises(CsitError, match=f"DUT1: invalid answer to '{name}': ") as found:
        answered(f'{{"id": 1, "value": {value}}}\n'.encode(), call=of(name), asked=())
    assert not isinstance(found.value, ConnectionFailed)
    assert len(str(found.value)) < 300


def test_control_characters_of_a_node_are_visible() -> None:
    hostile = "\x1b[2J\x1b]0;x\x07 \u202ea\u200b\udc80"
    shown = "\\x1b[2J\\x1b]0;x\\x07 \\u202ea\\u200b\\udc80"
    assert answered(line({"id": 1, "value": [hostile]})) == (shown,)
    facts = line({"id": 1, "value": {hostile: hostile}})
    assert answered(facts, call=of("switch.facts"), asked=()) == {shown: shown}
    for error in ({"class": "CsitError"}, {"class": "OSError", "number": 5, "file": hostile}):
        with pytest.raises((CsitError, OSError)) as found:
            answered(line({"id": 1, "error": {**error, "text": hostile}}))
        assert "DUT1: " in str(found.value) and str(found.value).isprintable()
    with pytest.raises(RuntimeError) as defect:
        answered(line({"id": 1, "error": {"class": hostile, "text": hostile, "defect": True}}))
    assert str(defect.value) == f"DUT1: {shown}: {shown}"


def test_silence_after_bad_pieces_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_GLANCE_S", 0.05)
    channel = ScriptedChannel([b"half a "])
    link = AgentLink("DUT1", channel, silence_s=0.1)
    with pytest.raises(ConnectionFailed, match="DUT1: nothing heard from the agent"):
        link.call(calls.LEFTOVERS, None)
    link.close()


def test_an_agent_that_ends_with_a_traceback_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = 'INFO begun\nTraceback (most recent call last):\n  File "agent.py", line 1\nKeyError: 1\n'
    monkeypatch.setattr(ScriptedChannel, "stderr_tail", lambda _: trace)
    with pytest.raises(ConnectionFailed) as found:
        answered(b"")
    assert str(found.value) == "DUT1: the agent ended with 1; it said last: KeyError: 1"
    assert 'File "agent.py", line 1' in found.value.__notes__[0]


def test_the_status_of_an_agent_that_takes_its_time_to_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes its output first, and ends some seconds later on a busy node."""
    now_s = [0.0]

    def status(_: ScriptedChannel) -> int | None:
        now_s[0] += 0.5
        return 137 if now_s[0] > 5 else None

    monkeypatch.setattr(ScriptedChannel, "status", status)
    monkeypatch.setattr(link_module, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=lambda _: None))
    with pytest.raises(ConnectionFailed, match=r"^DUT1: the agent ended with 137 \(SIGKILL\)$"):
        answered(b"")
