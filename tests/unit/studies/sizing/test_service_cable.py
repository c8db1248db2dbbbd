"""The cable by which a service is loaded in a lab: the first one from the generator, with who has its ends."""

from pathlib import Path

import pytest

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.planning.edges import service_cable

LABS = Path(__file__).parents[4] / "topologies" / "available"


@pytest.mark.parametrize("path", sorted(LABS.glob("*.yaml")), ids=lambda path: path.stem)
def test_it_joins_the_generator_with_the_first_dut(path: Path) -> None:
    lab = load_topology(path)
    near, far = service_cable(lab)
    assert near.nic is not None
    assert far.nic is not None
    ends = {
        lab.nodes[name].interfaces[nic.port].link
        for name, nic in ((lab.tg_name, near.nic), (next(iter(lab.duts)), far.nic))
    }
    assert len(ends) == 1, "both ports are on one link"
    assert (near.owner, near.interface, far.owner, far.interface) == (
        "service-load", "eth0", "service-bridge", "uplink",
    )  # fmt: skip
    assert near.mac != far.mac
    assert near.vlan is None and far.vlan is None
