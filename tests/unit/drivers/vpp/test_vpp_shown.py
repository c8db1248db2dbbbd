"""Parsers on what a real VPP showed: 26.10-rc0, a pipeline of two NFs after an overload."""

import re
from pathlib import Path

import pytest

from resources.libraries.python.drivers.vpp import show_output
from resources.libraries.python.drivers.vpp.cli import plain
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, VppInterface
from resources.libraries.python.drivers.vpp.show_output import ErrorRow, Queue, SharedMemoryLink, counted
from resources.libraries.python.model.measurements.counters import InterfaceCounters

SHOWN = Path(__file__).parent / "shown"


def text(name: str) -> str:
    return plain((SHOWN / f"{name}.txt").read_bytes())


def test_interfaces_with_their_counters() -> None:
    found = show_output.interfaces(text("switch-interface"))
    assert list(found) == ["csv1p1", "csv1p2", "csv1x1i1", "csv1x2i2", "local0"]
    assert found["csv1p2"].counters == {"rx packets": 9984, "rx bytes": 599040, "tx packets": 2047, "tx bytes": 122820}
    assert (found["csv1p2"].up, found["local0"].up, found["local0"].count("rx packets")) == (True, False, 0)
    assert show_output.interfaces(text("nf-interface"))["csn1x1i1"].count("ip4") == 3071
    assert show_output.full_rings(text("switch-hardware-interfaces")) == {"csv1x1i1": 6151, "csv1x2i2": 5632}
    assert show_output.version(text("switch-version")) == "26.10-rc0~374-gb575ec2c56d"
    assert show_output.version("") == "of unknown version"


def test_an_access_list_and_where_it_is_looked_up() -> None:
    shown = """acl-index 0 count 3 tag {2}
          0: ipv4 deny src 198.18.0.0/32 dst 0.0.0.0/0 proto 0 sport 0-65535 dport 0-65535
          1: ipv6 permit src ::/0 dst ::/0 proto 0 sport 0-65535 dport 0-65535
          2: ipv4 permit src 0.0.0.0/0 dst 0.0.0.0/0 proto 0 sport 0-65535 dport 0-65535"""
    assert show_output.access_list(shown) == (3, "2")
    assert show_output.access_list("") == (0, ""), "VPP says nothing of a list that it does not have"
    ports = "sw_if_index 0:\nsw_if_index 1:\n  input acl(s): 0\nsw_if_index 2:\n  input acl(s): 0\n  output acl(s): 1"
    assert show_output.with_access_list(ports) == 2
    assert show_output.with_access_list("sw_if_index 0:\nsw_if_index 1:") == 0


def test_shared_memory_that_is_connected_and_not() -> None:
    """The head of the other ring is how far the slave has sent, and says nothing of buffers that it has given."""
    shown, names = text("switch-memif"), ("csv1x1i1", "csv1x2i2")
    assert show_output.memifs(shown) == dict.fromkeys(names, SharedMemoryLink(connected=True, fed=True))
    early = re.sub(r"(master-to-slave ring 0:\n.*\n\s+head) \d+", r"\1 0", shown)
    assert show_output.memifs(early) == dict.fromkeys(names, SharedMemoryLink(connected=True, fed=False))
    alone = """interface csv1x1i1
  flags admin-up
  listener-fd 16 conn-fd 0
  local-disc-reason "connection reset by peer"
"""
    assert show_output.memifs(alone) == {"csv1x1i1": SharedMemoryLink(connected=False, why="connection reset by peer")}


@pytest.mark.parametrize(("second", "fed"), [(0, False), (1024, True)])
def test_a_memif_with_two_rings_is_fed_when_both_are(second: int, fed: bool) -> None:
    ring = "    master-to-slave ring {}:\n      region 0 offset 0\n      head {} tail 0 flags 0x0000\n"
    shown = "interface csn1x1i1\n  flags admin-up connected\n" + ring.format(0, 1024) + ring.format(1, second)
    assert show_output.memifs(shown)["csn1x1i1"].fed is fed


def test_where_queues_are() -> None:
    names = ("csv1p1", "csv1p2", "csv1x1i1", "csv1x2i2")
    placed = show_output.rx_placement(text("switch-interface-rx-placement"))
    assert placed == dict.fromkeys(names, (Queue(1, "interrupt"),))
    two = """Thread 0 (vpp_main):
 node af-packet-input:
    csv1p1 queue 0 (polling)
Thread 2 (vpp_wk_1):
    csv1p2 queue 1 (polling)
Thread 3 (vpp_wk_2):
    csv1p2 queue 0 (adaptive)"""
    of_two = {"csv1p1": (Queue(0, "polling"),), "csv1p2": (Queue(3, "adaptive"), Queue(2, "polling"))}
    assert show_output.rx_placement(two) == of_two
    assert show_output.rx_placement("") == {}


def test_threads_of_this_version_and_of_older_ones() -> None:
    assert show_output.threads(text("switch-threads")) == {0: 17580, 1: 17581}
    older = """ID     Name                Type        LWP     Sched Policy (Priority)  lcore  Core   Socket State
0      vpp_main                        4011    other (0)                1      1      0
1      vpp_wk_0            workers     4022    other (0)                2      2      0
"""
    assert show_output.threads(older) == {0: 4011, 1: 4022}


def test_what_threads_did() -> None:
    (work,) = show_output.runtime(text("nf-runtime"))
    assert (work.thread, work.packets) == ("vpp_wk_0", 5887)
    assert work.vectors_per_call == pytest.approx(255.96, abs=0.01)
    # 44,700 clocks of memif-input, 4,910 + 6,590 + 2,050 + 1,030 of each packet, and the two outputs' shares.
    outputs = (2816 * (25.5 + 14700) + 3071 * (577 + 125000)) / 5887
    assert work.clocks_per_packet == pytest.approx(59280 + outputs, rel=1e-6)
    (switch,) = show_output.runtime(text("switch-runtime"))
    assert switch.packets == 19967 + 4351
    assert "packets per call" in str(switch)


