"""No sentence about a file is the validation library's: each type of error has words of ours."""

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
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import ASKED
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.frames import TrafficProfile
from resources.libraries.python.model.service.spec import DeploymentSpec
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.model.testbed.nodes import MacAddress, PciAddress
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.model.validation import reason_of_value
from resources.libraries.python.studies.chains.model.spec import ChainFile
from resources.libraries.python.studies.interference.model.record import InterferenceSpec
from resources.libraries.python.studies.outage.model.record import OutageSpec
from resources.libraries.python.studies.stateful.model.record import StatefulSpec

LAB = (Path(__file__).parents[3] / "topologies" / "available" / "lab-2n-vpp.yaml").read_text(encoding="utf-8")
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


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"00:00:5e:00:53:11"', "12:34:56:12:34:56", "12:34:56:12:34:56 without quotes is a number, and"),
        ('"0000:17:00.0"', "0000:17:00.0", "0000:17:00.0 without quotes is a number, and"),
        ("name: lab-2n-vpp", "name: NO", 'NO without quotes is a boolean, and a string .*; quote it: "NO"$'),
        ("name: lab-2n-vpp", "name: 2.10", 'name: 2.10 without quotes is a number, .*; quote it: "2.10"$'),
        ("user: csit}", "user: csit, become: no}", 'no without quotes is a boolean, .*; quote it: "no"$'),
        ("user: csit}", "user: csit, port: ssh}", "a whole number is expected here, not the string 'ssh'$"),
        ("user: csit}", "user: csit, port: 0}", "0 is below the minimum of 1$"),
        ("user: csit}", "user: csit, silence_s: long}", "a number is expected here, not the string 'long'$"),
        ("user: csit}", "user: csit, jump: [4]}", r"a mapping \(`key: value`\) is expected here, not a number$"),
        ("host: 192.0.2.11", 'host: ""', r"access\.host: must not be empty$"),
        ("cores: 8}", "cores: on}", r":\d+: nodes\.TG\.generator\.cores: a whole number is expected here, not true$"),
        ("memory_mb: 256", "memory_mb: yes", r"nodes\.DUT1\.vm\.memory_mb: a number is expected here, not true$"),
        ("_1gb: 64", "_1gb: no", r"nodes\.DUT1\.memory\.0\.hugepages_1gb: a whole number is expected here, not false$"),
        ("socket: 0, node: 0}", "socket: -1, node: 0}", r"cpus\.0\.socket: -1 is below the minimum of 0"),
        ("cores: 8}", "cores: 8.5}", "a whole number is expected here, not the number 8.5$"),
        ("type: DUT", "type: SUT", r"nodes\.DUT1: type: unknown word 'SUT'; did you mean 'DUT'\? \(known: TG, DUT\)$"),
        ("    type: DUT\n", "", r"nodes\.DUT1: .*type.* is missing"),
        ("containers: vpp ", "containers: [] ", "must not be empty$"),
        ('"00:00:5e:00:53:11"', '"00:00:5e"', "'00:00:5e' is not a MAC address such as"),
        ('"0000:17:00.0"', '"17:00.0"', "'17:00.0' is not a PCI address such as"),
        ("name: lab-2n-vpp", "name: 2n", "2n' is not a name of letters, digits and _.-, which begins with a letter$"),
        ("driver: ice, numa_node: 0", "driver: ice, nic_vfs: 2", r"the number 2 is not possible here \(known: 0, 1\)$"),
    ],
)  # fmt: skip
def test_a_value_is_shown_as_it_stands_in_the_file(tmp_path: Path, before: str, after: str, expected: str) -> None:
    path = tmp_path / "lab.yaml"
    assert before in LAB
    path.write_text(LAB.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=expected) as caught:
        load_topology(path)
    assert is_ours(str(caught.value))


def test_a_password_that_is_a_number_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(LAB.replace("user: csit}", "user: csit, password: 123456}"), encoding="utf-8")
    with pytest.raises(ConfigError, match="a password in a file is refused") as caught:
        load_topology(path)
    assert "123456" not in str(caught.value)


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
