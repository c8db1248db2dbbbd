"""startup.conf and commands, from plans."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.vpp.configuration import (
    HugePageChoice,
    IdleBehaviour,
    Startup,
    VppDevice,
    access_by,
    access_list,
    choose_pages,
    making,
    moves,
    place,
    routing,
    waiting,
)
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface, interfaces_of
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.drivers.vpp.show_output import Queue
from resources.libraries.python.drivers.vswitches.vpp.driver import bridging
from resources.libraries.python.model.plan import Plan, Segment
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.plan import make_plan
from tests.builders import shipped

LOCAL_VPP = shipped("local-vpp")
FOLDER = Path("/run/vpp")
CPUS = layout((cpu, cpu, 0, 0) for cpu in range(16))


def plan(service_type: str, rows: int, columns: int) -> Plan:
    cell = Cell(service_type=ServiceType(service_type), nf_chains=rows, nf_nodes=columns)
    return make_plan(LOCAL_VPP, cell, CPUS)


def startup(**changes: object) -> Startup:
    values: dict[str, object] = {
        "name": "csit-nf-1-1",
        "folder": FOLDER / "nf-1-1",
        "placement": place(2, (4, 3)),
        "heap_mb": 512,
        "buffers": 16384,
        "pages": HugePageChoice("4k", "none free"),
        "waiting": IdleBehaviour("polling", 0),
        "plugins": ("memif",),
        **changes,
    }
    return Startup(**values)  # type: ignore[arg-type]


def sections(text: str) -> dict[str, list[str]]:
    """Lines of each section of startup.conf."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.endswith("{") and not line.startswith(" "):
            name = line.removesuffix("{").strip()
            found[name] = []
        elif line.startswith("  ") and not line.strip().startswith("#"):
            found[name].append(line.strip())
    return found


def test_every_vpp_has_places_of_its_own() -> None:
    found = sections(startup().text())
    assert {"nodaemon", "cli-no-pager", "cli-listen /run/vpp/nf-1-1/cli.sock"} <= set(found["unix"])
    assert "runtime-dir /run/vpp/nf-1-1" in found["unix"]
    assert "pidfile /run/vpp/nf-1-1/vpp.pid" in found["unix"], "VPP refuses one outside of runtime-dir"
    assert found["statseg"][0] == "socket-name /run/vpp/nf-1-1/stats.sock"
    assert found["socksvr"] == ["socket-name /run/vpp/nf-1-1/api.sock"]
    assert found["api-segment"] == ["prefix csit-nf-1-1"]


def test_threads_are_where_they_are_planned() -> None:
    assert sections(startup().text())["cpu"] == ["main-core 2", "corelist-workers 3,4"]
    assert sections(startup(placement=place(1, (1,))).text())["cpu"] == ["main-core 1"], "one CPU, one thread"


def test_memory_is_of_one_kind_of_pages() -> None:
    found = sections(startup().text())
    assert found["memory"] == ["main-heap-size 512M", "main-heap-page-size 4k"]
    assert found["buffers"] == ["buffers-per-numa 16384", "page-size 4k"]
    huge = sections(startup(pages=HugePageChoice("2m", "")).text())
    assert (huge["memory"][1], huge["buffers"][1]) == ("main-heap-page-size 2m", "page-size 2m")


def test_only_plugins_that_are_needed() -> None:
    found = sections(startup(plugins=("af_packet", "memif"), plugin_folder=Path("/opt/vpp/lib/vpp_plugins")).text())
    assert found["plugins"] == [
        "path /opt/vpp/lib/vpp_plugins",
        "plugin default { disable }",
        "plugin af_packet_plugin.so { enable }",
        "plugin memif_plugin.so { enable }",
    ]


def test_an_idle_main_thread_sleeps_only_where_configured() -> None:
    assert not [line for line in sections(startup().text())["unix"] if "poll-sleep" in line]
    assert "poll-sleep-usec 100" in sections(startup(waiting=IdleBehaviour("interrupt", 100)).text())["unix"]


def test_commands_with_keys_are_not_logged() -> None:
    assert "log /run/vpp/nf-1-1/commands.log" in sections(startup().text())["unix"]
    assert not [line for line in sections(startup(logs_commands=False).text())["unix"] if line.startswith("log ")]


def test_physical_ports_by_their_address() -> None:
    text = startup(devices=(VppDevice("0000:af:00.0", "csv1p1"),)).text()
    assert "  dev 0000:af:00.0 {\n    name csv1p1\n    num-rx-queues 1\n  }" in text
    assert "no-hugetlb" in text
    assert "no-multi-seg" in text
    assert "no-multi-seg" not in startup(devices=(VppDevice("0000:af:00.0", "x"),), largest_frame_bytes=9018).text()
    assert "dpdk {" not in startup().text()


@pytest.mark.parametrize("driver", [None, "igb_uio", "vfio-pci"])
def test_vpp_takes_ports_by_the_driver_that_the_topology_names(driver: str | None) -> None:
    """By itself VPP asks for vfio-pci behind an IOMMU, also for ports of igb_uio (`vlib_pci_bind_to_uio`)."""
    devices = tuple(VppDevice(f"0000:af:00.{number}", f"csv1p{number}", uio_driver=driver) for number in (0, 1))
    named = [line for line in sections(startup(devices=devices).text())["dpdk"] if line.startswith("uio-driver")]
    assert named == ([] if driver is None else [f"uio-driver {driver}"])


def test_how_threads_wait() -> None:
    assert waiting(Vpp(), oversubscribed=False) == IdleBehaviour("polling", 0)
    assert waiting(Vpp(), oversubscribed=True) == IdleBehaviour("interrupt", 100)
    assert waiting(Vpp(rx_mode="adaptive", poll_sleep_us=7), oversubscribed=True) == IdleBehaviour("adaptive", 7)
    assert waiting(Vpp(), oversubscribed=False).data_threads == "poll"
    assert waiting(Vpp(), oversubscribed=True).data_threads == "wait for interrupts"


@pytest.mark.parametrize(("free", "size"), [(0, "4k"), (589, "4k"), (590, "2m")])
def test_huge_pages_only_where_there_are_enough_for_all(free: int, size: str) -> None:
    """512 MB are 256 pages, and 32768 buffers of 2496 bytes are 78 MB or 39 pages: 295 for each of two."""
    assert choose_pages(Vpp(main_heap_mb=512, buffers_per_numa=32768), 2, free).size == size
    few = choose_pages(Vpp(main_heap_mb=512, buffers_per_numa=32768), 2, 7, 3)
    assert few.why.startswith("pages of 4 KB: ")
    assert few.why.endswith(" or 4 of 1 GB needed, 7 and 3 free")


def test_one_worker_for_planned_threads_that_share_a_cpu() -> None:
    folded = place(0, (1, 1))
    assert folded.workers == (1,)
    assert [folded.worker_of(thread) for thread in (0, 1)] == [0, 0]
    apart = place(0, (3, 2))
    assert [apart.worker_of(thread) for thread in (0, 1)] == [1, 0], "VPP numbers workers by their CPUs"
    alone = place(0, (0,))
    assert (alone.workers, alone.worker_of(0)) == ((), None)


def test_the_vswitch_makes_and_names_its_interfaces() -> None:
    found = making(interfaces_of(plan("CSC", 1, 1), "vswitch", FOLDER), 1518)
    assert found == (
        "create host-interface v2 name csv1p1 rx-size 2048 rx-per-block 2048 tx-size 2048 tx-per-block 2048 "
        f"cksum-gso-disable hw-addr {mac('csv1p1')}",
        "set interface name host-csv1p1 csv1p1",
        "create memif socket id 1 filename /run/vpp/vswitch/csv1x1i1.memif",
        f"create interface memif id 0 socket-id 1 master hw-addr {mac('csv1x1i1')}",
        "set interface name memif1/0 csv1x1i1",
        "create memif socket id 2 filename /run/vpp/vswitch/csv1x1i2.memif",
        f"create interface memif id 0 socket-id 2 master hw-addr {mac('csv1x1i2')}",
        "set interface name memif2/0 csv1x1i2",
        "create host-interface v2 name csv1p2 rx-size 2048 rx-per-block 2048 tx-size 2048 tx-per-block 2048 "
        f"cksum-gso-disable hw-addr {mac('csv1p2')}",
        "set interface name host-csv1p2 csv1p2",
    )


def mac(interface: str) -> str:
    return next(port.mac for port in plan("CSC", 1, 1).ports("vswitch") if port.interface == interface)


def test_a_bridge_domain_for_each_segment() -> None:
    planned = plan("CSP", 2, 3)
    found = bridging(planned.segments, interfaces_of(planned, "vswitch", FOLDER))
    assert found[:3] == (
        "create bridge-domain 1 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0 mac-age 0",
        "set interface l2 bridge csv1p1 1",
        "set interface l2 bridge csv1x1i1 1",
    )
    assert sum(command.startswith("create bridge-domain") for command in found) == 4
    assert sum(command.endswith(" up") for command in found) == 8, "two edges and two NF ports of each instance"


def test_an_instance_by_its_vlan_is_a_sub_interface_without_its_tag() -> None:
    cable = VppInterface(
        InterfaceKind.DPDK, "csv1p1", "csv1p1", "02:00:00:00:00:01", (0,), (("csv1p1", 101), ("csv2p1", 102))
    )
    memif = VppInterface(
        InterfaceKind.MEMIF, "csv2x1i1", "memif1/0", "02:00:00:00:00:02", (0,), (("csv2x1i1", None),), FOLDER / "x", 1
    )
    assert making([cable], 1518) == ("create sub-interfaces csv1p1 101", "create sub-interfaces csv1p1 102")
    port = VppInterface(InterfaceKind.HOST, "csv1p2", "host-csv1p2", "02:00:00:00:00:03", (0,), (("csv1p2", 101),))
    made = [command.partition(" ")[2].split()[0] for command in making([cable, port, memif], 1518)]
    assert made[-3:] == ["sub-interfaces"] * 3, "after all others, whose numbers are then those of their hardware"
    assert "sub-interfaces" not in made[:-3]
    segment = Segment(name="csb2x1", instance=2, position=1, members=("csv2p1", "csv2x1i1"))
    assert bridging([segment], [cable, memif]) == (
        "create bridge-domain 1 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0 mac-age 0",
        "set interface l2 bridge csv1p1.102 1",
        "set interface l2 tag-rewrite csv1p1.102 pop 1",
        "set interface l2 bridge csv2x1i1 1",
        "set interface state csv1p1 up",
        "set interface state csv2x1i1 up",
        "set interface state csv1p1.101 up",
        "set interface state csv1p1.102 up",
    )


def test_shared_memory_has_the_planned_queues_at_both_ends() -> None:
    smt = layout((cpu, cpu % 8, 0, 0) for cpu in range(16))
    planned = make_plan(LOCAL_VPP, Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1), smt)
    for owner, ends in (("vswitch", "master"), ("nf-1-1", "slave")):
        made = [line for line in making(interfaces_of(planned, owner, FOLDER), 1518) if "interface memif" in line]
        assert len(made) == 2
        assert all(f" {ends} rx-queues 2 tx-queues 2 hw-addr " in line for line in made)
    single = making(interfaces_of(plan("CSC", 1, 1), "nf-1-1", FOLDER), 1518)
    assert not any("queues" in line for line in single)


