"""Scripts of the SIP service: rates from the statistics of SIPp, and scenarios for every option."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.unit.specs.scripts import SPECS, load

CALLS = load("sip-service/calls.py")
FOLDER = SPECS / "sip-service"
HEAD = "StartTime;ElapsedTime(C);TotalCallCreated;SuccessfulCall(C);FailedCall(C);\n"


@pytest.mark.parametrize(
    ("text", "seconds"), [("00:00:03:500000", 3.5), ("00:01:00.250", 60.25), ("01:00:00", 3600.0), ("00:00:01", 1.0)]
)
def test_times_of_all_versions_are_read(text: str, seconds: float) -> None:
    assert CALLS.seconds(text) == seconds


def test_a_row_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "statistics.csv"
    assert CALLS.rows(path) == []
    path.write_text(f"{HEAD}x;00:00:01;30;28;0;\nx;00:00:02;60;5", encoding="ascii")
    assert CALLS.rows(path) == [(1.0, 30, 28)]


def test_rates_are_without_the_first_second() -> None:
    assert CALLS.rates([(0.0, 0, 0), (1.0, 30, 20), (2.0, 60, 50), (3.0, 90, 78)]) == (30.0, 29.0)
    assert CALLS.rates([]) == CALLS.rates([(0.5, 9, 9)]) == CALLS.rates([(1.0, 30, 20)]) == (0.0, 0.0)


@pytest.mark.parametrize("workload", sorted(FOLDER.glob("reg-*.json")), ids=lambda path: path.stem)
def test_every_kind_of_call_has_its_scenario(workload: Path) -> None:
    for name in json.loads(workload.read_text(encoding="utf-8"))["options"]["calls"]["values"]:
        sent = [node.text or "" for node in ET.parse(CALLS.scenario(name)).getroot().iter("send")]  # noqa: S314 - ours
        methods = [text.split()[0] for text in sent]
        assert [methods[0], methods[1], methods[-1]] == ["REGISTER"] * 3
        assert methods[2:-1] == (["INVITE", "ACK", "BYE"] if name == "reg-invite" else [])
        # The contact of a registration is the called side, where there is one.
        assert all(
            ("[answer_port]" in text) == (name == "reg-invite") for text in sent if text.split()[0] == "REGISTER"
        )
