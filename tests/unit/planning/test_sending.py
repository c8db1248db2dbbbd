"""Whether a generator's cores can send what its cables carry."""

import pytest

from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.planning.placement.sender_threads import senders_per_pair, too_few_senders
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
    nodes = {
        "TG": tg.model_copy(update=changed),
        "DUT1": topology.dut.model_copy(update={"interfaces": dut_ports}),
    }
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
