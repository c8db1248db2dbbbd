"""A node of a lab that was lost: what is waited for, and what ends the run at once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.errors import HostRefused
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.remote.node import LabNode

TOPOLOGY = load_topology(Path(__file__).parents[3] / "topologies" / "available" / "lab-2n-kernel.yaml")


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
