"""Drivers are found by their declarations, and the how-to page that adds one holds."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.functions.monitor import Ngrep, Suricata
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.drivers.sim.simulation import simulation_of
from resources.libraries.python.drivers.sim.truth import SimulatedTruth, one_pps
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.driver import Driver
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.planning.traffic import as_taken
from resources.libraries.python.studies.density.planning.matrix import make_rows
from resources.libraries.python.studies.density.planning.selection import parse_kinds, parse_selection
from resources.libraries.python.studies.shared.choices import choices
from resources.libraries.python.testbed.kinds import machine
from tests.builders import cpus
from tests.how_to_driver import DRIVERS as DRIVERS_FOLDER
from tests.how_to_driver import added_drivers, with_bridge
from tests.how_to_pages import ADD_A_DRIVER, files_of, lint, write_files_of

ROOT = Path(__file__).parents[2]
MACHINE = cpus(32)
DRIVERS: list[Driver] = [
    *driver_registry.vswitches().values(),
    *driver_registry.generators().values(),
    *driver_registry.functions().values(),
]


@pytest.fixture
def topology(tmp_path: Path) -> Iterator[Path]:
    with added_drivers(tmp_path):
        file = with_bridge(tmp_path)
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if "suricata:" not in line), encoding="utf-8")
        yield file


def test_a_package_and_a_topology_add_a_vswitch(topology: Path) -> None:
    testbed = load_topology(topology)
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2)
    plan = make_plan(testbed, cell, MACHINE)
    assert plan.suite_id == "eth-l2bd-1ch-4veth-2dcr1t-lnxip4"
    assert not list(machine.missing(testbed.dut))
    factory = driver_registry.vswitches()["learning_bridge"].factory
    assert factory is not None
    assert driver_registry.load(factory).__name__ == "LearningBridge"


def haproxy_cell() -> Cell:
    return Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2, nf_kinds=(NfKind("haproxy"),))


def test_a_package_adds_a_network_function(tmp_path: Path) -> None:
    with added_drivers(tmp_path):
        testbed, simulated = with_generator("iperf3"), load_topology(ROOT / "topologies/sim.yaml")
        (asked,) = parse_kinds("haproxy")
        plan = make_plan(testbed, haproxy_cell(), MACHINE)
        assert plan.suite_id == "eth-l2bd-1ch-4veth-2dcr1t-haproxy"
        assert plan.load_ports[Protocol.TCP] == (5201,)
        assert Plan.model_validate_json(plan.model_dump_json()) == plan
        lacking = [str(each) for each in machine.missing_for_some(testbed.dut) if "haproxy" in str(each)]
        assert bool(lacking) == (path_of("haproxy") is None)
        assert driver_registry.load(asked.driver.factory or "").__name__ == "Haproxies"
        assert one_pps(asked, 0.5) == asked.driver.simulated.half_core_pps == 0.1e6
        truth = SimulatedTruth(make_plan(simulated, haproxy_cell(), simulated.dut.layout), simulation_of(simulated))
        assert 0 < truth.capacity_pps(frame("64B")) < 0.3e6
        assert asked in DutNode.model_validate(testbed.dut.model_dump()).offered
    assert "haproxy" not in driver_registry.functions()
    with pytest.raises(ConfigError, match="no NF kind 'haproxy'"):
        parse_kinds("haproxy")


def with_generator(name: str) -> Topology:
    topology = load_topology(ROOT / "topologies/local.yaml")
    tg = topology.tg.model_copy(update={"generator": topology.tg.generator.model_copy(update={"driver": name})})
    return topology.model_copy(update={"nodes": {**topology.nodes, topology.tg_name: tg}})


@pytest.mark.parametrize(
    ("generator", "asked", "expected"),
    [
        ("iperf3", None, Protocol.TCP),
        ("ditg", Protocol.TCP, Protocol.TCP),
        ("sim", None, Protocol.TCP),
        ("iperf3", Protocol.UDP, None),
        ("auto", None, None),
        ("otg", Protocol.TCP, None),
    ],
)
def test_a_proxy_of_tcp_is_sent_connections_or_refused(
    generator: str, asked: Protocol | None, expected: Protocol | None, tmp_path: Path
) -> None:
    trial = Trial(load_pps=1e3, duration_s=1, frame=frame("512B"), protocol=asked)
    refused = pytest.raises(Unsupported, match="an NF of kind haproxy takes TCP connections only")
    with added_drivers(tmp_path):
        with nullcontext() if expected else refused:
            assert as_taken(trial, generator, [NfKind("haproxy")]).protocol is expected
        if asked is None:
            words = {"service_types": "CSC", "cells": "1x1,2x1", "nf_sizes": "1c", "nf_kinds": "haproxy"}
            selection = parse_selection(**words, frames="512B")
            made = make_rows(with_generator(generator), MACHINE, selection, TestType.MRR)
            assert len(made.rows) == 2 * (expected is not None) == 2 - len(made.refused)
            assert all("iperf3" in row.refused.reason for row in made.refused)


def test_a_driver_of_the_page_is_one_folder_and_passes_the_linter(tmp_path: Path) -> None:
    lines, files = Counter[str](), files_of(ADD_A_DRIVER)
    assert ADD_A_DRIVER.read_text(encoding="utf-8").count("```python") == len(files)
    for name, text in files.items():
        role, package, _ = name.removeprefix(DRIVERS_FOLDER).split("/")
        lines[f"{role}/{package}"] += len(text.splitlines())
    assert set(lines) == {"vswitches/learning_bridge", "functions/haproxy"}
    assert max(lines.values()) <= 250
    write_files_of(ADD_A_DRIVER, tmp_path)
    assert not lint(tmp_path, ("check",), ["resources"]) and not lint(tmp_path, ("format", "--check"), ["resources"])


@pytest.mark.parametrize(
    ("given", "wrong", "sentence"),
    [
        ("{isolated:", "{isolatd:", r"nodes\.DUT1\.learning_bridge\.isolatd: unknown key; did you mean 'isolated'"),
        ("d: true", "d: perhaps", r"nodes\.DUT1\.learning_bridge\.isolated: true or false is expected here"),
        ("type: TG", "type: TG\n    learning_bridge: {}", r"nodes\.TG\.learning_bridge: unknown key"),
        ("type: DUT", "type: DUT\n    ovss: {}", r"nodes\.DUT1\.ovss: unknown key; did you mean 'ovs'\?"),
        ("type: DUT", "type: DUT\n    suricata: {rules: 99999}", r"\.suricata\.rules: 99999 is above the maximum of"),
        ("vswitch: learning_bridge", "vswitch: bridge", r"unknown word 'bridge'.*\(known: .*\blearning_bridge\)"),
    ],
)
def test_what_is_wrong_of_a_driver_is_named_with_its_line(
    topology: Path, given: str, wrong: str, sentence: str
) -> None:
    before = topology.read_text(encoding="utf-8")
    assert given in before
    topology.write_text(before.replace(given, wrong), encoding="utf-8")
    lines = topology.read_text(encoding="utf-8").splitlines()
    line = next(
        number for number, pair in enumerate(zip(lines, before.splitlines(), strict=False), 1) if len({*pair}) > 1
    )
    with pytest.raises(ConfigError, match=rf"yaml:{line}: .*{sentence}"):
        load_topology(topology)


def test_settings_of_drivers_are_written_as_they_were_read(topology: Path) -> None:
    text = topology.read_text(encoding="utf-8").replace("    vswitch:", "    suricata: {rules: 7}\n    vswitch:")
    topology.write_text(text, encoding="utf-8")
    testbed = load_topology(topology)
    said = testbed.model_dump(mode="json")
    assert said["nodes"]["DUT1"]["suricata"] == {"rules": 7}
    assert said["nodes"]["DUT1"]["learning_bridge"] == {"isolated": True}
    assert "vpp" not in said["nodes"]["DUT1"]
    assert Topology.model_validate(said) == testbed == Topology.model_validate_json(testbed.model_dump_json())
    assert testbed.dut.settings(Suricata).rules == 7
    assert testbed.dut.settings(Ngrep).patterns == 100


def test_what_declarations_name_is_there_and_every_kind_has_its_place_in_topologies() -> None:
    for driver in DRIVERS:
        for path in (driver.factory, driver.missing):
            assert path is None or callable(driver_registry.load(path)), driver.name
    for check in driver_registry.node_checks():
        assert callable(driver_registry.load(check.check)) and import_module(check.script)
    for name, driver in driver_registry.functions().items():
        assert {*driver.listed} <= {"containers", "vms"} and (driver.listed or driver.host), name


def test_packages_of_programs_are_those_that_are_installed_for_tests() -> None:
    argv = [sys.executable, "resources/tools/driver_packages.py", "vswitches", "generators", "functions"]
    found = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    declared = {f"{each.name} {each.package}" for driver in DRIVERS for each in driver.programs if each.path is None}
    assert declared <= set(found.splitlines())
    assert "iperf3 iperf3" in declared


def test_a_driver_that_is_added_changes_no_digest_of_a_testbed(tmp_path: Path) -> None:
    """A run that was begun without the driver is resumed with it."""
    file = ROOT / "topologies/local.yaml"

    def digest() -> str:
        return choices({"TOPOLOGY": str(file)}.get, load_topology(file)).topology_digest

    before = digest()
    with added_drivers(tmp_path):
        assert {"learning_bridge", "haproxy"} <= set(driver_registry.settings_of("DUT").model_fields)
        assert digest() == before


def test_an_option_that_is_added_changes_no_digest(tmp_path: Path) -> None:
    def digest(folder: Path, option: str) -> str:
        with added_drivers(
            folder, lambda text: text.replace("    isolated: bool", f"    {option}\n    isolated: bool")
        ):
            testbed = load_topology(with_bridge(folder))
            assert ("more" in testbed.model_dump()["nodes"]["DUT1"]["learning_bridge"]) == (not option.startswith("#"))
            return testbed.digest

    assert digest(tmp_path / "before", "# one") == digest(tmp_path / "after", "more: int = 7")
