"""Physical ports: how they are driven, on which NUMA node, what they carry, and whether cores can fill them."""

from typing import Any

import pytest

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.plan import Nic, Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.linerate import line_rate_pps, max_rate, port_rate_pps
from resources.libraries.python.planning.physical_ports import assumptions, attached, conflicts, how, located, silent
from resources.libraries.python.planning.placement.sender_threads import (
    counting_limit,
    too_few_senders,
)
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of
from tests.unit.planning.labs import lab
from tests.unit.planning.polled_ports import planned, polled, with_ports

DPDK = "ports of TG: port1 (0000:00:01.0) by DPDK (vfio-pci), port2 (0000:00:02.0) by DPDK (vfio-pci)"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "DPDK (vfio-pci)"),
        ({"uio_driver": "igb_uio"}, "DPDK (igb_uio)"),
        ({"vpp": {"ports": "native"}}, "the vSwitch's own driver (vfio-pci)"),
        ({"vpp": {"ports": "af_packet"}}, "the kernel (AF_PACKET sockets)"),
        ({"vswitch": "linux_bridge"}, "the kernel"),
    ],
)
def test_each_port_of_a_node_is_listed_with_its_driver(keys: dict[str, Any], words: str) -> None:
    of_dut = f"ports of DUT1: port1 (0000:01:01.0) by {words}, port2 (0000:01:02.0) by {words}"
    assert attached(lab(**{"containers": "linux_router", **keys})) == (DPDK, of_dut)


def test_a_port_that_keeps_the_kernel_driver_is_reported_as_such() -> None:
    topology = polled(lab(uio_driver="igb_uio"), driver="mlx5_core")
    assert attached(topology)[1].endswith("port2 (0000:01:02.0) by DPDK beside the kernel's driver")
    nics = {port.nic for port in planned(topology).ports("vswitch") if port.nic is not None}
    assert {how(nic) for nic in nics} == {"DPDK beside the kernel's driver"}
    assert {nic.uio_driver for nic in nics} == {None}


def on(number: int | None) -> dict[str, dict[str, int | None]]:
    return {name: dict.fromkeys(("port1", "port2"), number) for name in ("TG", "DUT1")}


def test_a_silent_file_is_completed() -> None:
    topology = lab(cpus=[{"cpus": "0-7", "cores": "0-7"}, {"cpus": "8-15", "cores": "8-15", "node": 1}])
    assert silent(topology)[:2] == ("nodes.TG.interfaces.port1", "nodes.TG.interfaces.port2")
    assert len(assumptions(topology)) == 2
    found = located(topology, {"DUT1": on(1)["DUT1"], "TG": on(0)["TG"]})
    assert (found.dut.numa_node, found.tg.numa_node) == (1, 0)
    assert silent(found) == assumptions(found) == ()
    unknown = located(lab(), on(None))
    assert unknown.dut.numa_node == 0
    assert assumptions(unknown)[1].startswith("nodes.DUT1: no port says its numa_node, so NUMA 0")


def test_a_file_that_contradicts_the_node_or_itself_is_refused_with_both_numbers() -> None:
    topology = with_ports(lab(), numa_node=0)
    (first, _) = conflicts("DUT1", topology.dut, on(1)["DUT1"])
    assert first.what.startswith("nodes.DUT1.interfaces.port1.numa_node: the file says 0, the node says 1")
    with pytest.raises(ConfigError, match=r"nodes\.TG\.interfaces\.port1\.numa_node: the file says 0, the node says 1"):
        located(topology, on(1))
    assert located(topology, on(0)) == located(topology, on(None)) == topology
    with pytest.raises(ConfigError, match=r"nodes\.DUT1\.interfaces: on NUMA nodes \[0, 1\]"):
        located(lab(), {"DUT1": {"port1": 0, "port2": 1}})


B64 = frame("64B")


@pytest.mark.parametrize(
    ("rate_bps", "name", "expected"),
    [
        (10e9, "64B", 14_880_952),
        (10e9, "1518B", 812_743),
        (25e9, "64B", 37_202_380),
        (100e9, "64B", 148_809_523),
        (100e9, "9000B", 1_385_809),
        (10e9, "IMIX", 10e9 / 8 / ((7 * 84 + 4 * 590 + 1538) / 12)),
    ],
)
def test_line_rates_are_those_of_ethernet(rate_bps: float, name: str, expected: float) -> None:
    assert line_rate_pps(rate_bps, frame(name)) == pytest.approx(expected, abs=1)


def test_a_nic_may_do_less_than_its_line() -> None:
    slow = Nic(port="port1", model="Intel-E810CQ")
    assert port_rate_pps(slow, B64) == (58_500_000, "Intel-E810CQ is limited to 58.5 Mpps")
    large = port_rate_pps(slow, frame("1518B"))
    assert large is not None and large[0] == pytest.approx(100e9 / 8 / 1538)
    slower = port_rate_pps(slow.model_copy(update={"rate_bps": 25 * 10**9}), B64)
    assert slower is not None and slower[0] == pytest.approx(37_202_380, abs=1), "the file says it is slower"
    assert port_rate_pps(Nic(port="port1", model="unheard-of"), B64) is None


