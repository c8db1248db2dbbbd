"""The energy meter of a node in a topology: what is refused, and that the default changes no digest."""

from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.access import EnergyMeter, Powercap
from resources.libraries.python.testbed.node.energy import power_of

METER: TypeAdapter[EnergyMeter] = TypeAdapter(EnergyMeter)
LOCAL = Path(__file__).parents[3] / "topologies" / "local.yaml"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"meter": "redfish", "url": "http://bmc"}, "https://"),
        ({"meter": "redfish", "url": "https://user:secret@bmc"}, "is not a URL"),
        ({"meter": "redfish", "url": "https://bmc", "password": "letmein"}, "a password in a file is refused"),
        ({"meter": "ipmi", "password": "env:X"}, "required with user and password"),
        ({"meter": "ipmi", "host": "-Hx; reboot"}, "is not the name or address of a host"),
        ({"meter": "ipmi", "host": "bmc", "interval_s": 0}, "interval_s"),
        ({"meter": "powercap", "zone": 1}, "zone"),
    ],
)
def test_what_does_not_fit_is_refused(said: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why) as refused:
        METER.validate_python(said)
    assert "letmein" not in str(refused.value.errors(include_input=False, include_url=False))


def test_the_default_is_not_written_so_that_digests_stay(tmp_path: Path) -> None:
    data = yaml.safe_load(LOCAL.read_text(encoding="utf-8"))
    plain = load_topology(LOCAL).dut
    assert plain.energy == Powercap() and "energy" not in plain.model_dump(mode="json")
    data["nodes"]["DUT1"]["energy"] = {"meter": "ipmi"}
    file = tmp_path / "local.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    assert load_topology(file).dut.model_dump(mode="json")["energy"]["meter"] == "ipmi"


@pytest.mark.parametrize(
    ("link", "document", "watts"),
    [
        ("Power", {"PowerControl": [{"PowerConsumedWatts": 211}, {"PowerConsumedWatts": 33.5}]}, 244.5),
        ("Power", {"PowerControl": [{"PowerConsumedWatts": None}]}, None),
        ("Power", {}, None),
        ("EnvironmentMetrics", {"PowerWatts": {"Reading": 187.5}}, 187.5),
        ("EnvironmentMetrics", {"PowerWatts": {"Reading": None}}, None),
        ("EnvironmentMetrics", {"PowerWatts": 3}, None),
    ],
)
def test_power_in_documents_of_redfish(link: str, document: dict[str, object], watts: float | None) -> None:
    assert power_of(link, document) == watts
