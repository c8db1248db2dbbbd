"""Drivers of docs/how-to/add-a-driver.md forward real packets in the local world."""

from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.kinds import NfKind
from tests.how_to_driver import added_drivers
from tests.integration.robot_runs import network_state, wait_for_network_state
from tests.integration.user_space import cell, deployed, send_and_count

pytestmark = [pytest.mark.parallel, pytest.mark.root]


@pytest.mark.parametrize("isolated", ["true", "false"])
@pytest.mark.parametrize("service_type", ["CSC", "CSP"])
def test_the_vswitch_of_the_page_forwards(service_type: str, isolated: str, tmp_path: Path) -> None:
    before = network_state()
    with added_drivers(tmp_path) as topologies:
        file = topologies["local-learning-bridge"]
        text = file.read_text(encoding="utf-8").replace("{isolated: true}", f"{{isolated: {isolated}}}")
        file.write_text(text, encoding="utf-8")
        with deployed(load_topology(file), cell(service_type, 2, 2)) as running:
            send_and_count(running)
            assert not running.parts.switch.problems()
    wait_for_network_state(before)


@pytest.mark.parametrize("service_type", ["CSC", "CSP"])
def test_the_network_function_of_the_page_forwards(service_type: str, tmp_path: Path) -> None:
    before = network_state()
    with added_drivers(tmp_path) as topologies:
        topology = load_topology(topologies["local-table-router"])
        asked = cell(service_type, 2, 2).model_copy(
            update={"nf_kinds": (NfKind("linux_router"), NfKind("table_router"))}
        )
        with deployed(topology, asked) as running:
            send_and_count(running)
            assert running.parts.functions.facts()["table_router"] == "10000 routes that no packet takes"
    wait_for_network_state(before)
