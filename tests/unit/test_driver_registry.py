"""Drivers are found by their registrations, and the how-to page that adds one holds."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.functions.monitor.registration import Ngrep, Suricata
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.driver import Driver, Form, FunctionDriver, RequiredProgram
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.model.testbed.cpu import layout
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.model.selection import parse_kinds
from resources.libraries.python.studies.shared.choices import choices
from resources.libraries.python.testbed.deployment.generator_limits import resends
from resources.libraries.python.testbed.kinds import machine
from tests.how_to_driver import added_drivers
from tests.how_to_pages import ADD_A_DRIVER, lint, write_files_of

ROOT = Path(__file__).parents[2]
DRIVERS: list[Driver] = [
    *driver_registry.vswitches().values(),
    *driver_registry.generators().values(),
    *driver_registry.functions().values(),
]


@pytest.fixture
def topology(tmp_path: Path) -> Iterator[Path]:
    with added_drivers(tmp_path) as topologies:
        yield topologies["local-learning-bridge"]


def test_a_package_and_a_topology_add_a_vswitch(topology: Path) -> None:
    testbed = load_topology(topology)
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2)
    plan = make_plan(testbed, cell, layout((cpu, cpu, 0, 0) for cpu in range(32)))
    assert plan.suite_id == "eth-l2bd-1ch-4veth-2dcr1t-lnxip4"
    assert not list(machine.missing(testbed.dut))
    factory = driver_registry.vswitches()["learning_bridge"].factory
    assert factory is not None
    assert driver_registry.load(factory).__name__ == "LearningBridge"


def test_a_package_adds_a_network_function(tmp_path: Path) -> None:
    with added_drivers(tmp_path) as topologies:
        testbed = load_topology(topologies["local-table-router"])
        (asked,) = parse_kinds("table_router")
        cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=2, nf_kinds=(asked,))
        plan = make_plan(testbed, cell, layout((cpu, cpu, 0, 0) for cpu in range(32)))
        assert plan.suite_id == "eth-l2bd-1ch-4veth-2dcr1t-tablerouter"
        assert Plan.model_validate_json(plan.model_dump_json()) == plan
        assert [function.kind.is_namespace for function in plan.functions] == [True, True]
        assert not list(machine.missing(testbed.dut))
        assert driver_registry.load(asked.driver.factory or "").__name__ == "TableRouters"
        simulated = load_topology(ROOT / "topologies/sim.yaml").dut.model_copy(update={"containers": (asked,)})
        assert simulated.kind_of(ServiceType.CSC, None) == "table_router"
    assert "table_router" not in driver_registry.functions()
    with pytest.raises(ConfigError, match="no NF kind 'table_router'"):
        parse_kinds("table_router")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("{isolatd: true}", r"nodes\.DUT1\.learning_bridge\.isolatd: unknown key; did you mean 'isolated'"),
        ("{isolated: perhaps}", r"nodes\.DUT1\.learning_bridge\.isolated: true or false is expected here"),
    ],
)
def test_options_are_those_of_the_declaration(topology: Path, options: str, sentence: str) -> None:
    text = topology.read_text(encoding="utf-8").replace("{isolated: true}", options)
    topology.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=sentence):
        load_topology(topology)


def test_settings_are_of_the_node_that_has_the_driver(topology: Path) -> None:
    text = topology.read_text(encoding="utf-8").replace("    type: TG", "    type: TG\n    learning_bridge: {}")
    topology.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"nodes\.TG\.learning_bridge: unknown key"):
        load_topology(topology)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("ovss: {}", r"nodes\.DUT1\.ovss: unknown key; did you mean 'ovs'\?"),
        ("ovs: {port: auto}", r"nodes\.DUT1\.ovs\.port: unknown key; did you mean 'ports'\?"),
        ("suricata: {rules: 99999}", r"nodes\.DUT1\.suricata\.rules: 99999 is above the maximum of 50,000"),
        ("vm: 7", r"nodes\.DUT1\.vm: a mapping \(`key: value`\) is expected here, not a number"),
    ],
)
def test_what_is_wrong_under_the_key_of_a_driver_is_named_with_its_line(
    topology: Path, key: str, sentence: str
) -> None:
    text = topology.read_text(encoding="utf-8").replace("    vswitch:", f"    {key}\n    vswitch:")
    topology.write_text(text, encoding="utf-8")
    line = text.splitlines().index(f"    {key}") + 1
    with pytest.raises(ConfigError, match=rf"yaml:{line}: {sentence}"):
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


def test_a_topology_names_only_drivers_that_there_are(topology: Path) -> None:
    text = topology.read_text(encoding="utf-8").replace("vswitch: learning_bridge", "vswitch: bridge")
    topology.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"vswitch: unknown word 'bridge'.*\(known: .*\blearning_bridge\)"):
        load_topology(topology)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: f"{type(driver).__name__}-{driver.name}")
def test_what_a_declaration_names_is_there(driver: Driver) -> None:
    for name in (driver.factory, driver.missing):
        assert name is None or callable(driver_registry.load(name))


def test_checks_of_packages_are_there() -> None:
    for check in driver_registry.node_checks():
        assert callable(driver_registry.load(check.check))
        assert import_module(check.script)


def test_every_kind_has_its_place_in_topologies() -> None:
    for name, driver in driver_registry.functions().items():
        assert {*driver.listed} <= {"containers", "vms"}, name
        assert driver.listed or driver.host, f"no topology can have {name}"


def test_packages_of_programs_are_those_that_are_installed_for_tests() -> None:
    script = (ROOT / "resources/tools/packages.sh").read_text(encoding="utf-8")
    packages = {program.package for driver in DRIVERS for program in driver.programs} - {"vpp"}  # not in Debian
    assert not {each for each in packages if not re.search(rf"(?m)(need|need_service|optional=).*\b{each}\b", script)}


def test_a_driver_may_name_the_products_whose_programs_it_runs() -> None:
    program = RequiredProgram("nft", "nftables", label="nftables")
    asked = FunctionDriver(name="hook", label="hook", word="hook", form=Form.NAMESPACE, programs=(program,))
    assert asked.product_words == {"hook", "nft", "nftables"}


def test_loss_of_tcp_is_known_of_segments_without_a_connection_only() -> None:
    sends = {name for name, driver in driver_registry.generators().items() if Protocol.TCP in driver.protocols}
    again = {name for name in sends if resends(name, Protocol.TCP)}
    assert (sends - again, again) == ({"auto", "xdp", "ring", "otg"}, {"iperf3", "ditg", "sim"})
    assert not any(resends(name, Protocol.UDP) for name in sends)


def test_looking_drivers_up_imports_none() -> None:
    code = (
        "import sys; from resources.libraries.python import driver_registry as found; import json;"
        "found.vswitches(), found.generators(), found.functions();"
        "print(json.dumps([name for name in sys.modules if name.endswith('.driver') and '.drivers.' in name]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == []


@pytest.mark.parametrize("check", [("check",), ("format", "--check")])
def test_code_of_the_page_passes_the_linter(check: tuple[str, ...], tmp_path: Path) -> None:
    write_files_of(ADD_A_DRIVER, tmp_path)
    assert not lint(tmp_path, check, ["resources"])


def test_the_page_names_all_of_its_files() -> None:
    assert ADD_A_DRIVER.read_text(encoding="utf-8").count("```python") == 6


def test_a_driver_that_is_added_changes_no_digest_of_a_testbed(tmp_path: Path) -> None:
    """A run that was begun without the driver is resumed with it."""
    file = ROOT / "topologies/local.yaml"

    def digest() -> str:
        return choices({"TOPOLOGY": str(file)}.get, load_topology(file)).topology_digest

    before = digest()
    with added_drivers(tmp_path):
        assert {"learning_bridge", "table_router"} <= set(driver_registry.settings_of("DUT").model_fields)
        assert digest() == before
