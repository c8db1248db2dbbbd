"""NUMA nodes of ports: what the file says is compared with the nodes; what it leaves out is read there."""

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.physical_ports import assumptions, conflicts, located, silent
from tests.unit.planning.labs import lab


def with_numa(topology: Topology, number: int | None) -> Topology:
    nodes = {
        name: node.model_copy(
            update={
                "interfaces": {
                    port: each.model_copy(update={"numa_node": number}) for port, each in node.interfaces.items()
                }
            }
        )
        for name, node in topology.nodes.items()
    }
    return topology.model_copy(update={"nodes": nodes})


def on(number: int | None) -> dict[str, dict[str, int | None]]:
    return {name: dict.fromkeys(("port1", "port2"), number) for name in ("TG", "DUT1")}


def test_a_silent_file_is_completed() -> None:
    topology = lab(cpus=[{"cpus": "0-7", "cores": "0-7"}, {"cpus": "8-15", "cores": "8-15", "node": 1}])
    assert silent(topology)[:2] == ("nodes.TG.interfaces.port1", "nodes.TG.interfaces.port2")
    assert len(assumptions(topology)) == 2
    found = located(topology, {"DUT1": on(1)["DUT1"], "TG": on(0)["TG"]})
    assert (found.dut.numa_node, found.tg.numa_node) == (1, 0)
    assert silent(found) == assumptions(found) == ()


def test_a_file_that_contradicts_the_node_is_refused_with_both_numbers() -> None:
    topology = with_numa(lab(), 0)
    (first, _) = conflicts("DUT1", topology.dut, on(1)["DUT1"])
    assert first.what.startswith("nodes.DUT1.interfaces.port1.numa_node: the file says 0, the node says 1")
    with pytest.raises(ConfigError, match=r"nodes\.TG\.interfaces\.port1\.numa_node: the file says 0, the node says 1"):
        located(topology, on(1))
    assert located(topology, on(0)) == located(topology, on(None)) == topology


def test_a_machine_that_does_not_know_leaves_the_assumption() -> None:
    topology = lab()
    assert located(topology, on(None)).dut.numa_node == 0
    assert assumptions(located(topology, on(None)))[1].startswith("nodes.DUT1: no port says its numa_node, so NUMA 0")


def test_ports_of_a_dut_on_several_nodes() -> None:
    with pytest.raises(ConfigError, match=r"nodes\.DUT1\.interfaces: on NUMA nodes \[0, 1\]"):
        located(lab(), {"DUT1": {"port1": 0, "port2": 1}})
