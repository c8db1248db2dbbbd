"""Pages, tables and the preview of studies of outages."""

import json
import re
from pathlib import Path

import pytest

from csit_utils.cli import make_app
from csit_utils.dataset.items import Recorded, Status
from csit_utils.studies.outage.study import STUDY, SURVIVED
from csit_utils.studies.registry import record_kinds
from resources.libraries.python.model.record import Record
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.outage.model.record import CONTROL, Quarantined
from tests.builders import cpus
from tests.unit.csit_utils.characterization_records import record
from tests.unit.csit_utils.characterized_pages import made, words
from tests.unit.csit_utils.outages import SPEC, outage, outage_record

(PAGE,) = STUDY.pages


def item(found: Record) -> Recorded[Record]:
    return Recorded(record=found, source="output.xml", status=Status.PASS, message="")


def test_events_stand_beside_the_trials_without_one_and_quarantined_trials_are_counted() -> None:
    found = outage(50)
    left_out = tuple(Quarantined(trial=number, reason="repetition 1: instance 2 lost 3.0 %") for number in (0, 1))
    noisy = record("outage", "Routers", outage=found.model_copy(update={"quarantined": left_out}))
    text = words(made(PAGE, noisy))
    assert "2 of 6 trials are quarantined, because the host lost packets without the event" in text
    assert "without the event: repetition 1: instance 2 lost 3.0 % (2)" in text
    assert "no event kill" not in text and "restart nf-1-1" in text, "events have their names in the map"
    (row,) = [each for each in found.effects if (each.event, each.instance) == ("restart nf-1-1", 2)]
    assert row.control == next(each.lost for each in found.effects if (each.event, each.instance) == (CONTROL, 2))
    assert row.excess is not None and row.excess.mean == row.lost.mean - row.control.mean


def test_collateral_is_reported_only_beyond_the_interval() -> None:
    kinds = record_kinds()
    assert "outage" in kinds
    found = outage(0)
    assert not any(each.is_significant for each in found.effects if not each.is_target)
    assert any(each.is_significant for each in outage(50).effects if not each.is_target)


def test_what_is_followed_over_time_is_the_share_that_arrives() -> None:
    rows = list(record_kinds()["outage"].rows_of(item(outage_record(50))))
    assert len(rows) == 4, "two events of two instances"
    (hit,) = [row for row in rows if row.service_type == "routers: instance 1, restart nf-1-1"]
    # 1001 of 80,000 packets were lost: 20 kpps both ways, for two seconds from the event on.
    ((found,),) = [row.measures for row in rows if row is hit]
    assert found.measure is SURVIVED and found.value == pytest.approx(1 - 1001 / 80_000)
    assert found.highest is not None and found.lowest < found.value < found.highest


def test_a_headline_names_the_worst_of_the_others_or_none() -> None:
    titles = [record_kinds()["outage"].view(item(outage_record(lost)), 0).headline for lost in (0, 50)]
    assert titles[0] == "no event at one instance costs another one more packets than chance does"
    assert titles[1].startswith("restart nf-1-1 costs instance 2 50 packets")


def test_the_preview_counts_trials_and_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app(["outage"])
    app(["outage", str(SPEC)], standalone_mode=False)
    assert "35 trials of 3 s at 30% of NDR, control trials included" in capsys.readouterr().out
    app(["outage", str(SPEC), "--list", "--format", "json"], standalone_mode=False)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["number"] for row in rows] == list(range(35))
    app(["outage", str(SPEC), "--format", "json"], standalone_mode=False)
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["trials"], summary["study"]) == (35, "routers")


def test_the_preview_says_what_a_driver_does_not_support(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    text = SPEC.read_text(encoding="utf-8").replace("{event: move, target: nf-1-1}", "{event: reload, target: nf-1-1}")
    path.write_text(text.replace("event: restart, target: vswitch", "event: reload, target: vswitch"), encoding="utf-8")
    app = make_app(["outage"])
    app(["outage", str(path)], standalone_mode=False)
    said = capsys.readouterr().out
    assert "reload is not possible for nf-1-1: linux_router supports kill, restart, pause, add, move." in said
    assert "30 trials" in said, "whether a vSwitch has rules depends on the testbed"
    app(["outage", str(path), "--topology", str(PROJECT / "topologies" / "local.yaml")], standalone_mode=False)
    said = capsys.readouterr().out
    assert "reload is not possible for vswitch: linux_bridge supports kill, restart, pause, move." in said
    assert "25 trials" in said


def test_the_preview_lists_events_that_the_plan_leaves_no_cpu_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("csit_utils.studies.outage.commands.outage.layout_of", lambda _: cpus(1))
    app, local = make_app(["outage"]), str(PROJECT / "topologies" / "local.yaml")
    reason = "move is not possible for nf-1-1: the data threads of nf-1-1 are on CPU 0, and the plan has no other CPU"
    for options in ([], ["--list"], ["--format", "json"], ["--list", "--format", "json"]):
        app(["outage", str(SPEC), "-t", local, *options], standalone_mode=False)
        out, err = capsys.readouterr()
        assert reason in (err if "--format" in options else out)
        assert "--list" not in options or ("\tmove nf-1-1" not in out and '"move nf-1-1"' not in out)
    two, lab = tmp_path / "two.yaml", tmp_path / "lab.yaml"
    two.write_text(SPEC.read_text(encoding="utf-8").replace("instances: 3", "instances: 2"), encoding="utf-8")
    text = (PROJECT / "topologies" / "available" / "lab-2n-kernel.yaml").read_text(encoding="utf-8")
    lab.write_text(re.sub(r"cpus:\n +- \{cpus: .*", "cpus: discover", text), encoding="utf-8")
    app(["outage", str(two), "-t", str(lab)], standalone_mode=False)
    assert "Which events the plan leaves no CPU for is not known: testbed" in capsys.readouterr().out


def test_a_bad_specification_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(SPEC.read_text(encoding="utf-8").replace("share: 0.3", "share: 3"), encoding="utf-8")
    with pytest.raises(Exception, match="share") as caught:
        make_app(["outage"])(["outage", str(path)], standalone_mode=False)
    assert "\n" not in str(caught.value).strip()