def test_an_nf_in_a_pipeline_meets_its_neighbours_over_shared_memory() -> None:
    """The end that listens makes the socket, so the other one is told where that is."""
    planned = plan("CSP", 1, 2)
    left, right = interfaces_of(planned, "nf-1-1", FOLDER)
    assert (left.socket, left.master) == (FOLDER / "vswitch" / "csv1x1i1.memif", False)
    assert (right.socket, right.master) == (FOLDER / "nf-1-1" / "csn1x1i2.memif", True)
    other, _ = interfaces_of(planned, "nf-1-2", FOLDER)
    assert (other.socket, other.master) == (right.socket, False)


def test_an_nf_routes_with_neighbours_that_it_knows_before() -> None:
    function = plan("CSC", 1, 1).function("nf-1-1")
    left, right = function.left, function.right
    assert routing(function) == (
        f"set interface ip address csn1x1i1 {left.address}",
        f"set ip neighbor static csn1x1i1 {left.route.address} {left.route.mac}",
        f"ip route add 10.1.0.0/16 via {left.route.address} csn1x1i1",
        f"set interface ip address csn1x1i2 {right.address}",
        f"set ip neighbor static csn1x1i2 {right.route.address} {right.route.mac}",
        f"ip route add 20.1.0.0/16 via {right.route.address} csn1x1i2",
        "set interface state csn1x1i1 up",
        "set interface state csn1x1i2 up",
    )


