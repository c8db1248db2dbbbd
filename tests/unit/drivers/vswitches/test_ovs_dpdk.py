"""Open vSwitch on DPDK: physical ports by PCI address, NFs over vhost-user, memory and threads from the plan."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.testpmd.driver import command
from resources.libraries.python.drivers.host.cpu.data_threads import DataThreads
from resources.libraries.python.drivers.host.links.fabric import Fabric, PortTable
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vswitches.ovs.driver import OpenVSwitch, link_states, port_counters
from resources.libraries.python.drivers.vswitches.ovs.transaction import (
    AF_XDP,
    PHYSICAL,
    VHOST,
    by_port,
    of_daemon,
    of_plan,
    sleep_us,
)
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.testbed.memory import MemoryNode
from resources.libraries.python.planning.memory import in_pages, need
from resources.libraries.python.planning.plan import make_plan
from tests.unit.planning.labs import lab

CSC = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
SHOWN = """netdev@ovs-netdev:
  lookups: hit:1954 missed:2 lost:0
  port 0: ovs-netdev (tap)
    RX packets:0 errors:0 dropped:0 overruns:0 frame:0
    TX packets:0 errors:0 dropped:0 aborted:0 carrier:0
  port 1: csv1x1i1 (dpdkvhostuserclient: mtu=1500)
, could not retrieve stats (Protocol error)  port 2: csv1p2 (dpdk: mtu=1500)
    RX packets:978 errors:1 dropped:2 overruns:? frame:?
    TX packets:976 errors:0 dropped:5 aborted:? carrier:?
    collisions:?
"""


def dpdk_plan(containers: str = "testpmd", cell: Cell = CSC, **keys: object) -> Plan:
    return make_plan(lab(1, vswitch="ovs", containers=containers, generator="ring", **keys), cell, {})  # type: ignore[arg-type]


def test_nfs_of_dpdk_share_memory_with_it_and_others_do_not() -> None:
    media = [link.medium for link in dpdk_plan().links]
    assert media == [Medium.CABLE, Medium.VHOST_USER, Medium.VHOST_USER, Medium.CABLE]
    assert Medium.VHOST_USER not in [link.medium for link in dpdk_plan("linux_router").links]
    assert Medium.VHOST_USER not in [link.medium for link in dpdk_plan(ovs={"ports": "system"}).links]
    kinds = by_port(dpdk_plan("linux_router"), "vswitch", AF_XDP)
    assert list(kinds.values()) == [PHYSICAL, AF_XDP, AF_XDP, PHYSICAL]


def test_its_ports() -> None:
    plan = dpdk_plan()
    sockets = {"csv1x1i1": Path("/run/a.vhost"), "csv1x1i2": Path("/run/b.vhost")}
    words = of_plan(plan, AF_XDP, 1500, sockets=sockets)
    text = " ".join(words)
    assert "set Interface csv1p1 type=dpdk options:dpdk-devargs=0000:01:01.0 options:n_rxq=1 mtu_request=1500" in text
    assert "set Interface csv1x1i1 type=dpdkvhostuserclient options:vhost-server-path=/run/a.vhost" in text
    cpu = plan.cores.cpus("vswitch")[0]
    assert words.count(f"other_config:pmd-rxq-affinity=0:{cpu}") == 4
    assert set(by_port(plan, "vswitch", AF_XDP).values()) == {PHYSICAL, VHOST}


def test_memory_is_on_the_node_of_the_ports_and_leaves_no_files() -> None:
    groups = [{"cpus": "0-7", "cores": "0-7"}, {"cpus": "8-31", "cores": "8-31", "node": 1}]
    topology = lab(1, vswitch="ovs", containers="testpmd", generator="ring", cpus=groups)
    ports = {name: port.model_copy(update={"numa_node": 1}) for name, port in topology.dut.interfaces.items()}
    dut = topology.dut.model_copy(update={"interfaces": ports})
    plan = make_plan(topology.model_copy(update={"nodes": {**topology.nodes, "DUT1": dut}}), CSC, {})
    settings = of_daemon(plan, "auto", socket_memory_mb=512)
    assert 'other_config:dpdk-socket-mem="0,512"' in settings
    assert 'other_config:dpdk-socket-limit="0,512"' in settings
    (extra,) = [each for each in settings if "dpdk-extra" in each]
    assert "-a 0000:01:01.0 -a 0000:01:02.0 --in-memory" in extra
    assert "no-huge" not in extra
    assert "other_config:dpdk-init=true" in settings


def test_threads_that_poll_physical_ports_on_cpus_of_their_own_never_sleep() -> None:
    assert sleep_us(dpdk_plan()) == 0
    assert sleep_us(dpdk_plan(cores=2, oversubscribe=True)) == 100


def test_the_longest_sleep_is_that_of_the_topology_where_it_says_one() -> None:
    assert sleep_us(dpdk_plan(), asked_us=250) == 250
    assert "pmd-sleep-max=0" in " ".join(of_daemon(dpdk_plan(cores=2, oversubscribe=True), "auto", asked_sleep_us=0))
    assert sleep_us(dpdk_plan(ovs={"ports": "system"})) == 100


def test_testpmd_listens_for_the_vswitch_in_huge_pages() -> None:
    plan = dpdk_plan()
    function = plan.functions[0]
    words = command(
        function, plan.cores, vhost={function.left.name: Path("/run/a"), function.right.name: Path("/run/b")}
    )
    devices = [word for word in words if word.startswith("--vdev")]
    assert devices[0].startswith("--vdev=virtio_user0,path=/run/a,server=1,")
    assert devices[1].endswith(f"mac={function.right.mac}")
    assert {"--in-memory", "--single-file-segments"} <= set(words)
    assert "--no-huge" not in words


def test_counters_of_open_vswitch_itself() -> None:
    assert port_counters(SHOWN)["csv1p2"] == InterfaceCounters(978, 976, 3, 5)
    assert "csv1x1i1" not in port_counters(SHOWN)


def test_a_port_beside_the_kernel_has_the_counters_and_threads_of_open_vswitch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel keeps an mlx5 port and sees no packet of it: its counters stand still, its threads receive nothing."""
    topology = lab(1, vswitch="ovs", containers="testpmd", generator="ring")
    ports = {name: port.model_copy(update={"driver": "mlx5_core"}) for name, port in topology.dut.interfaces.items()}
    dut = topology.dut.model_copy(update={"interfaces": ports})
    plan = make_plan(topology.model_copy(update={"nodes": {**topology.nodes, "DUT1": dut}}), CSC, {})
    lock = MachineLock()
    fabric = Fabric(plan, lock, node="DUT1")
    none = InterfaceCounters(0, 0, 0, 0)
    monkeypatch.setattr(PortTable, "counters", lambda table, owners: {n: none for o in owners for n in table.of(o)})
    monkeypatch.setattr(PortTable, "down", lambda *_: [])
    monkeypatch.setattr(DataThreads, "affinity", lambda _, names: dict.fromkeys(names, frozenset[int]()))
    switch = OpenVSwitch(dut, DriverContext(plan, fabric, lock, 1518))
    switch._kinds = by_port(plan, "vswitch", AF_XDP)
    monkeypatch.setattr(OpenVSwitch, "_running", SimpleNamespace(ask=lambda *_: SHOWN))
    assert switch.counters() == {"csv1p2": InterfaceCounters(978, 976, 3, 5)}
    assert fabric.affinity(["vswitch"]) == {}
    assert fabric.problems(["vswitch"]) == ()


