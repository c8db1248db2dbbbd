"""What is asked of Open vSwitch, from a plan; and what version 3.1 answers, as it was printed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.testpmd.driver import command
from resources.libraries.python.drivers.host.cpu.data_threads import DataThreads
from resources.libraries.python.drivers.host.links.fabric import Fabric, PortTable
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vswitches.ovs import Ovs, driver
from resources.libraries.python.drivers.vswitches.ovs import transaction as ovs
from resources.libraries.python.drivers.vswitches.ovs.daemons import Daemons
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.memory import need
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of, cpus, plan_of, shipped
from tests.unit.planning.labs import lab
from tests.unit.planning.polled_ports import planned, polled


def bridge_plan(rows: int, columns: int) -> Plan:
    return plan_of(shipped("local-ovs"), "CSC", rows, columns, cpus(16), vs_dtc=2)


def test_more_segments_than_vlans_and_copies_between_more_than_two_ports_are_refused() -> None:
    plan = bridge_plan(2, 2)
    segment = plan.segments[0].model_copy(update={"members": ("a", "b", "c"), "copies": ("t",)})
    with pytest.raises(Unsupported, match=f"{segment.name} has 3 members: copies are made between two only"):
        ovs.rules_of_copies(plan.model_copy(update={"segments": (segment,)}))
    many = plan.model_copy(update={"segments": (plan.segments * 683)[:4094]})
    with pytest.raises(Unsupported, match="4094 L2 segments, but one bridge of Open vSwitch has 4093 VLANs"):
        ovs.of_plan(many, ovs.SYSTEM, 1500)


def test_each_of_several_queues_has_the_cpu_of_its_data_thread() -> None:
    port = bridge_plan(1, 1).ports(VSWITCH)[0]
    one, two = ovs.columns(ovs.DPDK, port, [3], 1500)[-1], ovs.columns(ovs.DPDK, port, [3, 5], 1500)[-1]
    assert (one, two) == ("other_config:pmd-rxq-affinity=0:3", "other_config:pmd-rxq-affinity=0:3,1:5")
    assert "options:n_rxq=2" in ovs.columns(ovs.AF_XDP, port, [3, 5], 1500)


def test_only_dpdk_is_initialized_and_its_buffers_hold_jumbo_frames() -> None:
    plan = bridge_plan(1, 1)
    assert not [word for word in ovs.of_daemon(plan, "auto") if "dpdk" in word]
    assert "other_config:dpdk-init=true" in ovs.of_daemon(plan, "dpdk")
    assert ovs.cpu_mask((0, 33)) == "0x200000001"
    port = plan.ports(VSWITCH)[0]
    words = " ".join(ovs.columns(ovs.DPDK, port, [3], 9000))
    assert f"iface={port.interface}," in words and "framesz=16384" in words and "mtu_request=9000" in words


@pytest.mark.parametrize(
    ("asked", "offered", "datapaths", "kind"),
    [
        ("auto", {"afxdp", "system"}, set(), ovs.AF_XDP),
        ("auto", {"system", "tap"}, set(), ovs.SYSTEM),
        ("system", {"afxdp", "system"}, set(), ovs.SYSTEM),
        ("dpdk", {"dpdk", "system"}, set(), ovs.DPDK),
        ("kernel", {"internal"}, {"netdev", "system"}, ovs.KERNEL),
        ("dpdk", {"tap", "system"}, set(), "no ports of type dpdk; it has system, tap"),
        ("kernel", {"internal", "system"}, {"netdev"}, r"no datapath of Open vSwitch \(modprobe openvswitch\)"),
    ],
)
def test_the_kind_of_ports_asked_for(
    asked: str, offered: set[str], datapaths: set[str], kind: ovs.PortKind | str
) -> None:
    if isinstance(kind, str):
        with pytest.raises(Unsupported, match=kind):
            ovs.choose(asked, offered, datapaths)
        return
    assert ovs.choose(asked, offered, datapaths) is kind
    words = ovs.of_plan(bridge_plan(1, 1), kind, 1500)
    assert f"datapath_type={'system' if kind is ovs.KERNEL else 'netdev'}" in words


def test_memory_and_frame_size_are_looked_at_first() -> None:
    ovs.check_size(ovs.AF_XDP, 40, 1518, 4_000_000_000)
    ovs.check_size(ovs.SYSTEM, 240, 9018, 0)
    with pytest.raises(Unsupported, match=r"240 af_xdp ports of Open vSwitch need 18\.2 GB of memory, 4\.0 GB are"):
        ovs.check_size(ovs.AF_XDP, 240, 64, 4_000_000_000)
    with pytest.raises(Unsupported, match="carry frames up to 3498 B, asked for are 9018 B"):
        ovs.check_size(ovs.AF_XDP, 4, 9018, 4_000_000_000)


def test_rules_of_a_reload_match_no_packet_and_replace_each_of_the_earlier_ones() -> None:
    plan = bridge_plan(2, 1)
    first, second = ovs.rules(plan, 300, 1), ovs.rules(plan, 300, 2)
    assert len(first) == 301 and first[-1] == "cookie=1,priority=0,actions=NORMAL"
    assert [rule.replace("cookie=2", "cookie=1") for rule in second] == first
    matched = {rule.partition("nw_src=")[2].partition(",")[0] for rule in first[:-1]}
    assert len(matched) == 300 and {"198.18.0.0", "198.18.1.43"} <= matched
    assert not matched & {flow.source_ip for flow in plan.flows}


RULES = 300


def test_rules_of_a_reload_are_written_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node: Any = SimpleNamespace(settings=lambda _: Ovs(openflow_rules=RULES))
    plan = bridge_plan(1, 1)
    switch: Any = driver.OpenVSwitch(node, DriverContext(plan, Mock(), Mock(), 1518))
    switch._daemons = Daemons(tmp_path, "system")
    run = Mock(return_value="cookie=0x1, drop\n" * RULES)
    monkeypatch.setattr(switch._daemons, "_run", run)
    steps = switch.steps(VSWITCH, PartEvent.RELOAD)
    (file,) = tmp_path.glob("*.rules")
    text = file.read_text(encoding="utf-8")
    assert text.count("cookie=1,") == RULES + 1 and not run.called
    monkeypatch.setattr(switch._daemons, "write_rules", Mock(side_effect=AssertionError))
    steps.begin()
    assert [call.args[0][-3:] for call in run.call_args_list] == [
        ["replace-flows", f"unix:{tmp_path}/csit.mgmt", str(file)]
    ]
    assert file.read_text(encoding="utf-8") == text
    with pytest.raises(CsitError, match=f"^Open vSwitch has {RULES} of the {RULES + 1} OpenFlow rules"):
        steps.after()


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


def dpdk_lab(**keys: Any) -> Topology:
    return lab(1, **{"vswitch": "ovs", "containers": "testpmd", "generator": "ring", **keys})


def dpdk_plan(**keys: Any) -> Plan:
    return make_plan(dpdk_lab(**keys), cell_of(), {})


def test_nfs_of_dpdk_share_memory_with_it_and_others_do_not() -> None:
    plan = dpdk_plan()
    assert [link.medium for link in plan.links] == [Medium.CABLE, Medium.VHOST_USER, Medium.VHOST_USER, Medium.CABLE]
    assert set(ovs.by_port(plan, "vswitch", ovs.AF_XDP).values()) == {ovs.PHYSICAL, ovs.VHOST}
    for others in (dpdk_plan(containers="linux_router"), dpdk_plan(ovs={"ports": "system"})):
        assert Medium.VHOST_USER not in [link.medium for link in others.links]
    kinds = ovs.by_port(dpdk_plan(containers="linux_router"), "vswitch", ovs.AF_XDP)
    assert list(kinds.values()) == [ovs.PHYSICAL, ovs.AF_XDP, ovs.AF_XDP, ovs.PHYSICAL]
    sockets = {"csv1x1i1": Path("/run/a.vhost"), "csv1x1i2": Path("/run/b.vhost")}
    words = ovs.of_plan(plan, ovs.AF_XDP, 1500, sockets=sockets)
    text = " ".join(words)
    assert "set Interface csv1p1 type=dpdk options:dpdk-devargs=0000:01:01.0 options:n_rxq=1 mtu_request=1500" in text
    assert "set Interface csv1x1i1 type=dpdkvhostuserclient options:vhost-server-path=/run/a.vhost" in text
    assert words.count(f"other_config:pmd-rxq-affinity=0:{plan.cores.cpus('vswitch')[0]}") == 4


def test_memory_is_on_the_node_of_the_ports_and_leaves_no_files() -> None:
    groups = [{"cpus": "0-7", "cores": "0-7"}, {"cpus": "8-31", "cores": "8-31", "node": 1}]
    plan = planned(polled(dpdk_lab(cpus=groups), driver="i40e", numa_node=1))
    settings = ovs.of_daemon(plan, "auto", socket_memory_mb=512)
    assert {'other_config:dpdk-socket-mem="0,512"', 'other_config:dpdk-socket-limit="0,512"'} <= set(settings)
    (extra,) = [each for each in settings if "dpdk-extra" in each]
    assert "-a 0000:01:01.0 -a 0000:01:02.0 --in-memory" in extra
    assert "no-huge" not in extra
    assert "other_config:dpdk-init=true" in settings
    needs = need(dpdk_lab(), cell_of())
    assert (needs.hugepages_mb, needs.pages_1gb) == (1024 + 336, 2)


def test_threads_that_poll_physical_ports_on_cpus_of_their_own_never_sleep_unless_the_topology_says_so() -> None:
    assert ovs.sleep_us(dpdk_plan()) == 0
    assert ovs.sleep_us(dpdk_plan(cores=2, oversubscribe=True)) == 100
    assert ovs.sleep_us(dpdk_plan(ovs={"ports": "system"})) == 100
    assert ovs.sleep_us(dpdk_plan(), asked_us=250) == 250
    settings = ovs.of_daemon(dpdk_plan(cores=2, oversubscribe=True), "auto", asked_sleep_us=0)
    assert "other_config:pmd-sleep-max=0" in settings


def test_testpmd_listens_for_the_vswitch_in_huge_pages() -> None:
    plan = dpdk_plan()
    left, right = plan.functions[0].left, plan.functions[0].right
    words = command(plan.functions[0], plan.cores, vhost={left.name: Path("/run/a"), right.name: Path("/run/b")})
    devices = [word for word in words if word.startswith("--vdev")]
    assert devices[0].startswith("--vdev=virtio_user0,path=/run/a,server=1,")
    assert devices[1].endswith(f"mac={right.mac}")
    assert {"--in-memory", "--single-file-segments"} <= set(words) and "--no-huge" not in words


def test_a_port_beside_the_kernel_has_the_counters_and_threads_of_open_vswitch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel keeps an mlx5 port and sees no packet of it: its counters stand still, its threads receive nothing."""
    assert driver.port_counters(SHOWN)["csv1p2"] == InterfaceCounters(978, 976, 3, 5)
    assert "csv1x1i1" not in driver.port_counters(SHOWN)
    topology = polled(dpdk_lab(), driver="mlx5_core")
    plan = make_plan(topology, cell_of(), {})
    lock = MachineLock()
    fabric = Fabric(plan, lock, node="DUT1")
    none = InterfaceCounters(0, 0, 0, 0)
    monkeypatch.setattr(PortTable, "counters", lambda table, owners: {n: none for o in owners for n in table.of(o)})
    monkeypatch.setattr(PortTable, "down", lambda *_: [])
    monkeypatch.setattr(DataThreads, "affinity", lambda _, names: dict.fromkeys(names, frozenset[int]()))
    switch = driver.OpenVSwitch(topology.dut, DriverContext(plan, fabric, lock, 1518))
    switch._kinds = ovs.by_port(plan, "vswitch", ovs.AF_XDP)
    monkeypatch.setattr(driver.OpenVSwitch, "_running", SimpleNamespace(ask=lambda *_: SHOWN))
    assert switch.counters() == {"csv1p2": InterfaceCounters(978, 976, 3, 5)}
    assert fabric.affinity(["vswitch"]) == {}
    assert fabric.problems(["vswitch"]) == ()


