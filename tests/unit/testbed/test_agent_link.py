"""Controller and agent, two real processes: what one does when the other fails."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CommandFailed, ConnectionFailed, NotReady
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import FUNCTIONS, GENERATOR, ROLE_CALLS, SWITCH, RemoteRole
from resources.libraries.python.testbed.deployment.health import within
from resources.libraries.python.testbed.remote.link import Pending
from tests.unit.testbed.agent_runs import linked, running

START = b'{"id": 1, "call": "switch.start", "value": []}\n'
NEVER_S = 60.0


def of(remote: RemoteRole[Any], method: str) -> calls.Call[Any, Any]:
    """The call of a method."""
    return ROLE_CALLS[remote.role][method].call


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
        assert link.call(of(SWITCH, "facts"), ()) == {"role": "switch", "stdin": ""}
        # What is written comes by another pipe than the answer, and may be read after it.
        said = ("a driver prints", "a program writes", "so does a child")
        wait_until("what was written", lambda: "".join(x for x in said if x not in agent.channel.stderr_tail()), 60)
        link.close()
        assert agent.end() == "the connection to the controller has ended"


def test_errors_come_back_with_the_node_in_front_and_the_agent_goes_on(tmp_path: Path) -> None:
    with linked(tmp_path) as (_, link):
        with pytest.raises(CommandFailed, match="DUT1: ip link ended with 1: no such link") as found:
            link.call(of(FUNCTIONS, "start"), ())
        assert found.value.stderr == "no such link"
        with pytest.raises(RuntimeError, match="DUT1: KeyError"):
            link.call(of(GENERATOR, "start"), ())
        assert link.call(of(SWITCH, "problems"), ()) == ()


def test_an_abandoned_call_is_interrupted(tmp_path: Path) -> None:
    with linked(tmp_path) as (agent, link):
        pending = link.begin(of(SWITCH, "start"), ())
        agent.wait_for("work")
        with pytest.raises(NotReady, match="the trial not ready"), deadline_over_while_waiting():
            pending.result()
        assert link.call(of(SWITCH, "problems"), ()) == ("switch.start was interrupted",), "and did not end by itself"


def test_a_call_that_was_cancelled_before_it_began_is_left_out(tmp_path: Path) -> None:
    with linked(tmp_path) as (agent, link):
        first = link.begin(of(SWITCH, "start"), ())
        second = link.begin(of(SWITCH, "start"), ())
        agent.wait_for("work")
        for pending in (second, first):
            with pytest.raises(NotReady), deadline_over_while_waiting():
                pending.result()
        assert link.call(of(SWITCH, "problems"), ()) == ("switch.start was interrupted",)


def test_an_agent_that_is_killed_is_a_sentence_for_all_who_wait(tmp_path: Path) -> None:
    with linked(tmp_path) as (agent, link):
        pending = [link.begin(of(SWITCH, "start"), ()) for _ in range(3)]
        os.kill(agent.pid, signal.SIGKILL)
        for each in pending:
            with pytest.raises(ConnectionFailed, match=r"DUT1: .* ended with 137 \(SIGKILL\)"):
                each.result()
        with pytest.raises(ConnectionFailed, match=r"DUT1: .* ended with 137 \(SIGKILL\)"):
            link.call(of(SWITCH, "problems"), ())


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


@pytest.mark.slow
def test_an_agent_that_says_nothing_counts_as_gone(tmp_path: Path) -> None:
    with linked(tmp_path, silence_s=5.0) as (agent, link):
        link.call(of(SWITCH, "problems"), ())
        os.kill(agent.pid, signal.SIGSTOP)
        with pytest.raises(ConnectionFailed, match="DUT1: nothing heard from the agent for 5 s"):
            link.call(of(SWITCH, "problems"), ())


@pytest.mark.slow
def test_both_live_on_without_requests(tmp_path: Path) -> None:
    with linked(tmp_path, agent_silence_s=5.0, silence_s=5.0) as (_, link):
        time.sleep(6.0)
        assert link.call(of(SWITCH, "problems"), ()) == ()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_signal_ends_an_agent_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with linked(tmp_path) as (agent, link):
        link.call(of(SWITCH, "problems"), ())
        pending = link.begin(of(SWITCH, "start"), ())
        agent.wait_for("work")
        os.kill(agent.pid, number)
        with pytest.raises(ConnectionFailed):
            pending.result()
        assert agent.end() == f"switch.start was interrupted | signal {number.name}"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"id": [1], "call": "switch.start"}', "neither call nor cancellation: {'id': [1]"),
        pytest.param(b'{"cancel": {}}', "neither call nor cancellation: {'cancel': {}}", marks=pytest.mark.slow),
        pytest.param(b"[" * 100_000, "no JSON: [[[", marks=pytest.mark.slow),
    ],
)
def test_an_agent_ends_in_order_on_any_line_that_is_no_request(tmp_path: Path, line: bytes, why: str) -> None:
    with running(tmp_path) as agent:
        agent.channel.send(START)
        agent.wait_for("work")
        agent.channel.send(line + b"\n")
        assert agent.end().startswith(f"switch.start was interrupted | invalid input from the controller: {why}")