def test_costs_of_nodes_that_had_packets_with_the_resolution_of_their_print() -> None:
    rows = {row.node: row for row in show_output.node_costs("nf-1-1", text("nf-runtime"))}
    outputs = [f"csn1x1i{number}-{what}" for number in (1, 2) for what in ("output", "tx")]
    assert list(rows) == [*outputs, "ethernet-input", "ip4-input", "ip4-lookup", "ip4-rewrite", "memif-input"]
    lookup = rows["ip4-lookup"]
    assert (lookup.part, lookup.thread, lookup.packets, lookup.calls) == ("nf-1-1", "vpp_wk_0", 5887, 23)
    assert (lookup.cost, lookup.error) == (2050.0, 5.0), "2.05e3"
    assert (rows["csn1x1i1-output"].cost, rows["csn1x1i1-output"].error) == (25.5, pytest.approx(0.05))
    alone = text("nf-runtime").split("---------------\n")[1].split("\n", 1)[1]
    of_one = show_output.node_costs("nf-1-1", alone)
    assert len(of_one) == 9 and {row.thread for row in of_one} == {"vpp_main"}, "one thread alone has no heading"


@pytest.mark.parametrize(
    ("shown", "instead"),
    [("2.05e3", "2.05e999"), ("2.05e3", f"2.05e{'9' * 30}"), (" 5887 ", f" {'9' * 300} "), ("ip4-lookup", "x" * 300)],
)
def test_costs_that_no_record_can_have_are_left_out(shown: str, instead: str) -> None:
    assert shown in text("nf-runtime")
    rows = show_output.node_costs("nf-1-1", text("nf-runtime").replace(shown, instead))
    assert all(len(row.node) <= 200 and row.packets < 10**18 for row in rows)
    show_output.runtime(text("nf-runtime").replace(shown, instead))


def test_errors_that_are_losses() -> None:
    rows = show_output.errors(text("switch-errors"))
    assert rows[0].count == 24318
    assert [row for row in rows if row.is_loss] == [
        ErrorRow(6151, "csv1x1i1-tx", "no free tx slots", "error"),
        ErrorRow(5632, "csv1x2i2-tx", "no free tx slots", "error"),
    ]
    assert show_output.errors(text("nf-errors")) == ()


def test_counters_of_ports_come_from_the_part_that_has_them() -> None:
    """The kernel knows what left its port, VPP what it took in; of shared memory what met a full ring was not sent."""
    interfaces = [
        VppInterface(InterfaceKind.HOST, "csv1p1", "host-csv1p1", "02:00:00:00:00:01", 0, (("csv1p1", None),)),
        VppInterface(InterfaceKind.MEMIF, "csv1x1i1", "memif1/0", "02:00:00:00:00:02", 0, (("csv1x1i1", None),)),
    ]
    kernel = {"csv1p1": InterfaceCounters(rx_packets=10_000, tx_packets=2300, rx_dropped=5, tx_dropped=4)}
    rows = show_output.interfaces(text("switch-interface"))
    rings = show_output.full_rings(text("switch-hardware-interfaces"))
    found = dict(counted(interfaces, rows, rings, kernel))
    assert found["csv1p1"] == InterfaceCounters(rx_packets=9983, tx_packets=2300, rx_dropped=22, tx_dropped=4)
    assert found["csv1x1i1"] == InterfaceCounters(2304, 9983 - 6151, 0, 6151)


def test_vhost_user_is_connected_when_the_guest_has_shared_its_memory() -> None:
    shown = """Virtio vhost-user interfaces
Interface: csv1x1i1 (ifindex 1)
 socket filename /run/x.vhost type server errno "Success"

 Memory regions (total 1)
Interface: csv1x1i2 (ifindex 2)
 Memory regions (total 0)
"""
    assert show_output.vhosts(shown) == {"csv1x1i1": SharedMemoryLink(True), "csv1x1i2": SharedMemoryLink(False)}


def test_associations_of_tunnels() -> None:
    shown = """ipsec0 flags:[]
 output-sa:
  [0] sa 10 (0xa) spi 4097 (0x00001001) protocol:esp flags:[esn anti-replay tunnel no-algo-no-drop ]
 input-sa:
  [3] sa 20 (0x14) spi 4098 (0x00001002) protocol:esp flags:[esn anti-replay tunnel inbound ]
ipsec1 flags:[]
 output-sa:
  [2] sa 11 (0xb) spi 4098 (0x00001002) protocol:esp flags:[esn anti-replay tunnel no-algo-no-drop ]
 input-sa:
"""
    assert show_output.protected(shown) == {"ipsec0": (10, 20), "ipsec1": (11,)}
    assert show_output.protected("") == {}


def test_the_engine_in_use_for_an_algorithm() -> None:
    shown = """Algorithm                     Op   Simple         Chained    Async
aes-128-gcm                   enc  openssl*       openssl*   -
                              dec  openssl*       openssl*   -
aes-128-gcm-icv16-aad12       enc  openssl native*  openssl*   -
aes-192-gcm-icv16-aad20       enc  -              -          -
"""
    assert show_output.crypto_engine(shown, ["aes-128-gcm-icv16-aad12", "aes-128-gcm"]) == "native"
    assert show_output.crypto_engine(shown, ["aes-128-gcm-icv16-aad99", "aes-128-gcm"]) == "openssl"
    assert show_output.crypto_engine(shown, ["aes-192-gcm-icv16-aad20"]) == ""
    assert show_output.crypto_engine(shown, ["aes-999"]) == ""
