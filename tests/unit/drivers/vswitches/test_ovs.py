"""What is asked of Open vSwitch, from a plan; and what version 3.1 answers, as it was printed."""

from itertools import groupby
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
from resources.libraries.python.model.request.cell import Tap
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.memory import need
from resources.libraries.python.planning.names import VSWITCH
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of, cpus, plan_of, shipped
from tests.unit.planning.labs import lab
from tests.unit.planning.polled_ports import planned, polled

TOPOLOGY = shipped("local-ovs")
SIXTEEN_CORES = cpus(16)


def bridge_plan(rows: int, columns: int, vs_dtc: int = 2) -> Plan:
    return plan_of(TOPOLOGY, "CSC", rows, columns, SIXTEEN_CORES, vs_dtc=vs_dtc)


def commands(words: list[str]) -> list[list[str]]:
    """The commands of one transaction."""
    return [list(row) for last, row in groupby(words, "--".__eq__) if not last]


def test_every_segment_is_a_vlan_of_exactly_its_two_ports_and_the_bridges_own_port_is_in_none() -> None:
    plan = bridge_plan(2, 2)
    made = commands(ovs.of_plan(plan, ovs.SYSTEM, 1500))
    by_vlan: dict[str, list[str]] = {}
    for _, bridge, port, tag in (each for each in made if each[0] == "add-port"):
        assert bridge == "csit"
        by_vlan.setdefault(tag, []).append(port)
    assert [tuple(ports) for ports in by_vlan.values()] == [segment.members for segment in plan.segments]
    assert set(by_vlan) == {f"tag={number}" for number in range(1, 7)}
    assert ["set", "Port", "csit", "tag=4094"] in made
    assert not [each for each in made if each[:2] == ["set", "Interface"]], "system ports have no row of their own"
    many = plan.model_copy(update={"segments": (plan.segments * 683)[:4094]})
    with pytest.raises(Unsupported, match="4094 L2 segments, but one bridge of Open vSwitch has 4093 VLANs"):
        ovs.of_plan(many, ovs.SYSTEM, 1500)


@pytest.mark.parametrize(("kind", "first"), [(ovs.AF_XDP, "type=afxdp"), (ovs.DPDK, "type=dpdk")])
def test_every_polled_port_has_the_cpu_of_its_planned_data_thread(kind: ovs.PortKind, first: str) -> None:
    plan = bridge_plan(1, 2)
    cpus = plan.cores.cpus(VSWITCH)
    assert len(set(cpus)) == 2
    rows = {each[2]: each[3:] for each in commands(ovs.of_plan(plan, kind, 1500)) if each[:2] == ["set", "Interface"]}
    assert set(rows) == {port.interface for port in plan.ports(VSWITCH)}
    for port in plan.ports(VSWITCH):
        assert rows[port.interface][0] == first
        assert rows[port.interface][-1] == f"other_config:pmd-rxq-affinity=0:{cpus[port.data_thread]}"
    if kind is ovs.DPDK:
        assert "iface=csv1p1," in rows["csv1p1"][1]
        jumbo = commands(ovs.of_plan(plan, ovs.DPDK, 9000))
        (row,) = [each for each in jumbo if each[2:3] == ["csv1p1"] and "set" in each]
        assert "framesz=16384" in row[4] and "mtu_request=9000" in row


def test_each_of_several_queues_has_the_cpu_of_its_data_thread() -> None:
    port = bridge_plan(1, 1).ports(VSWITCH)[0]
    one, two = ovs.columns(ovs.DPDK, port, [3], 1500)[-1], ovs.columns(ovs.DPDK, port, [3, 5], 1500)[-1]
    assert (one, two) == ("other_config:pmd-rxq-affinity=0:3", "other_config:pmd-rxq-affinity=0:3,1:5")
    assert "options:n_rxq=2" in ovs.columns(ovs.AF_XDP, port, [3, 5], 1500)


def test_forwarding_threads_get_the_planned_cores_and_no_others() -> None:
    plan = bridge_plan(1, 1)
    words = ovs.of_daemon(plan, "auto")
    assert f"other_config:pmd-cpu-mask={ovs.cpu_mask(plan.cores.cpus(VSWITCH))}" in words
    assert not [word for word in words if "dpdk" in word]
    assert "other_config:dpdk-init=true" in ovs.of_daemon(plan, "dpdk")
    for numbers, mask in (((1,), "0x2"), ((1, 2), "0x6"), ((0, 33), "0x200000001"), ((3, 3), "0x8")):
        assert ovs.cpu_mask(numbers) == mask


