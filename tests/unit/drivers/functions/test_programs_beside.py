"""Programs in the namespaces of NFs: what they are told, and what they answer."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.functions.mixed_kinds import MixedKinds, OneKind
from resources.libraries.python.drivers.functions.monitor.driver import programs
from resources.libraries.python.drivers.functions.monitor.registration import DRIVERS
from resources.libraries.python.drivers.functions.monitor.suricata import patterns
from resources.libraries.python.drivers.functions.nginx.driver import configuration
from resources.libraries.python.drivers.functions.process.driver import filled, names, processed
from resources.libraries.python.drivers.generators.builtin import frames
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets
from resources.libraries.python.model.measurements.disturbance import Disturbance, PartEvent
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.function import UserProgram
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.kinds import machine
from tests.builders import cell_of

LOCAL = Path(__file__).parents[4] / "topologies" / "local.yaml"
MONITORS = [NfKind(each.name) for each in DRIVERS]


def function(kind: NfKind) -> NfPlan:
    """The first NF of a plan for two instances."""
    program = UserProgram(start=("sleep", "9")) if kind == "process" else None
    asked = cell_of("CSC", 2, 1, nf_kinds=(kind,), programs=(program,) if program else ())
    return make_plan(load_topology(LOCAL), asked, layout((cpu, cpu, 0, 0) for cpu in range(16))).functions[0]


def test_every_monitor_has_a_program_that_watches_its_interface() -> None:
    found = programs(10, 10)
    assert set(found) == set(MONITORS)
    for program in found.values():
        argv = program.argv("csn1x1i1", Path("/run/x"))
        assert argv[0] == program.name
        assert sum("csn1x1i1" in word for word in argv) == 1


@given(count=st.integers(1, 5000))
def test_patterns_are_as_many_as_asked_and_all_different(count: int) -> None:
    found = patterns(count)
    assert len(set(found)) == count
    assert all(re.fullmatch("[0-9a-f]{8}", each) for each in found)
    assert programs(count, 1)[NfKind("ngrep")].argv("eth0", Path("/run/x"))[-1] == "|".join(found)


@pytest.mark.parametrize(
    "kind", [*MONITORS, *map(NfKind, ("nginx_proxy", "openvpn", "ipsec", "wireguard", "linux_nat", "qemu_suricata"))]
)
def test_a_machine_without_a_program_lacks_it_for_cells_that_ask_for_it(
    kind: NfKind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        "resources.libraries.python.drivers.host.programs.program_output._SYSTEM_FOLDERS", str(tmp_path)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    dut = load_topology(LOCAL).dut
    sentences = [str(each) for each in machine.missing_for_some(dut) if re.search(rf"\b{kind}\b", str(each))]
    assert sentences
    assert not {*sentences} & {*map(str, machine.missing(dut))}


@pytest.mark.parametrize(("kind", "kept"), [(NfKind("nginx_balancer"), True), (NfKind("nginx_proxy"), False)])
def test_nginx_spreads_both_ways_and_only_a_balancer_keeps_the_source(kind: NfKind, kept: bool) -> None:
    ports = (frames.UDP_LOAD_PORT, frames.PROBE_PORT)
    text = configuration(function(kind), ports, workers=2, module="/m.so")
    assert ("proxy_bind $remote_addr:$remote_port transparent;" in text) is kept
    assert "20.1.0.0/16 forward;" in text
    for port in ports:
        assert f"listen {port} udp" in text
        assert len(re.findall(rf"server 20\.1\.\d+\.\d+:{port};", text)) == 4
        assert len(re.findall(rf"server 10\.1\.\d+\.\d+:{port};", text)) == 4
    assert "load_module /m.so;" in text
    assert "load_module" not in configuration(
        function(kind), (frames.UDP_LOAD_PORT, frames.PROBE_PORT), workers=1, module=None
    )


@given(st.lists(st.text(alphabet="ab{}left right", max_size=8)))
def test_words_of_a_program_become_the_interfaces_of_its_function(argv: list[str]) -> None:
    row = filled(argv, names(function_of_process))
    assert row == [each.replace("{left}", "csn1x1i1").replace("{right}", "csn1x1i2") for each in argv]


function_of_process = function(NfKind("process"))


def test_a_program_reports_what_it_has_processed() -> None:
    assert processed("packets 12\ndropped 3\nother 4\n", "it") == ProcessedPackets(12, 3)
    assert processed("packets 12\n", "it") == ProcessedPackets(12, None)
    with pytest.raises(CsitError, match="it printed no counter `packets <number>`; last output: packets many"):
        processed("packets many", "it")
    with pytest.raises(CsitError, match="last output: nothing"):
        processed("", "it")


def test_functions_that_forward_have_processed_what_they_sent_and_others_count() -> None:
    def counters() -> Mapping[str, InterfaceCounters]:
        return {
            "a": InterfaceCounters(9, 5, 0, 0),
            "b": InterfaceCounters(9, 6, 0, 0),
            "x": InterfaceCounters(1, 1, 1, 1),
        }

    routers = cast(Any, SimpleNamespace(counters=counters, processed=dict))
    monitors = cast(Any, SimpleNamespace(counters=dict, processed=lambda: {"nf-2-1": ProcessedPackets(4, 1)}))
    found = MixedKinds([routers, monitors], {"a": "nf-1-1", "b": "nf-1-1"}).processed()
    assert found == {"nf-1-1": ProcessedPackets(11), "nf-2-1": ProcessedPackets(4, 1)}
    assert ProcessedPackets(9, 4) - ProcessedPackets(2, 1) == ProcessedPackets(7, 3)
    assert ProcessedPackets(9) - ProcessedPackets(2, 1) == ProcessedPackets(7)


class Counting(OneKind):
    """NFs of a kind that keeps accounts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.begun = 0

    def begin_accounts(self) -> tuple[str, ...]:
        self.begun += 1
        return (self._name,)

    def accounts(self) -> tuple[NodeCost, ...]:
        return (NodeCost(part=self._name, node="ip4-lookup", packets=self.begun),)


def test_accounts_are_those_of_the_kinds_that_keep_some() -> None:
    first, second = Counting("nf-1-1"), Counting("nf-1-3")
    several = MixedKinds((first, OneKind(), second))
    assert several.begin_accounts() == ("nf-1-1", "nf-1-3")
    assert [(row.part, row.packets) for row in several.accounts()] == [("nf-1-1", 1), ("nf-1-3", 1)]


def test_an_event_that_no_kind_can_have_is_refused() -> None:
    """Else it would not happen, and a study would name another reason."""
    several = MixedKinds((OneKind(),), {"csn1x1i1": "nf-1-1"})
    coming = Disturbance(targets=("nf-1-1",), event=PartEvent.PAUSE, after_s=0.0, hold_s=0.1)
    with pytest.raises(Unsupported, match="pause is not possible for nf-1-1 with its driver"):
        several.disturb(coming)
    several.disturb(coming.model_copy(update={"targets": ("nf-2-1",)}))  # on another node
    assert several.disturbed() == ()


def test_drivers_that_declare_events_can_be_disturbed() -> None:
    """By the declaration a study refuses an event before anything starts."""
    drivers = {**driver_registry.functions(), **driver_registry.vswitches()}
    for name, driver in drivers.items():
        if driver.factory is not None:
            made = driver_registry.load(driver.factory)
            kind = made if isinstance(made, type) else get_type_hints(made)["return"]
            assert issubclass(kind, Disturbed) or not getattr(driver, "events", ()), name
