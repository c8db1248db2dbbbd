"""A sweep as a test asks for it, and its loads as they are written; bad input is refused before anything starts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.studies.shared.choices import generator_chosen
from resources.libraries.python.studies.sweep.model import Bursts, Rates
from resources.libraries.python.studies.sweep.planning import (
    RelativeBursts,
    SweepRequest,
    asked_sweep,
    parse_bursts,
    parse_rates,
)
from resources.libraries.python.studies.sweep.run import ServiceSweep

TOPOLOGIES = Path(__file__).parents[4] / "topologies"
LOCAL = {"TOPOLOGY": str(TOPOLOGIES / "local.yaml")}


def asked(variables: Mapping[str, str] | None = None, /, **row: str) -> SweepRequest:
    chosen = {**LOCAL, **(variables or {})}
    return asked_sweep(chosen.get, generator_chosen(chosen.get), "firewall", {"nf_kinds": "linux_firewall", **row})


def test_what_a_row_leaves_open_is_as_the_variables_say() -> None:
    found = asked({"FRAME": "512B", "FLOWS": "4", "SWEEP_DURATION": "30", "SWEEP_RATES": "10-30/10"})
    assert (found.frame.name, found.flows, found.duration_s) == ("512B", 4, 30)
    assert found.rates.each() == (10, 20, 30)
    named = asked({"FRAME": "512B"}, frame="64B", flows="2", duration="3", rates="auto")
    assert (named.frame.name, named.flows, named.duration_s, named.rates) == ("64B", 2, 3, None)
    assert [asked(smt=smt).smt for smt in ("", "on", "off")] == [None, True, False]
    widths = [asked(chosen).width for chosen in ({}, {"SWEEP_WIDTH": "0.5"}, {"SWEEP_WIDTH": "off"})]
    assert widths == [0.02, 0.005, None]


@pytest.mark.parametrize(
    ("kinds", "service_type", "nodes"),
    [
        ("linux_router+linux_firewall", "CSP", 2),
        ("qemu+qemu_vpp", "VSC", 2),
        ("linux_router+qemu", "CSP", 2),  # which no testbed has: the plan says so
        ("none", "CSP", 0),
    ],
)
def test_a_service_is_a_pipeline_a_chain_of_machines_or_a_path(kinds: str, service_type: str, nodes: int) -> None:
    cell = asked(nf_kinds=kinds).cell
    assert (cell.service_type, cell.nf_chains, cell.nf_nodes) == (service_type, 1, nodes)
    assert cell.nf_kinds == (() if nodes == 0 else tuple(map(NfKind, kinds.split("+"))))


def test_branches_share_nodes_and_have_a_flow_each_by_default() -> None:
    row = {"nf_kinds": "linux_router+linux_firewall+linux_router", "nf_sizes": "1c+3c+1c", "branches": "2"}
    found = asked({}, **row, shared_nodes="1+3")
    assert (found.cell.nf_chains, found.cell.shared_nodes, found.flows) == (2, (1, 3), 2)
    assert found.cell.nf_sizes == ("1c", "3c", "1c")
    assert asked({}, **row, flows="6").flows == 6


def test_a_generator_is_chosen_by_name_and_sends_what_it_can() -> None:
    assert (asked().protocol, asked().departures) == (Protocol.IP, "constant")
    ditg = {"GENERATOR": "ditg", "FRAME": "512B"}
    assert asked(ditg).protocol is Protocol.UDP
    assert asked({**ditg, "PROTOCOL": "TCP"}).protocol is Protocol.TCP
    found = asked({**ditg, "DEPARTURES": "exponential", "PROTOCOL": "ICMP"})
    assert (found.departures, found.protocol) == ("exponential", Protocol.ICMP)


@pytest.mark.parametrize(
    ("variables", "row", "sentence"),
    [
        ({}, {"nf_kinds": "linux_firewal"}, "'linux_firewal'.* linux_router"),
        ({}, {"nf_sizes": "1c+2c"}, "firewall: 2 NF sizes for 1 NFs"),
        ({}, {"flows": "many"}, "flows: 'many' .* 1 to 1000"),
        ({}, {"duration": "0"}, "'0' .* 1 to 3600"),
        ({}, {"branches": "2", "flows": "3"}, "3 flows for 2 branches"),
        ({}, {"shared_nodes": "2"}, "firewall: node 2 .* 1 NFs"),
        ({}, {"protocol": "ICMP"}, "auto sends IP, UDP, TCP and no ICMP; ditg"),
        ({}, {"protocol": "SCTP"}, "'SCTP'.* IP, UDP, TCP, ICMP"),
        ({}, {"smt": "both"}, "smt: 'both' .* 'on' nor 'off'"),
        ({"STOP_LOSS": "1"}, {}, "STOP_LOSS '1'"),
        ({"SWEEP_WIDTH": "nan"}, {}, "SWEEP_WIDTH 'nan': expected 0.1 to 100 percent, or off"),
        ({"DEPARTURES": "pareto"}, {}, "DEPARTURES: .* 'pareto'.* constant, uniform, exponential"),
        ({"DEPARTURES": "exponential"}, {}, "DEPARTURES: .* auto cannot"),
    ],
)
def test_bad_input_is_one_clear_sentence(variables: dict[str, str], row: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        asked(variables, **row)


def test_a_folder_of_profiles_that_is_not_there_is_reported(tmp_path: Path) -> None:
    chosen = {**LOCAL, "PROFILES": str(tmp_path / "nowhere")}
    with pytest.raises(ConfigError, match="nowhere: no such folder of earlier results"):
        ServiceSweep.refuse(chosen.get, generator_chosen(chosen.get))


def test_rates_are_one_load_or_left_to_a_short_test() -> None:
    assert parse_rates("5000") == Rates(start_pps=5000, stop_pps=5000, step_pps=5000)
    assert parse_rates(" auto ") is None


@given(st.integers(1, 10**7), st.integers(0, 900), st.integers(1, 10**6))
def test_a_row_has_as_many_loads_as_it_says(first: int, more: int, step: int) -> None:
    row = parse_rates(f"{first}-{first + more * step}/{step}")
    assert len(row.each()) == more + 1
    assert row.each()[-1] == first + more * step


def test_bursts_have_a_rate_or_a_multiple_of_what_the_service_can_do() -> None:
    assert parse_bursts("on 2 off 1 at 50000") == Bursts(rate_pps=50_000, on_s=2, off_s=1)
    found = parse_bursts("on  3  off 2 at 1.2x")
    assert isinstance(found, RelativeBursts)
    assert found.at(1000.0) == Bursts(rate_pps=1200.0, on_s=3, off_s=2)


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        (parse_rates, "fast", "10000-200000/10000"),
        (parse_rates, "200-100/10", "100 pps, but start at 200 pps"),
        (parse_rates, "100-200/0", "step_pps: 0.0"),
        (parse_rates, "1-1000000/1", "1000000 loads; at most 1000"),
        (parse_bursts, "2/1@50000", "on 2 off 1 at 1.2x"),
        (parse_bursts, "on 3601 off 1 at 9", "on_s: 3601"),
        (parse_bursts, "on 1 off 1 at 0x", "rate_pps: 0.0"),
    ],
)
def test_invalid_rates_and_bursts_are_reported(parse: Callable[[str], object], text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^(rates|bursts) '{text}'.*{why}"):
        parse(text)