def test_an_nf_behind_a_translator_knows_the_way_back_to_its_network() -> None:
    kinds = (NfKind("linux_nat"), NfKind("vpp"))
    dut = LOCAL_VPP.dut.model_copy(update={"containers": kinds})
    topology = LOCAL_VPP.model_copy(update={"nodes": {**LOCAL_VPP.nodes, "DUT1": dut}})
    cell = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=2, nf_kinds=kinds)
    function = make_plan(topology, cell, CPUS).function("nf-1-2")
    (translated,) = function.left.route.also
    back = f"ip route add {translated} via {function.left.route.address} {function.left.name}"
    assert back in routing(function)


def test_jumbo_frames_fit_into_the_rings_of_kernel_ports() -> None:
    command, *_ = making(interfaces_of(plan("CSC", 1, 1), "vswitch", FOLDER), 9018)
    assert "rx-size 16384" in command


def test_queues_are_moved_to_where_they_are_planned() -> None:
    interfaces = [
        VppInterface(InterfaceKind.HOST, name, name, "02:00:00:00:00:01", (thread,), ((name, None),))
        for name, thread in (("a", 0), ("b", 1), ("c", 0))
    ]
    shown = {"a": (Queue(1, "polling"),), "b": (Queue(1, "interrupt"),)}
    assert list(moves(interfaces, place(0, (2, 3)), "polling", shown)) == [
        "set interface rx-placement b queue 0 worker 1",
        "set interface rx-mode b queue 0 polling",
    ], "c has no queue yet"
    two = [VppInterface(InterfaceKind.MEMIF, "m", "m", "02:00:00:00:00:01", (1, 0), (("m", None),))]
    swapped = {"m": (Queue(1, "polling"), Queue(2, "polling"))}
    assert list(moves(two, place(0, (2, 3)), "polling", swapped)) == [
        "set interface rx-placement m queue 0 worker 1",
        "set interface rx-placement m queue 1 worker 0",
    ]
    assert list(moves(interfaces[:1], place(0, (0,)), "polling", shown)) == [
        "set interface rx-placement a queue 0 main"
    ]


def test_an_access_list_lets_all_packets_of_a_plan_pass_in_its_last_rules() -> None:
    made = access_list(4, 1)
    assert made == (
        "set acl-plugin acl tag 1 deny src 198.18.0.0/32 , deny src 198.18.0.1/32 , permit src ::/0 dst ::/0 , "
        "permit src 0.0.0.0/0 dst 0.0.0.0/0\n"
    )
    assert access_list(4, 3) == made.replace("acl tag 1", "acl index 0 tag 3"), "as a whole, in its place"
    assert access_list(1, 1) == "set acl-plugin acl tag 1 permit src 0.0.0.0/0 dst 0.0.0.0/0\n"
    assert access_list(10_000, 1).count(",") == 9999
    assert list(access_by(["csv1p1", "csv1p2"])) == [
        "set acl-plugin interface csv1p1 input acl 0",
        "set acl-plugin interface csv1p2 input acl 0",
    ]
