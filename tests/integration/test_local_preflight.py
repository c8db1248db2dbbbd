"""The check of this machine: repeatable, and nothing is left."""

import pytest

from resources.libraries.python.drivers.host.ownership.preflight import check
from tests.integration.robot_runs import network_state, wait_for_network_state

pytestmark = [pytest.mark.parallel, pytest.mark.root]


def test_a_check_finds_the_same_again_and_leaves_nothing() -> None:
    before = network_state()
    assert [check() for _ in range(3)] == [(), (), ()]
    wait_for_network_state(before)