LINKS = '{"data":[["csv1p1","up"],["csv1p2","down"],["csv1x1i1","down"],["csit",["set",[]]]],"headings":[]}'


def test_states_of_links_and_interfaces_with_an_error() -> None:
    assert driver.link_states(LINKS) == {"csv1p1": "up", "csv1p2": "down", "csv1x1i1": "down"}
    printed = '{"data":[["csv1p1","no such device"],["csv1p2",""],["csit",["set",[]]]],"headings":["name","error"]}'
    assert driver.interface_errors(printed) == {"csv1p1": "no such device"}
    for no_table in ("", "[]", "{}", '{"rows": []}', "nothing"):
        with pytest.raises(CsitError, match="did not print a table"):
            driver.interface_errors(no_table)
        with pytest.raises(CsitError, match="did not print a table"):
            driver.link_states(no_table)


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
    topology = dpdk_lab(containers="testpmd" if asked == "auto" else "linux_router", ovs={"ports": asked})
    plan, lock = make_plan(topology, cell_of(), {}), MachineLock()
    polled = {"csv1p1", "csv1p2"} if asked == "auto" else set()
    fabric = Fabric(plan, lock, node="DUT1", leave=polled)
    monkeypatch.setattr(PortTable, "down", lambda *_: in_kernel)
    monkeypatch.setattr(driver.OpenVSwitch, "_running", SimpleNamespace(read=lambda *_: printed))
    switch = driver.OpenVSwitch(topology.dut, DriverContext(plan, fabric, lock, 1518))
    switch._kinds = ovs.by_port(plan, "vswitch", ovs.AF_XDP)
    assert switch.without_link() == expected