@pytest.mark.parametrize(
    ("word", "duts", "flow_pps"),
    [
        ("link", 1, 10e9 / 8 / 84),
        ("mac", 1, 10e9 / 8 / 84 / 3),
        ("vlan", 1, 10e9 / 8 / 88 / 3),
        ("mac", 2, 10e9 / 8 / 84 / 3),
    ],
)
def test_instances_share_what_the_cable_carries(word: str, duts: int, flow_pps: float) -> None:
    topology = lab(duts, 3, discriminator=word)  # type: ignore[arg-type]
    plan = make_plan(topology, cell_of("CSC", 3), {})
    found = max_rate(plan, B64)
    assert found is not None and found.flow_pps == pytest.approx(flow_pps)
    assert found.direction_pps == pytest.approx(3 * flow_pps)
    assert found.aggregate_pps == pytest.approx(6 * flow_pps)
    assert ("shared by 3 instances" in found.reason) == (word != "link")
    assert found.reason.startswith("DUT1.port1: 10 Gb/s are 1")


def test_the_slowest_cable_on_the_way_decides_for_all() -> None:
    topology = lab(1, 2)
    slow = topology.dut.interfaces["port4"].model_copy(update={"rate_bps": 10**9})
    dut = topology.dut.model_copy(update={"interfaces": {**topology.dut.interfaces, "port4": slow}})
    slower = topology.model_copy(update={"nodes": {**topology.nodes, "DUT1": dut}})
    found = max_rate(make_plan(slower, cell_of("CSP", 2, 2), {}), B64)
    assert found is not None and found.aggregate_pps == pytest.approx(4 * 1e9 / 8 / 84), "flows are sent at one rate"
    assert found.reason.startswith("DUT1.port4: 1 Gb/s")
    assert max_rate(make_plan(with_ports(lab(), rate_bps=None), cell_of(), {}), B64) is None, "nothing is known"


def sending(cores: int, generator: str = "trex", **facts: Any) -> Plan:
    topology = with_ports(lab(tg_cores=32, generator_cores=cores, generator=generator), **{"rate_bps": 10**11, **facts})
    return make_plan(topology, cell_of(), {})


def test_two_ports_of_100_gb_with_small_frames_are_too_much_for_eight_cores() -> None:
    said = too_few_senders(sending(8), frame("64B"))
    assert said is not None and "297.6 Mpps from 8 sending cores is 37.2 Mpps each" in said
    assert "cannot send" in said
    assert "may not be able to send" in str(too_few_senders(sending(16), frame("64B")))
    assert "from 1 sending core is" in str(too_few_senders(sending(8, rx_queues=1), frame("64B")))
    assert too_few_senders(sending(8), frame("1518B")) is None
    assert too_few_senders(sending(4, rate_bps=10**10), frame("64B")) is None
    assert too_few_senders(sending(1, generator="ring"), frame("64B")) is None, "it does not poll"


def with_nics(cores: int = 4, pairs: int = 1, generator: str = "trex", ports: str = "auto", **nic: object) -> Topology:
    topology = lab(pairs=pairs, tg_cores=32, generator_cores=cores, generator=generator, trex={"ports": ports})
    return with_ports(topology, "TG", **nic)


COUNTS = (
    "TRex counts all packets of these NICs by its one receiving core, by its documentation about 5 Mpps in all "
    "directions together: a result near or above that is the generator's"
)


@pytest.mark.parametrize("driver", ["ice", "ixgbe", "mlx5_core"])
def test_the_core_that_counts_all_packets_is_named(driver: str) -> None:
    for cores in (1, 16):
        assert counting_limit(with_nics(cores, driver=driver).tg) == COUNTS
    assert make_plan(with_nics(driver=driver), cell_of(), {}).warnings == (COUNTS,)
    assert make_plan(with_nics(), cell_of(), {}).warnings == (), "i40e NICs count"


@pytest.mark.parametrize(
    "nic",
    [
        {"driver": "i40e"},
        {"driver": "virtio-pci"},
        {"driver": "igb", "rate_bps": 10**9},
        {"driver": "ice", "rate_bps": 10**9},
        {"driver": "ice", "ports": "af_packet"},
        {"driver": "ice", "generator": "ring"},
    ],
)
def test_no_core_counts_all_where_nics_do_or_packets_are_few(nic: dict[str, object]) -> None:
    assert counting_limit(with_nics(**nic).tg) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cores", "pairs", "limited"), [(1, 1, True), (2, 1, False), (2, 2, True), (4, 2, False), (16, 1, False)]
)
def test_virtual_functions_are_counted_by_one_core_where_a_pair_has_one_sender(
    cores: int, pairs: int, limited: bool
) -> None:
    for nic in ({"driver": "i40e", "nic_vfs": 1}, {"driver": "iavf"}):
        assert (counting_limit(with_nics(cores, pairs, **nic).tg) == COUNTS) is limited
