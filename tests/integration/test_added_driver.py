"""The driver of docs/how-to/add-a-driver.md forwards real packets in the local world."""

from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from tests.how_to_driver import added_driver
from tests.integration.robot_runs import network_state, wait_for_network_state
from tests.integration.user_space import cell, deployed, send_and_count

pytestmark = pytest.mark.root


@pytest.mark.parametrize("isolated", ["true", "false"])
@pytest.mark.parametrize("service_type", ["CSC", "CSP"])
def test_the_driver_of_the_page_forwards(service_type: str, isolated: str, tmp_path: Path) -> None:
    before = network_state()
    with added_driver(tmp_path) as file:
        text = file.read_text(encoding="utf-8").replace("{isolated: true}", f"{{isolated: {isolated}}}")
        file.write_text(text, encoding="utf-8")
        with deployed(load_topology(file), cell(service_type, 2, 2)) as running:
            send_and_count(running)
            assert not running.parts.switch.problems()
    wait_for_network_state(before)