@pytest.mark.parametrize(
    ("said", "number", "sleeps"),
    [
        ("ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.11\n", "3.1.0", True),
        ("ovs-vswitchd (Open vSwitch) 3.0.3\n", "3.0.3", False),
        ("nothing of the kind", "unknown version", False),
    ],
)
def test_versions(said: str, number: str, sleeps: bool) -> None:
    assert driver.version(said) == number
    assert driver.pmd_sleeps(number) is sleeps


KILLED = "ovs-vswitchd was killed by SIGKILL; it said last: nothing"


@pytest.mark.parametrize(("problem", "reason"), [(KILLED, f"^{KILLED}$"), ("", "ended with 1: cannot connect")])
def test_a_refused_command_names_the_daemon_that_has_ended(tmp_path: Path, problem: str, reason: str) -> None:
    daemons: Any = Daemons(tmp_path, "system")
    daemons.forwarder = SimpleNamespace(started=True, problem=lambda: problem)
    daemons.database = SimpleNamespace(problem=lambda: "")
    with pytest.raises(CsitError, match=reason):
        daemons._run(["sh", "-c", "echo cannot connect: Connection refused >&2; exit 1"], 60.0)


STATS_SHOW = """pmd thread numa_id 0 core_id 2:
  packets received: 24
  avg. datapath passes per packet: 1.00
  emc hits: 0
  megaflow hits: 23
  miss with success upcall: 1
  processing cycles: 2469389992 (11.91%)
  avg processing cycles per packet: 102891249.67 (2469389992/24)
main thread:
  packets received: 828
  emc hits: 790
"""
PERF_SHOW = """
Time: 18:06:15.193
Measurement duration: 15.178 s

pmd thread numa_id 0 core_id 2:

  Iterations:              3025336  (8732249338.26 us/it)
  - Used TSC cycles:   26417988284  (174054475451.3 % of total cycles)
  - busy iterations:            12  (  9.3 % of used cycles)
  Rx packets:                   24  (0 Kpps, 102891250 cycles/pkt)
  - Megaflow hits:              23  ( 95.8 %, 1.00 subtbl lookups/hit)
  Tx packets:                   48  (0 Kpps)
  Tx batches:                   16  (3.00 pkts/batch)
"""
"""Some of the lines."""


