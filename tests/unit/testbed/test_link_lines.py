"""The controller's end of a link, against anything that an agent may write: a caller gets an error at once."""

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.errors import ConnectionFailed, CsitError
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import BY_NAME, Call
from resources.libraries.python.testbed.remote import link as link_module
from resources.libraries.python.testbed.remote.link import AgentLink
from tests.unit.testbed.scripted_channel import ScriptedChannel


def answered(*pieces: bytes | BaseException, call: Call[Any, Any] = calls.LEFTOVERS, asked: object = None) -> object:
    """What a caller gets when the agent writes this, as soon as it is asked."""
    channel = ScriptedChannel()
    link = AgentLink("DUT1", channel, silence_s=60.0)
    try:
        pending = link.begin(call, asked)
        for piece in pieces:
            channel.says(piece)
        begin = time.monotonic()
        try:
            return pending.result()
        finally:
            assert time.monotonic() - begin < 30  # and not the 60 s of the call
    finally:
        link.close()


def line(record: object) -> bytes:
    return json.dumps(record).encode() + b"\n"


def test_an_answer_arrives_between_heartbeats_and_abandoned_answers() -> None:
    assert answered(line({"beat": 1}), line({"id": 99, "value": 1}), line({"id": 1, "value": ["left"]})) == ("left",)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (line({"id": [1]}), "DUT1: neither answer nor heartbeat from the agent: {'id': [1]}"),
        (line({"id": {}, "value": 1}), "DUT1: neither answer nor heartbeat from the agent: {'id': {}, 'value': 1}"),
        (line({"id": 1}), "DUT1: neither answer nor heartbeat from the agent: {'id': 1}"),
        (line({}), "DUT1: neither answer nor heartbeat from the agent: {}"),
        (line([1, 2]), "DUT1: no JSON object: [1, 2]"),
        (b"Welcome!\n", "DUT1: no JSON: Welcome!"),
        (b"\n", "DUT1: no JSON: nothing"),
        (b"[" * 100_000 + b"\n", "DUT1: no JSON: [[["),
        (b"x" * 65_000_000, "DUT1: a line of more than 64000000 bytes, which begins with xxx"),
        (ValueError("boom"), "DUT1: reading from the agent failed: ValueError('boom')"),
    ],
)
def test_a_line_that_is_no_message_loses_the_agent_with_the_line(said: bytes | BaseException, message: str) -> None:
    with pytest.raises(ConnectionFailed) as found:
        answered(said)
    assert str(found.value).startswith(message)
    assert len(str(found.value)) < 320


@pytest.mark.parametrize("value", [None, 7, "left", [1], {"a": 1}, [["x"]], ["x" * 10, 5 * [1]]])
def test_an_answer_of_the_wrong_type_is_an_error_of_that_call(value: object) -> None:
    with pytest.raises(CsitError, match="DUT1: invalid answer to 'leftovers': ") as found:
        answered(line({"id": 1, "value": value}))
    assert not isinstance(found.value, ConnectionFailed)
    assert len(str(found.value)) < 300


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e300", "9" * 30])
def test_a_number_that_no_node_has_is_an_invalid_answer(number: str) -> None:
    tables = f'{{"id": 1, "value": {{"csit-p1": {{"rx_packets": {number}, "tx_packets": 1}}}}}}\n'
    with pytest.raises(CsitError, match=r"DUT1: invalid answer to 'generator\.counters': "):
        answered(tables.encode(), call=BY_NAME["generator.counters"].call, asked=())


def test_control_characters_of_a_node_are_visible() -> None:
    hostile = "\x1b[2J\x1b]0;x\x07 \u202ea\u200b\udc80"
    shown = "\\x1b[2J\\x1b]0;x\\x07 \\u202ea\\u200b\\udc80"
    assert answered(line({"id": 1, "value": [hostile]})) == (shown,)
    facts = line({"id": 1, "value": {hostile: hostile}})
    assert answered(facts, call=BY_NAME["switch.facts"].call, asked=()) == {shown: shown}
    for error in (
        {"class": "CsitError", "text": hostile},
        {"class": "OSError", "number": 5, "text": hostile, "file": hostile},
    ):
        with pytest.raises((CsitError, OSError)) as found:
            answered(line({"id": 1, "error": error}))
        assert "DUT1: " in str(found.value) and str(found.value).isprintable()
    with pytest.raises(RuntimeError) as defect:
        answered(line({"id": 1, "error": {"class": hostile, "text": hostile, "defect": True}}))
    assert str(defect.value) == f"DUT1: {shown}: {shown}"


@pytest.mark.parametrize("error", [None, 7, "text", [], {"class": []}, {"class": "CommandFailed", "argv": 1}])
def test_an_error_of_the_wrong_form_is_an_error_all_the_same(error: object) -> None:
    with pytest.raises(RuntimeError, match="DUT1: an error of unknown form: "):
        answered(line({"id": 1, "error": error}))


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
