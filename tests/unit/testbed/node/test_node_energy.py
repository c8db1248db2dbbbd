"""Energy meters of a node: in its topology, a powercap tree of two sockets, what ipmitool prints and Redfish has."""

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.findings import Severity
from resources.libraries.python.model.testbed.access import EnergyMeter, Ipmi, Powercap
from resources.libraries.python.search.energy import node_powers
from resources.libraries.python.testbed.connection.local import LocalConnection
from resources.libraries.python.testbed.node import energy as redfish
from resources.libraries.python.testbed.node.checks.system import check_energy_meter
from resources.libraries.python.testbed.node.energy import NodeMeters, question, read_meter
from resources.libraries.python.testbed.node.scripts import energy
from resources.libraries.python.testbed.roles.watching import Readings
from tests.builders import raising, shell_program, shipped
from tests.unit.testbed.node.machine_trees import tree as files_of

RANGE_UJ, DRAM_RANGE_UJ = 262143328850, 65712999613
ZONES = {
    "intel-rapl:0": ("package-1", RANGE_UJ, 242_098_135_412),
    "intel-rapl:0:0": ("dram", DRAM_RANGE_UJ, 60_113_409_612),
    "intel-rapl:1": ("package-0", RANGE_UJ, 262_143_000_000),
    "intel-rapl:1:0": ("dram", DRAM_RANGE_UJ, 12_345_678),
    "intel-rapl:2": ("psys", RANGE_UJ, 1_000_000),
    "intel-rapl-mmio:0": ("package-0", RANGE_UJ, 77),
}
DCMI = """
    Instantaneous power reading:                   214 Watts
    Minimum during sampling period:                  8 Watts
    Average power reading over sample period:      209 Watts
    Power reading state is:                   activated

"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Zones below devices, and links to all of them in the class, as the kernel has them."""
    folder, devices = tmp_path / "class/powercap", tmp_path / "devices/virtual/powercap"
    folder.mkdir(parents=True)
    (devices / "intel-rapl").mkdir(parents=True)
    (folder / "intel-rapl").symlink_to(devices / "intel-rapl")
    for zone, (name, range_uj, energy_uj) in ZONES.items():
        parts = zone.split(":")
        place = devices.joinpath(*(":".join(parts[:depth]) for depth in range(1, len(parts) + 1)))
        files_of(place, {"name": name, "max_energy_range_uj": range_uj, "energy_uj": energy_uj, "enabled": 1})
        (folder / zone).symlink_to(place)
    return folder


def asked(tree: Path, **more: Any) -> dict[str, Any]:
    return energy.answer({"duration_s": 0.0, "powercap": str(tree), **more})


def read(folder: Path, duration_s: float) -> Readings:
    """By the way of a run, on this machine."""
    with closing(LocalConnection()) as here:
        more = {"powercap": str(folder)}
        return read_meter("DUT1", Powercap(), duration_s, here, python=sys.executable, root=False, more=more)


def test_every_zone_of_a_two_socket_server_is_read(tree: Path) -> None:
    rows = {row["domain"]: row for row in asked(tree)["domains"]}
    assert list(rows) == ["package-1", "package-1/dram", "package-0", "package-0/dram", "psys"]
    assert [name for name, row in rows.items() if not row["counts"]] == ["psys"]
    assert rows["package-1"]["samples"][0][1] == pytest.approx(242098.135412)
    assert rows["package-0"]["wraps_at_j"] == pytest.approx(262143.32885)
    assert rows["package-0"]["resolution"] == pytest.approx(61.035e-6, rel=1e-4)
    assert rows["package-0/dram"]["resolution"] == pytest.approx(15.3e-6, rel=1e-3)


def test_counters_for_root_only_are_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def refused(path: Path, *mode: str, **options: str) -> Any:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *mode, **options)

    monkeypatch.setattr(Path, "open", refused)
    assert asked(tree)["missing"] == f"{tree}/intel-rapl:0/energy_uj is readable by root only"


def test_a_counter_that_starts_again_while_it_is_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is the test's: each sleep moves it, and each second the counters move by 100 W."""
    now = [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        for zone, (_, range_uj, energy_uj) in ZONES.items():
            here = (energy_uj + round((now[0] - 1000.0) * 100e6)) % range_uj
            (tree / zone / "energy_uj").write_text(f"{here}\n", encoding="ascii")

    for name, fake in (("monotonic", lambda: now[0]), ("time", lambda: now[0]), ("sleep", sleep)):
        monkeypatch.setattr(f"time.{name}", fake)
    rows = asked(tree, duration_s=10.0)["domains"]
    samples = next(row for row in rows if row["domain"] == "package-0")["samples"]
    assert samples[-1][1] < samples[0][1] and len(samples) == pytest.approx(101, abs=2)
    monkeypatch.undo()
    there = zip(read(tree, 0.3).series, rows, strict=True)
    (node,) = node_powers([series.model_copy(update={"samples": row["samples"]}) for series, row in there])
    assert node.watts == pytest.approx(400.0) and node.domains["psys"] == pytest.approx(100.0)


def test_ipmitool_is_run_and_one_that_is_missing_or_prints_without_end_is_named(tmp_path: Path) -> None:
    question = {"duration_s": 0.0, "interval_s": 1.0, "ipmi": [str(tmp_path / "ipmitool")]}
    assert energy.answer(question) == {"missing": f"{tmp_path}/ipmitool is not installed"}
    shell_program(tmp_path / "ipmitool", f"[ $IPMI_PASSWORD = secret ] && cat <<'E'\n{DCMI}E")
    (row,) = energy.answer({**question, "environment": {"IPMI_PASSWORD": "secret"}})["domains"]
    assert (row["quantity"], row["interval_s"], row["samples"][0][1]) == ("power", 1.0, 214.0)
    with pytest.raises(RuntimeError, match="power reading state is deactivated"):
        energy.watts_of(DCMI.replace("activated", "deactivated"))
    shell_program(tmp_path / "ipmitool", "exec yes")
    missing = energy.answer(question)["missing"]
    assert missing.startswith("ipmitool dcmi power reading gave no power: y y y") and len(missing) < 300


def test_a_password_is_never_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "CSIT_TEST_BMC", "hidden")
    meter = Ipmi(meter="ipmi", host="10.0.0.5", user="admin", password="env:CSIT_TEST_BMC")  # noqa: S106 - a reference
    found = question("DUT1", meter)
    assert found["ipmi"] == [
        "ipmitool", "-I", "lanplus", "-H", "10.0.0.5", "-p", "623", "-U", "admin", "-E", "dcmi", "power", "reading"
    ]  # fmt: skip
    assert found["environment"] == {"IPMI_PASSWORD": "hidden"}
    monkeypatch.delitem(os.environ, "CSIT_TEST_BMC")
    with pytest.raises(ConfigError, match=r"nodes\.DUT1\.energy: password says env:CSIT_TEST_BMC"):
        question("DUT1", meter)