def test_a_thread_has_its_clocks_and_batches_and_where_packets_were_looked_up() -> None:
    rows = {row.node: row for row in driver.node_costs("vswitch", STATS_SHOW, PERF_SHOW)}
    assert {(row.part, row.thread) for row in rows.values()} == {("vswitch", "core 2")}
    assert {name: row.packets for name, row in rows.items()} == {
        "processing": 24, "megaflow classifier": 23, "upcall": 1, "output": 48,
    }  # fmt: skip
    assert rows["processing"].cost == pytest.approx(102891249.67, abs=0.01)
    assert rows["processing"].calls == 12 and rows["output"].calls == 16
    assert rows["upcall"].cost is None
    one, _, _ = STATS_SHOW.partition("main")
    two = one + one.replace("core_id 2", "core_id 14")
    each = [row for row in driver.node_costs("vswitch", two, PERF_SHOW) if row.node == "processing"]
    assert [(row.thread, row.calls) for row in each] == [("core 2", 12), ("core 14", None)]


@pytest.mark.parametrize("number", ["0", "9" * 400])
def test_threads_without_packets_and_beyond_every_counter_have_no_costs(number: str) -> None:
    assert driver.node_costs("vswitch", STATS_SHOW.replace("received: 24", f"received: {number}"), "") == ()
