"""Suite ids tell vSwitches and kinds of NF apart: cells that are measured on different things never share a name."""

from itertools import product
from pathlib import Path

from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.names import suite_id

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
ROUTER, TESTPMD = NfKind.LINUX_ROUTER, NfKind.TESTPMD


def topology(vswitch: str) -> Topology:
    read = load_topology(TOPOLOGIES / "local-ovs.yaml")
    dut = read.dut.model_copy(update={"vswitch": vswitch})
    return read.model_copy(update={"nodes": {"TG": read.nodes["TG"], "DUT1": dut}})


def name(vswitch: str, service_type: ServiceType, kinds: tuple[NfKind, ...]) -> str:
    cell = Cell(service_type=service_type, nf_chains=2, nf_nodes=2, nf_kinds=kinds)
    return suite_id(topology(vswitch), cell, threads_per_nf=1)


def test_no_two_of_them_have_one_name() -> None:
    kinds = [(ROUTER, ROUTER), (TESTPMD, TESTPMD), (ROUTER, TESTPMD), (TESTPMD, ROUTER)]
    choices = list(product(["linux_bridge", "ovs"], [ServiceType.CSC, ServiceType.CSP], kinds))
    assert len({name(*choice) for choice in choices}) == len(choices)


def test_they_read_as_csit_writes_them() -> None:
    assert name("ovs", ServiceType.CSC, (ROUTER, TESTPMD)) == "eth-l2bd-2ch-8ovs-4dcr1t-lnxip4+testpmd"
    assert name("linux_bridge", ServiceType.CSP, (TESTPMD,)) == "eth-l2bd-2pl-4veth-4dcr1t-testpmd"


def test_the_testbeds_own_kind_and_the_same_kind_asked_for_are_one() -> None:
    """They are the same system: their results belong together."""
    assert name("ovs", ServiceType.CSC, ()) == name("ovs", ServiceType.CSC, (ROUTER,))