def test_a_node_that_cannot_be_asked_has_its_reason_and_the_others_are_read() -> None:
    broken = raising(ConfigError("TG: no way there"))
    meters = NodeMeters({"TG": broken, "DUT1": lambda *_: Readings((), {"DUT1": "no counters"})})
    meters.begin(1.0)
    assert meters.end().unmetered == {"TG": "TG: no way there", "DUT1": "no counters"}
    assert meters.end().unmetered == {}


def test_a_trial_begins_when_meters_are_read_however_long_their_logins_take() -> None:
    order: list[str] = []

    def slow(_: float, ready: Callable[[], None]) -> Readings:
        threading.Event().wait(0.05)
        order.append("logged in")
        ready()
        return Readings((), {})

    def prompt(_: float, ready: Callable[[], None]) -> Readings:
        ready()
        order.append("read")
        return Readings((), {})

    meters = NodeMeters({"TG": prompt, "DUT1": slow, "DUT2": raising(CsitError("no answer"))})
    meters.begin(1.0)
    order.append("trial")
    assert meters.end().unmetered == {"DUT2": "no answer"}
    assert order[0] == "logged in", "all meters are read for as long, from the same moment on"
    assert sorted(order[1:]) == ["read", "trial"]


def test_the_doctor_says_what_a_node_takes_or_why_it_is_not_known(tree: Path) -> None:
    (finding,) = check_energy_meter("nodes.DUT1", Powercap(), read(tree, 0.3))
    assert " W by powercap: package-1 0.0 W, package-1/dram 0.0 W, package-0 0.0 W" in finding.what
    none = read(tree / "none", 0.1)
    (finding,) = check_energy_meter("nodes.DUT1", Powercap(), none)
    assert finding.what.startswith(f"no energy meter: no {tree}/none/intel-rapl:*: the kernel shows no energy")
    (finding,) = check_energy_meter("nodes.DUT1", Ipmi(meter="ipmi"), none)
    assert finding.level is Severity.WARNING and finding.what.startswith("cannot read power from ipmi: ")


def test_an_answer_of_a_bmc_without_an_end_is_refused() -> None:
    closed: list[bool] = []
    endless = SimpleNamespace(_content=None, iter_content=lambda size: repeat(b"[" * size))
    endless.close = lambda: closed.append(True)
    with pytest.raises(OSError, match="more than 1,048,576 bytes"):
        redfish._Bounded(60.0)(endless)
    assert closed


@pytest.mark.parametrize("watts", ["1e400", "9" * 400, "NaN", "null", "[]", "-5", "1e13"])
def test_a_power_that_is_no_number_is_no_power(watts: str) -> None:
    text = '{"PowerWatts": {"Reading": @}, "PowerControl": [{"PowerConsumedWatts": @}]}'
    document = json.loads(text.replace("@", watts))
    assert [redfish.power_of(link, document) for link in ("EnvironmentMetrics", "Power")] == [None, None]
    assert redfish.power_of("Power", {}) is redfish.power_of("EnvironmentMetrics", {"PowerWatts": 3}) is None
    supplies = [{"PowerConsumedWatts": 211}, {"PowerConsumedWatts": 33.5}]
    assert redfish.power_of("Power", {"PowerControl": supplies}) == 244.5
    assert redfish.power_of("EnvironmentMetrics", {"PowerWatts": {"Reading": 187.5}}) == 187.5


METER: TypeAdapter[EnergyMeter] = TypeAdapter(EnergyMeter)


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
def test_a_meter_that_does_not_fit_is_refused(said: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why) as refused:
        METER.validate_python(said)
    assert "letmein" not in str(refused.value.errors(include_input=False, include_url=False))


def test_the_default_meter_is_not_written_so_that_digests_stay() -> None:
    dut = shipped("local").dut
    assert dut.energy == Powercap() and "energy" not in dut.model_dump(mode="json")
    other = dut.model_copy(update={"energy": Ipmi(meter="ipmi")})
    assert type(dut).model_validate(other.model_dump(mode="json")).energy == other.energy
