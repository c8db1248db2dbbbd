"""How the ports of a lab are driven, in the words of the plan."""

from typing import Any

import pytest

from resources.libraries.python.planning.physical_ports import attached, how
from tests.unit.drivers.sim.sim_bed import TOPOLOGY
from tests.unit.planning.labs import lab
from tests.unit.planning.polled_ports import planned, polled

DPDK = "ports of TG: port1 (0000:00:01.0) by DPDK (vfio-pci), port2 (0000:00:02.0) by DPDK (vfio-pci)"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "DPDK (vfio-pci)"),
        ({"uio_driver": "igb_uio"}, "DPDK (igb_uio)"),
        ({"vpp": {"ports": "native"}}, "the vSwitch's own driver (vfio-pci)"),
        ({"vpp": {"ports": "af_xdp"}}, "AF_XDP sockets"),
        ({"vpp": {"ports": "af_packet"}}, "the kernel (AF_PACKET sockets)"),
        (
            {"vswitch": "ovs", "containers": "linux_router", "ovs": {"ports": "system"}},
            "the kernel (sockets of Open vSwitch)",
        ),
        ({"vswitch": "ovs", "containers": "linux_router", "ovs": {"ports": "kernel"}}, "the kernel"),
        ({"vswitch": "linux_bridge", "containers": "linux_router"}, "the kernel"),
    ],
)
def test_each_port_of_a_node_is_listed_with_its_driver(keys: dict[str, Any], words: str) -> None:
    of_dut = f"ports of DUT1: port1 (0000:01:01.0) by {words}, port2 (0000:01:02.0) by {words}"
    assert attached(lab(**keys)) == (DPDK, of_dut)


def test_a_port_without_a_pci_address_is_named_by_its_device() -> None:
    topology = polled(lab(vpp={"ports": "af_packet"}), pci_address=None, driver="veth")
    assert attached(topology)[1].startswith("ports of DUT1: port1 (eth1) by the kernel")


def test_a_port_that_keeps_the_kernel_driver_is_reported_as_such() -> None:
    topology = polled(lab(uio_driver="igb_uio"), driver="mlx5_core")
    assert attached(topology)[1].endswith("port2 (0000:01:02.0) by DPDK beside the kernel's driver")
    nics = {port.nic for port in planned(topology).ports("vswitch") if port.nic is not None}
    assert {how(nic) for nic in nics} == {"DPDK beside the kernel's driver"}
    assert {nic.uio_driver for nic in nics} == {None}


def test_the_words_for_a_port_of_a_plan_are_those_of_its_topology() -> None:
    nics = [port.nic for port in planned(lab(uio_driver="igb_uio")).ports("vswitch") if port.nic is not None]
    assert [how(nic) for nic in nics] == ["DPDK (igb_uio)"] * 2


def test_there_is_no_remark_without_physical_ports() -> None:
    assert attached(TOPOLOGY) == ()
