"""What Open vSwitch 3.1 answers, as it was printed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs import program_output
from resources.libraries.python.drivers.vswitches.ovs import driver
from resources.libraries.python.drivers.vswitches.ovs.daemons import Daemons
from resources.libraries.python.drivers.vswitches.ovs.driver import node_costs
from resources.libraries.python.errors import CsitError

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


def test_interface_types() -> None:
    assert driver.type_names('[afxdp, "afxdp-nonpmd", internal, system]\n') == {
        "afxdp", "afxdp-nonpmd", "internal", "system",
    }  # fmt: skip
    assert driver.type_names("[]") == frozenset()


KILLED = "ovs-vswitchd was killed by SIGKILL; it said last: nothing"


@pytest.mark.parametrize(
    ("problem", "reason"),
    [(KILLED, f"^{KILLED}$"), ("", "ended with 1: cannot connect"), ("speaks", "more than 1 MB")],
)
def test_a_refused_command_names_the_daemon_that_has_ended_and_one_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, reason: str
) -> None:
    monkeypatch.setattr(program_output, "LARGEST_OUTPUT_BYTES", 1 << 20)
    daemons: Any = Daemons(tmp_path, "system")
    if problem != "speaks":
        daemons.forwarder = SimpleNamespace(started=True, problem=lambda: problem)
        daemons.database = SimpleNamespace(problem=lambda: "")
    refused = ["sh", "-c", "echo cannot connect: Connection refused >&2; exit 1"]
    with pytest.raises(CsitError, match=reason):
        daemons._run(["yes"] if problem == "speaks" else refused, 60.0)


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
    assert node_costs("vswitch", shown, "") == ()


def test_two_threads_are_two_rows_each_with_its_own_counts() -> None:
    one, _, _ = STATS_SHOW.partition("main")
    two = one + one.replace("core_id 2", "core_id 14")
    rows = [row for row in node_costs("vswitch", two, PERF_SHOW) if row.node == "processing"]
    assert [(row.thread, row.calls) for row in rows] == [("core 2", 12), ("core 14", None)]
