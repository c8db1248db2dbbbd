"""Costs of PMD threads, from what Open vSwitch 3.1 printed: a PMD thread that had 24 packets in 24 batches."""

import pytest

from resources.libraries.python.drivers.vswitches.ovs.pmd_statistics import node_costs

STATS_SHOW = """pmd thread numa_id 0 core_id 2:
  packets received: 24
  packet recirculations: 0
  avg. datapath passes per packet: 1.00
  phwol hits: 0
  mfex opt hits: 0
  simple match hits: 0
  emc hits: 0
  smc hits: 0
  megaflow hits: 23
  avg. subtable lookups per megaflow hit: 1.00
  miss with success upcall: 1
  miss with failed upcall: 0
  avg. packets per output batch: 1.00
  idle cycles: 18268335678 (88.09%)
  processing cycles: 2469389992 (11.91%)
  avg cycles per packet: 864071902.92 (20737725670/24)
  avg processing cycles per packet: 102891249.67 (2469389992/24)
main thread:
  packets received: 828
  packet recirculations: 0
  emc hits: 790
"""
PERF_SHOW = """
Time: 18:06:15.193
Measurement duration: 15.178 s

pmd thread numa_id 0 core_id 2:

  Iterations:              3025336  (8732249338.26 us/it)
  - Used TSC cycles:   26417988284  (174054475451.3 % of total cycles)
  - idle iterations:       3025312  ( 90.7 % of used cycles)
  - busy iterations:            12  (  9.3 % of used cycles)
  - sleep iterations:            0  (  0.0 % of iterations)
  Sleep time (us):               0  (  0 us/iteration avg.)
  Rx packets:                   24  (0 Kpps, 102891250 cycles/pkt)
  Datapath passes:              24  (1.00 passes/pkt)
  - Megaflow hits:              23  ( 95.8 %, 1.00 subtbl lookups/hit)
  - Upcalls:                     1  (  4.2 %, 0.0 us/upcall)
  - Lost upcalls:                0  (  0.0 %)
  Tx packets:                   48  (0 Kpps)
  Tx batches:                   16  (3.00 pkts/batch)
"""


def test_a_thread_has_its_clocks_and_batches_and_where_packets_were_looked_up() -> None:
    rows = {row.node: row for row in node_costs("vswitch", STATS_SHOW, PERF_SHOW)}
    assert {(row.part, row.thread) for row in rows.values()} == {("vswitch", "core 2")}
    assert {name: row.packets for name, row in rows.items()} == {
        "processing": 24, "megaflow classifier": 23, "upcall": 1, "output": 48,
    }  # fmt: skip
    assert rows["processing"].cost == pytest.approx(102891249.67, abs=0.01)
    assert rows["processing"].calls == 12 and rows["output"].calls == 16
    assert rows["upcall"].cost is None


def test_threads_without_packets_and_the_main_thread_have_no_costs() -> None:
    assert node_costs("vswitch", STATS_SHOW.replace("received: 24", "received: 0"), "") == ()
    assert node_costs("vswitch", STATS_SHOW.split("main thread")[1], "") == ()


def test_counts_beyond_every_counter_are_left_out() -> None:
    assert node_costs("vswitch", STATS_SHOW.replace("received: 24", f"received: {'9' * 400}"), "") == ()


def test_two_threads_are_two_rows_each_with_its_own_counts() -> None:
    one, _, _ = STATS_SHOW.partition("main")
    two = one + one.replace("core_id 2", "core_id 14")
    rows = [row for row in node_costs("vswitch", two, PERF_SHOW) if row.node == "processing"]
    assert [(row.thread, row.calls) for row in rows] == [("core 2", 12), ("core 14", None)]
