"""The command line of testpmd from a plan, and what testpmd prints."""

import pytest

from resources.libraries.python.drivers.functions.testpmd import driver
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from tests.builders import plan_of, shipped

TOPOLOGY = shipped("local-ovs")
# Two siblings a core, as 1c with SMT is two data threads.
CORES = layout((cpu, cpu % 16, 0, 0) for cpu in range(32))
STARTED = """EAL: Detected CPU lcores: 2
EAL: RTE Version: 'DPDK 22.11.11'
mac packet forwarding - ports=2 - cores=2 - streams=2 - NUMA support enabled, MP allocation mode: native
Logical Core 1 (socket 0) forwards packets on 1 streams:
  RX P=0/Q=0 (socket 0) -> TX P=1/Q=0 (socket 0) peer=02:00:00:00:01:02
Logical Core 2 (socket 0) forwards packets on 1 streams:
  RX P=1/Q=0 (socket 0) -> TX P=0/Q=0 (socket 0) peer=02:00:00:00:01:01
"""


def plan_with_testpmd(size: NfSize = NfSize.ONE) -> Plan:
    return plan_of(TOPOLOGY, "CSC", 1, 2, CORES, nf_sizes=(size,), nf_kinds=(NfKind("testpmd"),))


def value(words: list[str], option: str) -> str:
    (found,) = values(words, option)
    return found


def values(words: list[str], option: str) -> list[str]:
    return [word.partition("=")[2] for word in words if word.partition("=")[0] == option]


@pytest.mark.parametrize(
    ("size", "threads", "forwarding"), [(NfSize.HALF, 1, "1"), (NfSize.ONE, 2, "2"), (NfSize.TWO, 4, "2")]
)
def test_lcores_are_on_the_planned_cpus(size: NfSize, threads: int, forwarding: str) -> None:
    plan = plan_with_testpmd(size)
    function = plan.functions[1]
    data = plan.cores.cpus(function.name)
    assert len(data) == threads
    words = driver.command(function, plan.cores)
    main = plan.cores.cpus(function.name, ThreadRole.MAIN)[0]
    assert value(words, "--lcores") == ",".join([f"0@{main}", *(f"{n}@{cpu}" for n, cpu in enumerate(data, 1))])
    assert value(words, "--main-lcore") == "0"
    # Two ports with a queue each: no more than two can forward.
    assert value(words, "--nb-cores") == forwarding


def test_its_ports_are_the_kernels_left_first_and_next_hops_get_frames_that_are_addressed_to_them() -> None:
    plan = plan_with_testpmd()
    first, second = plan.functions
    words = driver.command(first, plan.cores)
    assert values(words, "--eth-peer") == ["0,02:00:00:00:01:01", f"1,{second.left.mac}"]
    assert value(words, "--forward-mode") == "mac"
    left, right = values(words, "--vdev")
    assert left.startswith("net_af_packet0,iface=csn1x1i1,") and right.startswith("net_af_packet1,iface=csn1x1i2,")
    assert "framesz=2048,framecnt=2048" in left
    assert {"--no-huge", "--no-pci", "--no-telemetry", "--no-shconf"} <= set(words), "it touches nothing of others"
    assert words.index("--file-prefix=nf-1-1") < words.index("--") < words.index("--nb-cores=2")


def test_jumbo_frames_fit_into_one_buffer() -> None:
    plan = plan_with_testpmd()
    words = driver.command(plan.functions[0], plan.cores, largest_frame_bytes=9018)
    assert "framesz=16384" in values(words, "--vdev")[0]
    assert int(value(words, "--mbuf-size")) >= 9018 + 128
    assert int(words[words.index("-m") + 1]) * 2**20 > 16384 * (9018 + 128 + 128)


def test_each_queue_is_polled_by_the_lcore_on_its_planned_cpu() -> None:
    """Testpmd deals P0Q0, P1Q0, P0Q1, P1Q1 to its lcores: with four of them, one for each."""
    plan = plan_with_testpmd(NfSize.TWO)
    function = plan.functions[0]
    data = plan.cores.cpus(function.name)
    planned = ((0, 2), (1, 3))
    ports = [
        port.model_copy(update={"rx_queues": queues, "data_thread": queues[0]})
        for port, queues in zip(plan.ports(function.name), planned, strict=True)
    ]
    words = driver.command(function, plan.cores, ports=ports)
    assert (value(words, "--rxq"), value(words, "--txq"), value(words, "--nb-cores")) == ("2", "2", "4")
    cpus = [int(word.partition("@")[2]) for word in value(words, "--lcores").split(",")[1:]]
    polled = [ports[stream % 2].queues[stream // 2] for stream in range(4)]
    assert cpus == [data[thread] for thread in polled]
    both = [port.model_copy(update={"rx_queues": (0, 1), "data_thread": 0}) for port in ports]
    words = driver.command(function, plan_with_testpmd(NfSize.ONE).cores, ports=both)
    cpus = [int(word.partition("@")[2]) for word in value(words, "--lcores").split(",")[1:]]
    assert (value(words, "--nb-cores"), cpus) == ("2", list(plan_with_testpmd(NfSize.ONE).cores.cpus(function.name)))


def test_what_it_prints() -> None:
    assert driver.receiving_lcores(STARTED) == {(0, 0): 1, (1, 0): 2}
    assert driver.version(STARTED) == "22.11.11"
    assert driver.version("") == "unknown version"
    assert driver.not_ready(STARTED) == "it does not forward yet"
    assert driver.not_ready(STARTED + "Press enter to exit\n") == ""
