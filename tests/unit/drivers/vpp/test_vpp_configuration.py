"""startup.conf and commands, from plans."""

from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.drivers.vpp.configuration import (
    HugePageChoice,
    IdleBehaviour,
    Startup,
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
from resources.libraries.python.drivers.vpp.show_output import Queue
from resources.libraries.python.drivers.vswitches.vpp.driver import bridging
from resources.libraries.python.model.plan import Plan, Segment
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import CpuLayout, layout
from tests.builders import cpus, plan_of, shipped

LOCAL_VPP = shipped("local-vpp")
FOLDER = Path("/run/vpp")
CPUS = cpus(16)


def plan(service_type: str, rows: int, columns: int, cores: CpuLayout = CPUS) -> Plan:
    return plan_of(LOCAL_VPP, service_type, rows, columns, cores)


def startup(**changes: object) -> Startup:
    values: dict[str, Any] = {
        "name": "csit-nf-1-1", "folder": FOLDER / "nf-1-1", "placement": place(2, (4, 3)), "heap_mb": 512,
        "buffers": 16384, "pages": HugePageChoice("4k", "none free"), "waiting": IdleBehaviour("polling", 0),
        "plugins": ("memif",),
    }  # fmt: skip
    return Startup(**{**values, **changes})


def sections(**changes: object) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in startup(**changes).text().splitlines():
        if line.endswith("{") and not line.startswith(" "):
            name = line.removesuffix("{").strip()
            found[name] = []
        elif line.startswith("  ") and not line.strip().startswith("#"):
            found[name].append(line.strip())
    return found


def test_every_vpp_has_places_of_its_own() -> None:
    found = sections()
    assert {"nodaemon", "cli-no-pager", "cli-listen /run/vpp/nf-1-1/cli.sock"} <= set(found["unix"])
    assert "runtime-dir /run/vpp/nf-1-1" in found["unix"]
    assert "pidfile /run/vpp/nf-1-1/vpp.pid" in found["unix"], "VPP refuses one outside of runtime-dir"
    assert found["statseg"][0] == "socket-name /run/vpp/nf-1-1/stats.sock"
    assert "log /run/vpp/nf-1-1/commands.log" in found["unix"]
    assert not [line for line in found["unix"] if "poll-sleep" in line]
    assert "poll-sleep-usec 100" in sections(waiting=IdleBehaviour("interrupt", 100))["unix"]
    with_keys = sections(logs_commands=False)["unix"]
    assert not [line for line in with_keys if line.startswith("log ")], "keys are in no log"


PLUGINS = [f"plugin {name}_plugin.so {{ enable }}" for name in ("af_packet", "memif")]


@pytest.mark.parametrize(
    ("changes", "section", "lines"),
    [
        ({}, "socksvr", ["socket-name /run/vpp/nf-1-1/api.sock"]),
        ({}, "api-segment", ["prefix csit-nf-1-1"]),
        ({}, "cpu", ["main-core 2", "corelist-workers 3,4"]),
        ({"placement": place(1, (1,))}, "cpu", ["main-core 1"]),  # one CPU, one thread
        ({}, "memory", ["main-heap-size 512M", "main-heap-page-size 4k"]),
        ({}, "buffers", ["buffers-per-numa 16384", "page-size 4k"]),
        ({"pages": HugePageChoice("2m", "")}, "memory", ["main-heap-size 512M", "main-heap-page-size 2m"]),
        ({"pages": HugePageChoice("2m", "")}, "buffers", ["buffers-per-numa 16384", "page-size 2m"]),
        (
            {"plugins": ("af_packet", "memif"), "plugin_folder": Path("/opt/vpp")},
            "plugins",
            ["path /opt/vpp", "plugin default { disable }", *PLUGINS],
        ),
    ],
)
def test_threads_memory_and_plugins_are_what_was_asked_for(
    changes: dict[str, object], section: str, lines: list[str]
) -> None:
    assert sections(**changes)[section] == lines


@pytest.mark.parametrize("driver", [None, "igb_uio", "vfio-pci"])
def test_physical_ports_by_their_address_and_by_the_driver_that_the_topology_names(driver: str | None) -> None:
    """By itself VPP asks for vfio-pci behind an IOMMU, also for ports of igb_uio (`vlib_pci_bind_to_uio`)."""
    devices = tuple(
        VppInterface(
            InterfaceKind.DPDK,
            f"csv1p{number}",
            "",
            "",
            (0,),
            (),
            pci_address=f"0000:af:00.{number}",
            uio_driver=driver,
        )
        for number in (0, 1)
    )
    text = startup(devices=devices).text()
    assert "  dev 0000:af:00.0 {\n    name csv1p0\n    num-rx-queues 1\n  }" in text
    assert "no-hugetlb" in text and "no-multi-seg" in text
    named = [line for line in sections(devices=devices)["dpdk"] if line.startswith("uio-driver")]
    assert named == ([] if driver is None else [f"uio-driver {driver}"])
    assert "no-multi-seg" not in startup(devices=devices, largest_frame_bytes=9018).text()
    assert "dpdk {" not in startup().text()


def test_how_threads_wait() -> None:
    alone, folded = (waiting(Vpp(), oversubscribed=oversubscribed) for oversubscribed in (False, True))
    assert (alone, folded) == (IdleBehaviour("polling", 0), IdleBehaviour("interrupt", 100))
    assert (alone.data_threads, folded.data_threads) == ("poll", "wait for interrupts")
    assert waiting(Vpp(rx_mode="adaptive", poll_sleep_us=7), oversubscribed=True) == IdleBehaviour("adaptive", 7)


@pytest.mark.parametrize(("free", "size"), [(0, "4k"), (589, "4k"), (590, "2m")])
def test_huge_pages_only_where_there_are_enough_for_all(free: int, size: str) -> None:
    """512 MB are 256 pages, and 32768 buffers of 2496 bytes are 78 MB or 39 pages: 295 for each of two."""
    settings = Vpp(main_heap_mb=512, buffers_per_numa=32768)
    assert choose_pages(settings, 2, free).size == size
    few = choose_pages(settings, 2, 7, 3)
    assert few.why.startswith("pages of 4 KB: ") and few.why.endswith(" or 4 of 1 GB needed, 7 and 3 free")


def test_one_worker_for_planned_threads_that_share_a_cpu() -> None:
    folded, apart, alone = place(0, (1, 1)), place(0, (3, 2)), place(0, (0,))
    assert (folded.workers, [folded.worker_of(thread) for thread in (0, 1)]) == ((1,), [0, 0])
    assert [apart.worker_of(thread) for thread in (0, 1)] == [1, 0], "VPP numbers workers by their CPUs"
    assert (alone.workers, alone.worker_of(0)) == ((), None)


def test_the_vswitch_makes_and_names_its_interfaces() -> None:
    planned = plan("CSC", 1, 1)
    macs = {port.interface: port.mac for port in planned.ports("vswitch")}
    rings = "rx-size 2048 rx-per-block 2048 tx-size 2048 tx-per-block 2048 cksum-gso-disable"
    interfaces = interfaces_of(planned, "vswitch", FOLDER)
    assert making(interfaces, 1518) == (
        f"create host-interface v2 name csv1p1 {rings} hw-addr {macs['csv1p1']}",
        "set interface name host-csv1p1 csv1p1",
        "create memif socket id 1 filename /run/vpp/vswitch/csv1x1i1.memif",
        f"create interface memif id 0 socket-id 1 master hw-addr {macs['csv1x1i1']}",
        "set interface name memif1/0 csv1x1i1",
        "create memif socket id 2 filename /run/vpp/vswitch/csv1x1i2.memif",
        f"create interface memif id 0 socket-id 2 master hw-addr {macs['csv1x1i2']}",
        "set interface name memif2/0 csv1x1i2",
        f"create host-interface v2 name csv1p2 {rings} hw-addr {macs['csv1p2']}",
        "set interface name host-csv1p2 csv1p2",
    )
    assert "rx-size 16384" in making(interfaces, 9018)[0], "jumbo frames fit into the rings of kernel ports"


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
    cable, memif, port = (
        VppInterface(kind, name, device, "02:00:00:00:00:01", (0,), behind, *more)
        for kind, name, device, behind, *more in (
            (InterfaceKind.DPDK, "csv1p1", "csv1p1", (("csv1p1", 101), ("csv2p1", 102))),
            (InterfaceKind.MEMIF, "csv2x1i1", "memif1/0", (("csv2x1i1", None),), FOLDER / "x", 1),
            (InterfaceKind.HOST, "csv1p2", "host-csv1p2", (("csv1p2", 101),)),
        )
    )
    assert making([cable], 1518) == ("create sub-interfaces csv1p1 101", "create sub-interfaces csv1p1 102")
    made = ["sub-interfaces" in command for command in making([cable, port, memif], 1518)]
    assert made[-3:] == [True] * 3 and not any(made[:-3]), "then the others' numbers are those of their hardware"
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
    planned = plan("CSC", 1, 1, layout((cpu, cpu % 8, 0, 0) for cpu in range(16)))
    for owner, ends in (("vswitch", "master"), ("nf-1-1", "slave")):
        made = [line for line in making(interfaces_of(planned, owner, FOLDER), 1518) if "interface memif" in line]
        assert len(made) == 2
        assert all(f" {ends} rx-queues 2 tx-queues 2 hw-addr " in line for line in made)


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
    function = plan_of(topology, "CSP", 1, 2, CPUS, nf_kinds=kinds).function("nf-1-2")
    (translated,) = function.left.route.also
    back = f"ip route add {translated} via {function.left.route.address} {function.left.name}"
    assert back in routing(function)


def test_queues_are_moved_to_where_they_are_planned() -> None:
    interfaces = [
        VppInterface(InterfaceKind.HOST, name, name, "02:00:00:00:00:01", threads, ((name, None),))
        for name, threads in (("a", (0,)), ("b", (1,)), ("c", (0,)), ("two", (1, 0)))
    ]
    shown = {"a": (Queue(1, "polling"),), "b": (Queue(1, "interrupt"),)}
    shown["two"] = (Queue(1, "polling"), Queue(2, "polling"))
    assert list(moves(interfaces, place(0, (2, 3)), "polling", shown)) == [
        "set interface rx-placement b queue 0 worker 1",
        "set interface rx-mode b queue 0 polling",
        "set interface rx-placement two queue 0 worker 1",
        "set interface rx-placement two queue 1 worker 0",
    ], "c has no queue yet"
    alone = list(moves(interfaces[:1], place(0, (0,)), "polling", shown))
    assert alone == ["set interface rx-placement a queue 0 main"]


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
