"""Tests are grouped into runs that people can name."""

from dataclasses import replace

from csit_utils.analysis.runs import SideKind, history
from tests.unit.csit_utils.histories import row

RATE = 1e6


def test_a_run_is_called_by_testbed_and_day_and_runs_are_in_the_order_of_time() -> None:
    rows = [row(RATE, night, testbed) for night in (2, 0, 1) for testbed in ("lab-b", "lab-a")]
    found = history(rows)
    assert [run.name for run in found.of(found.testbeds[0])] == [
        "lab-a 2026-11-01",
        "lab-a 2026-11-02",
        "lab-a 2026-11-03",
    ]
    assert [one.name for one in found.testbeds] == ["lab-a", "lab-b"]
    previous = found.previous(found.testbeds[1])
    assert found.latest(found.testbeds[1]).name == "lab-b 2026-11-03"
    assert previous.name == "lab-b 2026-11-02"


def test_a_label_is_the_name_and_two_runs_of_one_name_show_their_time() -> None:
    rows = [row(RATE, 0, label="26.10"), row(RATE, 1), row(RATE, 1, run="again.xml", started_at="2026-11-02T23:30:00Z")]
    assert [run.name for run in history(rows).runs] == [
        "lab-a 26.10",
        "lab-a 2026-11-02 22:11:00",
        "lab-a 2026-11-02 23:30:00",
    ]


def test_a_test_without_a_record_is_of_the_testbed_of_its_run() -> None:
    lost = replace(row(None), testbed=None, simulated=None, world=None, started_at=None, recorded=False)
    (run,) = history([row(RATE), lost]).runs
    assert len(run.rows) == 2
    elsewhere = row(RATE, testbed="lab-b", run=row(RATE).run)
    assert [len(run.rows) for run in history([row(RATE), elsewhere, lost]).runs] == [1, 1]


def test_simulated_and_measured_runs_are_never_of_one_testbed() -> None:
    found = history([row(RATE), row(RATE, 1, simulated=True)])
    assert [(one.name, one.simulated) for one in found.testbeds] == [("lab-a", False), ("lab-a", True)]
    assert found.previous(found.testbeds[0]) is None


def test_what_can_be_compared_are_testbeds_releases_and_runs() -> None:
    old = [row(RATE, night, label="26.06", version="VPP 26.06") for night in (0, 1)]
    new = [row(RATE, night, version="VPP 26.10") for night in (2, 3)]
    found = history([*old, *new])
    assert [(side.kind, side.name, len(side.runs)) for side in found.sides] == [
        (SideKind.TESTBED, "lab-a, all runs", 4),
        (SideKind.LABEL, "lab-a 26.06, all runs", 2),
        (SideKind.VERSION, "lab-a VPP 26.10, all runs", 2),
        (SideKind.VERSION, "lab-a VPP 26.06, all runs", 2),
        (SideKind.RUN, "lab-a 2026-11-04", 1),
        (SideKind.RUN, "lab-a 2026-11-03", 1),
        (SideKind.RUN, "lab-a 26.06 2026-11-02 22:11:00", 1),
        (SideKind.RUN, "lab-a 26.06 2026-11-01 22:11:00", 1),
    ]
    (released,) = (side for side in found.sides if side.kind is SideKind.LABEL)
    assert released.runs == found.runs[:2]


def test_times_of_any_zone_and_none() -> None:
    rows = [row(RATE, run="x", started_at="2026-11-02T01:00:00+05:00"), row(RATE, run="y", started_at="tomorrow")]
    assert [run.name for run in history(rows).runs] == ["lab-a undated", "lab-a 2026-11-01"]
