"""Whether a generator's cores can send what its cables carry."""

import pytest

from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.placement.sender_threads import (
    counting_limit,
    senders_per_pair,
    too_few_senders,
)
from resources.libraries.python.planning.plan import make_plan
from tests.unit.planning.labs import lab


def planned(cores: int, *, rate_bps: int = 10**11, rx_queues: int | None = None, generator: str = "trex") -> Plan:
    topology = lab(tg_cores=32, generator=generator)
    tg = topology.tg
    ports = {
        name: port.model_copy(update={"rate_bps": rate_bps, "rx_queues": rx_queues})
        for name, port in tg.interfaces.items()
    }
    changed = {"generator": tg.generator.model_copy(update={"cores": cores}), "interfaces": ports}
    dut_ports = {name: port.model_copy(update={"rate_bps": rate_bps}) for name, port in topology.dut.interfaces.items()}
    nodes = {"TG": tg.model_copy(update=changed), "DUT1": topology.dut.model_copy(update={"interfaces": dut_ports})}
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    return make_plan(topology.model_copy(update={"nodes": nodes}), cell, {})


@pytest.mark.parametrize(
    ("cpus", "pairs", "queues", "senders"), [(3, 1, 64, 1), (10, 1, 64, 8), (10, 3, 64, 2), (10, 1, 4, 4), (2, 1, 9, 1)]
)
def test_cpus_are_shared_evenly(cpus: int, pairs: int, queues: int, senders: int) -> None:
    assert senders_per_pair(cpus, pairs, queues) == senders


def test_two_ports_of_100_gb_with_small_frames_are_too_much_for_eight_cores() -> None:
    said = too_few_senders(planned(8), frame("64B"))
    assert said is not None
    assert "297.6 Mpps from 8 sending cores is 37.2 Mpps each" in said
    assert "cannot send" in said
    assert "may not be able to send" in str(too_few_senders(planned(16), frame("64B")))


def test_large_frames_or_slow_ports_are_no_trouble() -> None:
    assert too_few_senders(planned(8), frame("1518B")) is None
    assert too_few_senders(planned(4, rate_bps=10**10), frame("64B")) is None


def test_a_port_with_one_queue_has_one_sender() -> None:
    assert "from 1 sending core is" in str(too_few_senders(planned(8, rx_queues=1), frame("64B")))


def test_there_is_no_remark_about_generators_that_do_not_poll() -> None:
    assert too_few_senders(planned(1, generator="ring"), frame("64B")) is None


def with_nics(cores: int = 4, pairs: int = 1, generator: str = "trex", ports: str = "auto", **nic: object) -> Topology:
    topology = lab(pairs=pairs, tg_cores=32, generator=generator, trex={"ports": ports})
    interfaces = {name: port.model_copy(update=nic) for name, port in topology.tg.interfaces.items()}
    of_cores = topology.tg.generator.model_copy(update={"cores": cores})
    tg = topology.tg.model_copy(update={"interfaces": interfaces, "generator": of_cores})
    return topology.model_copy(update={"nodes": {**topology.nodes, "TG": tg}})


COUNTS = (
    "TRex counts all packets of these NICs by its one receiving core, by its documentation about 5 Mpps in all "
    "directions together: a result near or above that is the generator's"
)


@pytest.mark.parametrize("driver", ["ice", "ixgbe", "mlx5_core"])
def test_the_core_that_counts_all_packets_is_named(driver: str) -> None:
    for cores in (1, 16):
        assert counting_limit(with_nics(cores, driver=driver).tg) == COUNTS
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    assert make_plan(with_nics(driver=driver), cell, {}).warnings == (COUNTS,)
    assert make_plan(with_nics(), cell, {}).warnings == (), "i40e NICs count"


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
