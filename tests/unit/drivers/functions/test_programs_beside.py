"""Programs in the namespaces of NFs, also testpmd: their arguments, and what they answer."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.functions.mixed_kinds import MixedKinds, OneKind
from resources.libraries.python.drivers.functions.monitor import DRIVERS
from resources.libraries.python.drivers.functions.monitor.driver import Monitors, programs
from resources.libraries.python.drivers.functions.monitor.suricata import files, patterns, taken
from resources.libraries.python.drivers.functions.nginx.driver import configuration
from resources.libraries.python.drivers.functions.process.driver import filled, names, processed
from resources.libraries.python.drivers.functions.testpmd import driver as testpmd
from resources.libraries.python.drivers.generators.builtin.frames import PROBE_PORT, UDP_LOAD_PORT
from resources.libraries.python.drivers.host.ownership import preflight
from resources.libraries.python.drivers.host.programs import program_output
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.plan import NfPlan, Plan
from resources.libraries.python.model.request.kinds import NfKind, UserProgram
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.testbed.kinds import machine
from tests.builders import cpus, plan_of, shipped
from tests.unit.drivers.functions.guest_parts import answering

LOCAL = shipped("local")
MONITORS = [NfKind(each.name) for each in DRIVERS]
PLACE = Path("/run/suricata/nf-1-1")


def function(kind: str) -> NfPlan:
    """The first NF of a plan for two instances."""
    program = (UserProgram(start=("sleep", "9")),) if kind == "process" else ()
    return plan_of(LOCAL, "CSC", 2, 1, cpus(16), nf_kinds=(NfKind(kind),), programs=program).functions[0]


@given(count=st.integers(1, 5000))
def test_patterns_are_as_many_as_asked_and_all_different(count: int) -> None:
    found = patterns(count)
    assert len(set(found)) == count
    assert all(re.fullmatch("[0-9a-f]{8}", each) for each in found)
    assert programs(count, 1)[NfKind("ngrep")].argv("eth0", Path("/run/x"))[-1] == "|".join(found)


@pytest.mark.parametrize(
    "kind", [*MONITORS, *map(NfKind, ("nginx_proxy", "openvpn", "ipsec", "wireguard", "linux_nat", "qemu_suricata"))]
)
def test_only_cells_that_ask_for_it_lack_it(kind: NfKind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(program_output, "_SYSTEM_FOLDERS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    sentences = [str(each) for each in machine.missing_for_some(LOCAL.dut) if re.search(rf"\b{kind}\b", str(each))]
    assert sentences
    assert not {*sentences} & {*map(str, machine.missing(LOCAL.dut))}


def test_a_missing_program_is_one_sentence_with_how_to_fix_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "path_of", lambda _: None)
    nothing = SimpleNamespace()  # would fail on any use
    context = cast(Any, SimpleNamespace(fabric=nothing, companions=lambda *_, **__: nothing))
    monitors = Monitors(LOCAL.dut, context, [function("suricata")])
    said = r"^suricata missing for NFs of kind suricata; install it: apt-get install "
    with pytest.raises(Unsupported, match=said):
        monitors.start()


@pytest.mark.parametrize(("kind", "kept"), [("nginx_balancer", True), ("nginx_proxy", False)])
def test_nginx_spreads_both_ways_and_only_a_balancer_keeps_the_source(kind: str, kept: bool) -> None:
    ports = (UDP_LOAD_PORT, PROBE_PORT)
    text = configuration(function(kind), ports, workers=2, module="/m.so")
    assert ("proxy_bind $remote_addr:$remote_port transparent;" in text) is kept
    assert "20.1.0.0/16 forward;" in text
    for port in ports:
        assert f"listen {port} udp" in text
        assert len(re.findall(rf"server 20\.1\.\d+\.\d+:{port};", text)) == 4
        assert len(re.findall(rf"server 10\.1\.\d+\.\d+:{port};", text)) == 4
    assert "load_module /m.so;" in text
    assert "load_module" not in configuration(function(kind), ports, workers=1, module=None)


function_of_process = function("process")


@given(st.lists(st.text(alphabet="ab{}left right", max_size=8)))
def test_words_of_a_program_become_the_interfaces_of_its_function(words: list[str]) -> None:
    row = filled(words, names(function_of_process))
    assert row == [each.replace("{left}", "csn1x1i1").replace("{right}", "csn1x1i2") for each in words]


def test_a_program_reports_what_it_has_processed() -> None:
    assert processed("packets 12\ndropped 3\nother 4\n", "it") == ProcessedPackets(12, 3)
    assert processed("packets 12\n", "it") == ProcessedPackets(12, None)
    with pytest.raises(CsitError, match="it printed no counter `packets <number>`; last output: packets many"):
        processed("packets many", "it")
    with pytest.raises(CsitError, match="last output: nothing"):
        processed("", "it")


def test_functions_that_forward_have_processed_what_they_sent_and_others_count() -> None:
    ports = {"a": (9, 5, 0, 0), "b": (9, 6, 0, 0), "x": (1, 1, 1, 1)}
    counters = {name: InterfaceCounters(*row) for name, row in ports.items()}
    routers = cast(Any, SimpleNamespace(counters=lambda: counters, processed=dict))
    monitors = cast(Any, SimpleNamespace(counters=dict, processed=lambda: {"nf-2-1": ProcessedPackets(4, 1)}))
    found = MixedKinds([routers, monitors], {"a": "nf-1-1", "b": "nf-1-1"}).processed()
    assert found == {"nf-1-1": ProcessedPackets(11), "nf-2-1": ProcessedPackets(4, 1)}
    assert ProcessedPackets(9, 4) - ProcessedPackets(2, 1) == ProcessedPackets(7, 3)
    assert ProcessedPackets(9) - ProcessedPackets(2, 1) == ProcessedPackets(7)


def test_accounts_are_those_of_the_kinds_that_keep_some() -> None:
    def counting(name: str) -> Any:
        row = NodeCost(part=name, node="ip4-lookup", packets=1)
        return SimpleNamespace(begin_accounts=lambda: (name,), accounts=lambda: (row,))

    several = MixedKinds((counting("nf-1-1"), OneKind(), counting("nf-1-3")))
    assert several.begin_accounts() == ("nf-1-1", "nf-1-3")
    assert [(row.part, row.packets) for row in several.accounts()] == [("nf-1-1", 1), ("nf-1-3", 1)]


@given(rules=st.integers(1, 300))
def test_each_rule_of_suricata_has_a_number_and_a_pattern_of_its_own(rules: int) -> None:
    lines = files("eth0", PLACE, rules)["suricata.rules"].splitlines()
    assert len(lines) == rules
    for what in (r"sid:(\d+);", r'content:"([0-9a-f]{8})"'):
        assert len({re.search(what, line)[1] for line in lines}) == rules  # type: ignore[index]


GREETED = b'{"return":"OK"}\n'


def test_packets_that_suricata_dropped_are_not_among_those_it_got(tmp_path: Path) -> None:
    with answering(tmp_path / "control", GREETED, b'{"message":{"pkts":12,"drop":5},"return":"OK"}') as heard:
        assert taken(tmp_path / "control", "eth0") == ProcessedPackets(7, 5)
    asked = {"command": "iface-stat", "arguments": {"iface": "eth0"}}
    assert [json.loads(each) for each in heard] == [{"version": "0.2"}, asked]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"return":"NOK","message":"iface does not exist"}', "iface does not exist"),
        (b'{"return":"OK","message":{"pkts":"many"}}', "cannot be understood"),
        (b'{"return":"OK"}', "cannot be understood"),
        (b'{"return"', "suricata: .* closed"),
    ],
)
def test_another_answer_of_suricata_is_one_sentence(tmp_path: Path, answer: bytes, words: str) -> None:
    with answering(tmp_path / "control", GREETED, answer), pytest.raises(CsitError, match=words):
        taken(tmp_path / "control", "eth0")
    with pytest.raises(CsitError, match=r"suricata does not answer at .*/none: No such file"):
        taken(tmp_path / "none", "eth0")


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


def test_jumbo_frames_fit_into_one_buffer_of_testpmd() -> None:
    plan = plan_with_testpmd()
    words = testpmd.command(plan.functions[0], plan.cores, largest_frame_bytes=9018)
    assert "framesz=16384" in values(words, "--vdev")[0]
    assert int(value(words, "--mbuf-size")) >= 9018 + 128
    assert int(words[words.index("-m") + 1]) * 2**20 > 16384 * (9018 + 128 + 128)


def test_each_queue_is_polled_by_the_lcore_of_testpmd_on_its_planned_cpu() -> None:
    """Testpmd deals P0Q0, P1Q0, P0Q1, P1Q1 to its lcores: with four of them, one for each."""
    plan = plan_with_testpmd(NfSize.TWO)
    function = plan.functions[0]
    data = plan.cores.cpus(function.name)
    planned = ((0, 2), (1, 3))
    ports = [
        port.model_copy(update={"rx_queues": queues, "data_thread": queues[0]})
        for port, queues in zip(plan.ports(function.name), planned, strict=True)
    ]
    words = testpmd.command(function, plan.cores, ports=ports)
    assert (value(words, "--rxq"), value(words, "--txq"), value(words, "--nb-cores")) == ("2", "2", "4")
    cpus = [int(word.partition("@")[2]) for word in value(words, "--lcores").split(",")[1:]]
    polled = [ports[stream % 2].queues[stream // 2] for stream in range(4)]
    assert cpus == [data[thread] for thread in polled]
    both = [port.model_copy(update={"rx_queues": (0, 1), "data_thread": 0}) for port in ports]
    words = testpmd.command(function, plan_with_testpmd(NfSize.ONE).cores, ports=both)
    cpus = [int(word.partition("@")[2]) for word in value(words, "--lcores").split(",")[1:]]
    assert (value(words, "--nb-cores"), cpus) == ("2", list(plan_with_testpmd(NfSize.ONE).cores.cpus(function.name)))


def test_what_testpmd_prints() -> None:
    assert testpmd.receiving_lcores(STARTED) == {(0, 0): 1, (1, 0): 2}
    assert testpmd.version(STARTED) == "22.11.11"
    assert testpmd.version("") == "unknown version"
    assert testpmd.not_ready(STARTED) == "it does not forward yet"
    assert testpmd.not_ready(STARTED + "Press enter to exit\n") == ""
