"""Topology files: good ones load, and each kind of mistake is one sentence with its place, in our words."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core._pydantic_core import list_all_errors

from csit_utils.bisection.spec import BisectionSpec
from csit_utils.dataset.foreign.csit import Test as CsitTest
from csit_utils.dataset.foreign.nfvbench import NfvbenchRun
from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.drivers.sim.sizing import SimulatedService
from resources.libraries.python.model.base import reason_of_value
from resources.libraries.python.model.bounds import ASKED
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.frames import TrafficProfile
from resources.libraries.python.model.service.spec import DeploymentSpec
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.model.testbed.nodes import MacAddress, PciAddress
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.chains.model.spec import ChainFile
from resources.libraries.python.studies.interference.model import InterferenceSpec
from resources.libraries.python.studies.outage.model import OutageSpec
from resources.libraries.python.studies.stateful.model import StatefulSpec
from tests.builders import TOPOLOGIES
from tests.unit.planning.labs import TWO_NODES, refused, written

SIM, TWO, THREE, VPP, OTG = (
    (TOPOLOGIES / f"{name}.yaml").read_text(encoding="utf-8")
    for name in ("sim", *(f"available/lab-{kind}" for kind in ("2n-kernel", "3n-vpp", "2n-vpp", "2n-otg")))
)
CSIT = TWO_NODES.replace("in the clear", "env:CSIT_LAB_PASSWORD")
FILES = (
    Topology, driver_registry.settings_of("TG"), driver_registry.settings_of("DUT"), Simulation, TrafficProfile,
    BisectionSpec, ChainFile, InterferenceSpec, OutageSpec, StatefulSpec, DeploymentSpec, WorkloadSpec,
    SimulatedService, CsitTest, NfvbenchRun,
)  # fmt: skip
"""What users write, or other programs for them."""
WRONG: tuple[Any, ...] = ("x\x07 y", "", -7, 1e30, float("nan"), True, None, [], [[]], {}, {"x": "x"}, {1: 2})
THEIRS = ("Input should", "should have", "should match", "should be", "Value error", "Assertion", "a valid ",
          "validation", "Field required", "Extra inputs", "Unable to", "Keys ", "Expected")  # fmt: skip


def is_ours(text: str) -> bool:
    return not any(word in text for word in THEIRS)


@pytest.mark.parametrize("path", sorted(TOPOLOGIES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_topology_loads(path: Path) -> None:
    assert load_topology(path).address_problems == ()


@pytest.mark.parametrize(
    ("text", "before", "after", "expected"),
    [
        (SIM, "vswitch: sim", "vswich: sim", r":25: nodes\.DUT1\.vswich: unknown key; did you mean 'vswitch'\?"),
        (SIM, "link: link2, rate", "link: link3, rate", r"interfaces\.port2\.link: 'link3' has 1 end \(TG\.port2\)"),
        (SIM, "cores: 0-27", "cores: 0-26", r":21: nodes\.DUT1\.cpus\.0: 28 CPUs \(0-27\) but 27 cores \(0-26\)"),
        (SIM, "cpus: 0-27,", "cpus: 27-0,", r"nodes\.DUT1\.cpus\.0\.cpus: the range 27-0 .* runs backwards"),
        (SIM, "  DUT1:", "  TG:", r":18: nodes\.TG: duplicate key, first on line 12"),
        (SIM, "world: sim", "world: local", r"simulation: required in world sim"),
        (SIM, "version: 1", "version: 2", r":3: metadata\.version"),
        (SIM, "world: sim", "world: [sim", r":7: not valid YAML"),
        (SIM, "10000000000", "-5", r"rate_bps: -5 is not above 0"),
        (THREE, "port2: {link: link2,", "port2: {link: link3,", r"link: 'link3' has 3 ends"),
        (TWO, "    access: {host: 192.0.2.31, user: csit}\n", "", r":\d+: nodes\.TG: access .* is required in world"),
        (TWO, "driver: ring", "driver: otg", r"nodes\.TG\.access: not allowed: the controller drives otg over its API"),
        (TWO, "driver: ring", "driver: sim", r"nodes\.TG: generator\.driver: sim is allowed in world sim only"),
        (TWO, "vms: qemu", "vms: sim", r"nodes\.DUT1: vms: sim is allowed in world sim only"),
        (TWO, "cores: 2}", "cores: 2}\n    shares_machine_with: DUT1", r"nodes of a lab are machines of their own"),
        (THREE, "containers: vpp\n", "containers: linux_router\n", r"nodes\.DUT2\.containers: differs from the first"),
        (THREE, "driver: i40e, numa_node: 0", "driver: i40e, numa_node: 1", r"TG\.interfaces: on NUMA node 1, but"),
        (TWO, "user: csit", "user: csit, password: abc", r"nodes\.TG\.access\.password: a password in a file is"),
        (TWO, "user: csit", "user: csit, silence_s: 1", r"nodes\.TG\.access\.silence_s: 1 is below the minimum of 5"),
        (TWO, "user: csit", "user: csit, python: /sbin/halt", r"nodes\.TG\.access\.python: no name of a Python; write"),
        (TWO, "world: lab", "world: lab\nnic: Intel-X710", r"no cable ends at a NIC of model 'Intel-X710'"),
        (VPP, "53:12", "53:11", r":37: nodes\.TG\.interfaces\.port2\.mac_address: .* is the MAC address of TG\.port1"),
        (VPP, "00:00:5e:00:53:21", "00-00-5E-00-53-12", r"DUT1\.interfaces\.port1\.mac_address: .* of TG\.port2 too"),
        (VPP, "00:00:5e:00:53:21", "03:00:5e:00:53:21", r"03:00:5e:00:53:21 is a multicast address, which no port has"),
        (VPP, "00:00:5e:00:53:21", "00:00:00:00:00:00", r"is no address of a port; leave the key out"),
        (VPP, "0000:17:00.1", "0000:17:00.0", r":37: nodes\.TG\.interfaces\.port2\.pci_address: .* the PCI address of"),
        (VPP, "192.0.2.12", "192.0.2.11", r":41: nodes\.DUT1\.access\.host: 192\.0\.2\.11 port 22 is TG too; each"),
        (VPP, "  DUT1:\n", '      p3: {link: x, mac_address: "00:00:5e:00:53:11"}\n      p4: {link: x}\n  DUT1:\n',
         r"TG\.interfaces\.p3\.mac_address: .* of TG\.port1 too"),
        (VPP, '"00:00:5e:00:53:11"', "12:34:56:12:34:56", "12:34:56:12:34:56 without quotes is a number, and"),
        (VPP, '"0000:17:00.0"', "0000:17:00.0", "0000:17:00.0 without quotes is a number, and"),
        (VPP, "name: lab-2n-vpp", "name: NO", 'NO without quotes is a boolean, and a string .*; quote it: "NO"$'),
        (VPP, "user: csit}", "user: csit, port: ssh}", "a whole number is expected here, not the string 'ssh'$"),
        (VPP, "user: csit}", "user: csit, port: 0}", "0 is below the minimum of 1$"),
        (VPP, "user: csit}", "user: csit, jump: [4]}", r"a mapping \(`key: value`\) is expected here, not a number$"),
        (VPP, "cores: 8}", "cores: 8.5}", "a whole number is expected here, not the number 8.5$"),
        (VPP, "type: DUT", "type: SUT", r"DUT1: type: unknown word 'SUT'; did you mean 'DUT'\? \(known: TG, DUT\)$"),
        (VPP, "    type: DUT\n", "", r"nodes\.DUT1: .*type.* is missing"),
        (VPP, "containers: vpp ", "containers: [] ", "must not be empty$"),
        (VPP, '"00:00:5e:00:53:11"', '"00:00:5e"', "'00:00:5e' is not a MAC address such as"),
        (VPP, '"0000:17:00.0"', '"17:00.0"', "'17:00.0' is not a PCI address such as"),
        (VPP, "name: lab-2n-vpp", "name: 2n", "2n' is not a name of letters, digits and _.-, which begins with a"),
        (VPP, "ice, numa_node: 0", "ice, nic_vfs: 2", r"the number 2 is not possible here \(known: 0, 1\)$"),
        (CSIT, "subtype: TREX", "subtype: IXIA", r":10: nodes\.TG\.subtype: generator 'IXIA' is not supported"),
        (CSIT, "host: 192.0.2.1\n", "hots: 192.0.2.1\n", r":12: nodes\.TG\.hots: unknown key; did you mean 'host'"),
        (CSIT, "    host: 192.0.2.1\n", "", r":8: nodes\.TG\.host: is missing"),
        (CSIT, "link: link2, model: Intel-E810CQ}\n", "link: x, model: Intel-E810CQ}\n", "no path for a service"),
        (CSIT, "env:CSIT_LAB_PASSWORD", "env:CSIT LAB PASSWORD", r":16: nodes\.TG\.password: a password in a file is"),
        *((OTG, "    type: TG\n", f"    type: TG\n    {key}\n", rf"nodes\.TG\.{place}: not allowed: the")
          for key, place in (("access: {host: a, user: b}", "access"), ("uio_driver: igb_uio", "uio_driver"))),
        (OTG, "{driver: otg}", "{driver: otg, cores: 2}", r"nodes\.TG\.generator\.cores: not allowed: the controller"),
        *((OTG, "port2: {", f"port2: {{{key}, ", r"nodes\.TG\.interfaces\.port2\.\w+: not allowed: the controller")
          for key in ("driver: i40e", "nic_vfs: 1", "numa_node: 0", "rx_queues: 4", "pci_address: '0000:3b:00.1'")),
        *((THREE, "{engine: auto}", f"{{engine: podman, image: '{image}'}}", r"nodes\.DUT1\.container\.image")
          for image in ("--privileged", "a b", "", "x" * 256)),
        (THREE, "{engine: auto}", "{engine: docker}", r"nodes\.DUT2\.container: differs from the first DUT's"),
        (SIM, "world: sim", "world: sim\nnic: Intel-X710", "nic: allowed in world lab only"),
        (SIM, "{node: 0, total_mb", "{node: 1, total_mb", r"memory: has NUMA nodes \[1\], but interfaces are on"),
        (SIM, "memory: ", "memory:\n      - {total_mb: 4096}", "memory: has a NUMA node more than once"),
        (SIM, "196608, hugepages_2mb: 65536", "1024, hugepages_1gb: 2", "2048 MB of huge pages in 1024 MB of memory"),
        (TWO, "enp59s0f1", "enp59s0f0", r":19: nodes\.TG\.interfaces\.port2\.device: .* is the device of TG\.port1"),
        (CSIT, "---\n", "---\nnic: Mellanox-CX6DX\n", "no cable ends at a NIC .*there are Intel-E810CQ, Intel-X710"),
        (CSIT, "host: 192.0.2.1\n", 'host: "{{ ip }}"\n', r":12: a template: fill in \{\{ ip \}\} and all other"),
        (CSIT, "    interfaces:\n", "    interfaces:\n${PORTS}\n", r":20: a template: fill in \$\{PORTS\}"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_place_in_our_words(
    tmp_path: Path, text: str, before: str, after: str, expected: str
) -> None:
    said = refused(tmp_path, text, before, after)
    assert re.search(expected, said), said
    assert is_ours(said)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words", "\x00"])
def test_no_topology_at_all(tmp_path: Path, text: str) -> None:
    refused(tmp_path, text)


def test_addresses_that_look_wrong_and_are_not(tmp_path: Path) -> None:
    """Two machines have the same PCI addresses, a host has two ports of SSH, a bridge for NVMe gives long domains."""
    one_host = VPP.replace("host: 192.0.2.12", "host: 192.0.2.11, port: 2222")
    assert load_topology(written(tmp_path, one_host)).address_problems == ()
    long = load_topology(written(tmp_path, VPP.replace("0000:17:00.", "10000:E1:00.")))
    assert long.dut.interfaces["port1"].pci_address == "10000:e1:00.0"
    unknown = load_topology(written(tmp_path, VPP.replace("numa_node: 0", "numa_node: -1")))
    assert {port.numa_node for port in unknown.dut.interfaces.values()} == {None}


@pytest.mark.parametrize(("tg", "dut"), [("2001:db8::1", "2001:DB8:0:0::1"), ("tg.lab", "TG.lab.")])
def test_two_spellings_of_a_host_are_one_machine(tmp_path: Path, tg: str, dut: str) -> None:
    said = refused(tmp_path, VPP.replace("host: 192.0.2.11", f"host: '{tg}'"), "host: 192.0.2.12", f"host: '{dut}'")
    assert re.search(r"DUT1\.access\.host: .* is TG too", said)


def models(found: object, seen: set[object]) -> Iterator[type[BaseModel]]:
    """The model, and all models inside it."""
    if isinstance(found, type) and issubclass(found, BaseModel) and found not in seen:
        seen.add(found)
        yield found
        for field in found.model_fields.values():
            yield from models(field.annotation, seen)
    for argument in getattr(found, "__args__", ()):
        yield from models(argument, seen)


def test_every_field_of_every_file_is_refused_in_our_words() -> None:
    seen: set[object] = set()
    reasons: dict[str, str] = {}
    for model in (each for file in FILES for each in models(file, seen)):
        for name, field in model.model_fields.items():
            for value in WRONG:
                try:
                    model.model_validate({field.alias or name: value}, context=ASKED)
                except ValidationError as error:
                    for row in error.errors(include_url=False):
                        reasons.setdefault(reason_of_value(row), f"{model.__name__}.{name}: {value!r}")
    assert len(seen) > 60
    assert not {text: at for text, at in reasons.items() if not is_ours(text) or not text}


def test_every_type_of_error_that_the_library_knows_has_our_words() -> None:
    for each in list_all_errors():
        for value in WRONG:
            row: Any = {
                "type": each["type"], "loc": ("key",), "input": value, "msg": each["example_message_python"],
                "ctx": each["example_context"] or {},
            }  # fmt: skip
            if each["type"] in ("value_error", "assertion_error"):
                row["ctx"] = {"error": "in our own words"}
            text = reason_of_value(row)
            assert text, each["type"]
            assert text != each["example_message_python"], each["type"]
            assert is_ours(text), (each["type"], text)


MAC, PCI = TypeAdapter(MacAddress), TypeAdapter(PciAddress)
HEX = st.sampled_from("0123456789abcdef")


@given(st.lists(st.text(HEX, min_size=2, max_size=2), min_size=6, max_size=6), st.sampled_from(":-"), st.booleans())
def test_mac_addresses_are_read_in_the_usual_ways(parts: list[str], between: str, upper: bool) -> None:
    text = between.join(parts)
    found = MAC.validate_python(text.upper() if upper else text)
    assert found == ":".join(parts)


@given(st.text(HEX, min_size=4, max_size=8), st.text(HEX, min_size=2, max_size=2), st.integers(0, 7), st.booleans())
def test_pci_addresses_are_read_in_the_usual_ways(domain: str, bus: str, function: int, upper: bool) -> None:
    text = f"{domain}:{bus}:00.{function}"
    assert PCI.validate_python(text.upper() if upper else text) == text


@given(st.text(max_size=30))
def test_whatever_is_no_address_is_refused_in_our_words(text: str) -> None:
    for kind in (MAC, PCI):
        try:
            kind.validate_python(text)
        except ValidationError as error:
            assert " is not a " in reason_of_value(error.errors(include_url=False)[0])
