"""Drivers are found by their registrations, and the how-to page that adds one holds."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.cell import Cell, ServiceType
from resources.libraries.python.model.cpu import layout
from resources.libraries.python.model.driver import Driver
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.nodes import ContainerKind, VmKind
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.worlds import makers
from tests.how_to_driver import PAGE, added_driver

ROOT = Path(__file__).parents[2]
DRIVERS: list[Driver] = [
    *driver_registry.vswitches().values(),
    *driver_registry.generators().values(),
    *driver_registry.functions().values(),
]


@pytest.fixture
def topology(tmp_path: Path) -> Iterator[Path]:
    with added_driver(tmp_path) as file:
        yield file


def test_a_package_and_a_topology_add_a_vswitch(topology: Path) -> None:
    testbed = load_topology(topology)
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2)
    plan = make_plan(testbed, cell, layout((cpu, cpu, 0, 0) for cpu in range(32)))
    assert plan.suite_id == "eth-l2bd-1ch-4veth-2dcr1t-lnxip4"
    assert not list(makers.missing(testbed.dut))
    factory = driver_registry.vswitches()["learning_bridge"].factory
    assert factory is not None
    assert driver_registry.load(factory).__name__ == "make"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("{isolatd: true}", r"nodes\.DUT1\.vswitch_options\.isolatd: Extra inputs are not permitted"),
        ("{isolated: perhaps}", r"nodes\.DUT1\.vswitch_options\.isolated: Input should be a valid boolean"),
    ],
)
def test_options_are_those_of_the_declaration(topology: Path, options: str, sentence: str) -> None:
    text = topology.read_text(encoding="utf-8").replace("{isolated: true}", options)
    topology.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=sentence):
        load_topology(topology)


def test_a_driver_without_options_refuses_them(topology: Path) -> None:
    text = topology.read_text(encoding="utf-8").replace("vswitch: learning_bridge", "vswitch: linux_bridge")
    topology.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="vswitch_options: linux_bridge has no options"):
        load_topology(topology)


def test_a_topology_names_only_drivers_that_there_are(topology: Path) -> None:
    text = topology.read_text(encoding="utf-8").replace("vswitch: learning_bridge", "vswitch: bridge")
    topology.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"vswitch: unknown word 'bridge'.*\(known are .*\blearning_bridge\)"):
        load_topology(topology)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: f"{type(driver).__name__}-{driver.name}")
def test_what_a_declaration_names_is_there(driver: Driver) -> None:
    for name in (driver.factory, driver.missing):
        assert name is None or callable(driver_registry.load(name))


def test_every_kind_of_a_topology_has_a_driver() -> None:
    assert {*ContainerKind.__args__, *VmKind.__args__} == set(driver_registry.functions())


def test_packages_of_programs_are_those_that_are_installed_for_tests() -> None:
    script = (ROOT / "resources/tools/packages.sh").read_text(encoding="utf-8")
    packages = {program.package for driver in DRIVERS for program in driver.programs} - {"vpp"}  # not in Debian
    assert not {each for each in packages if not re.search(rf"(?m)(need|need_service|optional=).*\b{each}\b", script)}


def test_looking_drivers_up_imports_none() -> None:
    code = (
        "import sys; from resources.libraries.python import driver_registry as found; import json;"
        "found.vswitches(), found.generators(), found.functions();"
        "print(json.dumps([name for name in sys.modules if name.endswith('.driver') and '.drivers.' in name]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == []


def test_the_page_names_all_of_its_files() -> None:
    assert PAGE.read_text(encoding="utf-8").count("```python") == 3
