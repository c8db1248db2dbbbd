"""A node of a lab that was lost: what is waited for, and what ends the run at once."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.errors import ConnectionFailed, HostRefused
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.remote.node import LabNode
from tests.builders import shipped

TOPOLOGY = shipped("available/lab-2n-kernel")


def test_a_lost_node_that_shows_another_host_key_is_not_waited_for() -> None:
    tries: list[str] = []

    def connect(name: str, _: Access) -> Any:
        tries.append(name)
        raise HostRefused(f"{name} shows another host key than before")

    node = LabNode(TOPOLOGY, "DUT1", connect, cast("Any", SimpleNamespace(install=lambda *_: None)))
    node._link = cast("Any", SimpleNamespace(lost="DUT1: the connection was cut", close=lambda: None))
    with pytest.raises(HostRefused, match="another host key"):
        node.recover(within_s=3.0)
    assert tries == ["DUT1"]
    assert "another host key" in node.lost


def test_a_lost_agent_is_continued_at_the_end_as_it_may_only_be_stopped() -> None:
    ran: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> None:
        ran.append(argv)

    node = LabNode(TOPOLOGY, "DUT1", lambda *_: cast("Any", SimpleNamespace(run=run)), cast("Any", None))
    node._is_open, node._agent_pid = True, 4711

    def call(*_: Any) -> None:
        """Removing is the call in which its silence is noticed."""
        node._link = cast("Any", SimpleNamespace(lost="nothing heard", close=lambda: None))
        raise ConnectionFailed("nothing heard")

    node._link = cast("Any", SimpleNamespace(lost="", close=lambda: None, call=call))
    with pytest.raises(ConnectionFailed, match="nothing heard"):
        node.close()
    assert ran == [["kill", "-CONT", "4711"]]


def test_an_agent_that_ends_as_asked_gets_no_signal() -> None:
    node = LabNode(TOPOLOGY, "DUT1", lambda *_: cast("Any", None), cast("Any", None))
    node._is_open, node._agent_pid = True, 4711
    node._link = cast("Any", SimpleNamespace(lost="", close=lambda: None, call=lambda *_: None))
    node.close()