@pytest.mark.parametrize(
    ("asked", "offered", "datapaths", "kind"),
    [
        ("auto", {"afxdp", "system"}, set(), ovs.AF_XDP),
        ("auto", {"system", "tap"}, set(), ovs.SYSTEM),
        ("system", {"afxdp", "system"}, set(), ovs.SYSTEM),
        ("af_xdp", {"afxdp", "system"}, set(), ovs.AF_XDP),
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
    made = commands(ovs.of_plan(bridge_plan(1, 1), kind, 1500))
    (bridge,) = (words for words in made if words[:2] == ["set", "Bridge"])
    assert f"datapath_type={'system' if kind is ovs.KERNEL else 'netdev'}" in bridge


def test_memory_and_frame_size_are_looked_at_first() -> None:
    ovs.check_size(ovs.AF_XDP, 40, 1518, 4_000_000_000)
    ovs.check_size(ovs.SYSTEM, 240, 9018, 0)
    with pytest.raises(Unsupported, match=r"240 af_xdp ports of Open vSwitch need 18\.2 GB of memory, 4\.0 GB are"):
        ovs.check_size(ovs.AF_XDP, 240, 64, 4_000_000_000)
    with pytest.raises(Unsupported, match="carry frames up to 3498 B, asked for are 9018 B"):
        ovs.check_size(ovs.AF_XDP, 4, 9018, 4_000_000_000)


def test_a_segment_with_taps_is_forwarded_and_copied_by_one_rule_each_way_between_two_ports_only() -> None:
    taps = (Tap(position=2, kind=NfKind("tcpdump")),) * 2
    plan = plan_of(TOPOLOGY, "CSC", 1, 1, SIXTEEN_CORES, taps=taps)
    assert ovs.rules_of_copies(plan) == [
        "priority=100,in_port=csv1x1i2,actions=output:csv1p2,output:csv1t1,output:csv1t2",
        "priority=100,in_port=csv1p2,actions=output:csv1x1i2,output:csv1t1,output:csv1t2",
        "priority=100,in_port=csv1t1,actions=drop",
        "priority=100,in_port=csv1t2,actions=drop",
    ]
    added = {each[2]: each[3] for each in commands(ovs.of_plan(plan, ovs.SYSTEM, 1500)) if each[0] == "add-port"}
    assert (added["csv1t1"], added["csv1t2"]) == ("tag=4094", "tag=4094"), "no flooded frame gets there"
    assert ovs.rules_of_copies(bridge_plan(2, 2)) == []
    segment = plan.segments[0].model_copy(update={"members": ("a", "b", "c"), "copies": ("t",)})
    with pytest.raises(Unsupported, match="csb1x1 has 3 members: copies are made between two only"):
        ovs.rules_of_copies(plan.model_copy(update={"segments": (segment,)}))


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


RXQ_SHOW = """Displaying last 60 seconds pmd usage %
pmd thread numa_id 0 core_id 1:
  isolated : true
  port: csv1p1            queue-id:  0 (enabled)   pmd usage:  3 %
  port: csv1x1i1          queue-id:  0 (enabled)   pmd usage:  2 %
  overhead:  0 %
pmd thread numa_id 0 core_id 12:
  isolated : true
  port: csv1p2            queue-id:  0 (enabled)   pmd usage: NOT AVAIL
  port: csv1x1i1          queue-id:  1 (enabled)   pmd usage:  2 %
  overhead: NOT AVAIL
"""


def test_ports_are_read_with_the_cpu_that_polls_each_queue() -> None:
    assert driver.polling_cpus(RXQ_SHOW) == {"csv1p1": {0: 1}, "csv1x1i1": {0: 1, 1: 12}, "csv1p2": {0: 12}}
    assert driver.polling_cpus("Displaying last 60 seconds pmd usage %\n") == {}
    types = driver.type_names('[afxdp, "afxdp-nonpmd", internal, system]\n')
    assert types == {"afxdp", "afxdp-nonpmd", "internal", "system"}
    assert driver.type_names("[]") == frozenset()


@pytest.mark.parametrize(
    ("said", "number", "sleeps"),
    [
        ("ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11.11\n", "3.1.0", True),
        ("ovs-vswitchd (Open vSwitch) 2.17.9\n", "2.17.9", False),
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


@pytest.mark.parametrize(
    "shown",
    [
        STATS_SHOW.replace("received: 24", "received: 0"),
        STATS_SHOW.split("main thread")[1],
        STATS_SHOW.replace("received: 24", f"received: {'9' * 400}"),
    ],
    ids=["no packets", "main thread", "beyond every counter"],
)
def test_threads_without_packets_the_main_thread_and_rubbish_have_no_costs(shown: str) -> None:
    assert driver.node_costs("vswitch", shown, "") == ()