LINKS = '{"data":[["csv1p1","up"],["csv1p2","down"],["csv1x1i1","down"],["csit",["set",[]]]],"headings":[]}'


def test_states_of_links() -> None:
    assert link_states(LINKS) == {"csv1p1": "up", "csv1p2": "down", "csv1x1i1": "down"}
    with pytest.raises(CsitError, match="did not print a table"):
        link_states("nothing")


@pytest.mark.parametrize(
    ("asked", "printed", "in_kernel", "expected"),
    [
        ("auto", LINKS, [], ("csv1p2",)),  # shared memory is no cable
        ("auto", '{"data":[["csv1p2","up"]]}', [], ("csv1p1",)),  # of one the state is not known yet
        ("auto", '{"data":[["csv1p1","up"],["csv1p2","up"]]}', [], ()),
        ("system", LINKS, ["csv1p2", "csv1x1i1"], ("csv1p2",)),  # ports of the kernel, by their carrier
    ],
)
def test_cables_without_a_link(
    monkeypatch: pytest.MonkeyPatch, asked: str, printed: str, in_kernel: list[str], expected: tuple[str, ...]
) -> None:
    containers = "testpmd" if asked == "auto" else "linux_router"
    topology = lab(1, vswitch="ovs", containers=containers, generator="ring", ovs={"ports": asked})
    plan, lock = make_plan(topology, CSC, {}), MachineLock()
    polled = {"csv1p1", "csv1p2"} if asked == "auto" else set()
    fabric = Fabric(plan, lock, node="DUT1", leave=polled)
    monkeypatch.setattr(PortTable, "down", lambda *_: in_kernel)
    monkeypatch.setattr(OpenVSwitch, "_running", SimpleNamespace(read=lambda *_: printed))
    switch = OpenVSwitch(topology.dut, DriverContext(plan, fabric, lock, 1518))
    switch._kinds = by_port(plan, "vswitch", AF_XDP)
    assert switch.without_link() == expected


def test_huge_pages_of_a_cell_are_counted_by_size() -> None:
    topology = lab(1, vswitch="ovs", containers="testpmd", generator="ring")
    needs = need(topology, CSC)
    assert (needs.hugepages_mb, needs.pages_1gb) == (1024 + 336, 2)
    assert in_pages(needs, MemoryNode(total_mb=8192, hugepages_2mb=700)) == "680 of 2 MB on NUMA 0"
    gigantic = MemoryNode(total_mb=8192, hugepages_1gb=2)
    assert in_pages(needs, gigantic) == "2 of 1 GB on NUMA 0"
    assert needs.usable_mb(gigantic) == needs.hugepages_mb
    assert needs.usable_mb(MemoryNode(total_mb=8192, hugepages_1gb=1)) == 0
