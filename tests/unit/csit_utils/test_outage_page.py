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
from resources.libraries.python.studies.outage.model import CONTROL, Quarantined
from tests.builders import cpus
from tests.unit.csit_utils.characterization_records import record
from tests.unit.csit_utils.characterized_pages import made, words
from tests.unit.csit_utils.outages import SPEC, outage, outage_record

(PAGE,), LOCAL = STUDY.pages, PROJECT / "topologies" / "local.yaml"


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


def test_collateral_beyond_the_interval_and_the_share_that_arrives_are_told() -> None:
    for lost, headline in (
        (0, "no event at one instance costs another one more packets than chance does"),
        (50, "restart nf-1-1 costs instance 2 50 packets"),
    ):
        assert any(each.is_significant for each in outage(lost).effects if not each.is_target) is bool(lost)
        assert record_kinds()["outage"].view(item_of(lost), 0).headline.startswith(headline)
    rows = list(record_kinds()["outage"].rows_of(item_of(50)))
    assert len(rows) == 4, "two events of two instances"
    (hit,) = (row for row in rows if row.service_type == "routers: instance 1, restart nf-1-1")
    # 1001 of 80,000 packets were lost: 20 kpps both ways, for two seconds from the event on.
    (found,) = hit.measures
    assert found.measure is SURVIVED and found.value == pytest.approx(1 - 1001 / 80_000)
    assert found.highest is not None and found.lowest < found.value < found.highest


def item_of(collateral: int) -> Recorded[Record]:
    return Recorded(record=outage_record(collateral), source="output.xml", status=Status.PASS, message="")


def previewed(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[str, str]:
    """What the command prints, as output and as error."""
    make_app(["outage"])(["outage", *map(str, words)], standalone_mode=False)
    return capsys.readouterr()


def test_the_preview_counts_trials_and_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert "35 trials of 3 s at 30% of NDR, control trials included" in previewed(capsys, SPEC)[0]
    rows = map(json.loads, previewed(capsys, SPEC, "--list", "--format", "json")[0].splitlines())
    assert [row["number"] for row in rows] == list(range(35))
    summary = json.loads(previewed(capsys, SPEC, "--format", "json")[0].splitlines()[-1])
    assert (summary["trials"], summary["study"]) == (35, "routers")


def test_the_preview_says_what_a_driver_does_not_support(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    text = SPEC.read_text(encoding="utf-8").replace("{event: move, target: nf-1-1}", "{event: reload, target: nf-1-1}")
    path.write_text(text.replace("event: restart, target: vswitch", "event: reload, target: vswitch"), encoding="utf-8")
    said, _ = previewed(capsys, path)
    assert "reload is not possible for nf-1-1: linux_router supports kill, restart, pause, add, move." in said
    assert "30 trials" in said, "whether a vSwitch has rules depends on the testbed"
    said, _ = previewed(capsys, path, "--topology", LOCAL)
    assert "reload is not possible for vswitch: linux_bridge supports kill, restart, pause, move." in said
    assert "25 trials" in said


def test_the_preview_lists_events_that_the_plan_leaves_no_cpu_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("csit_utils.studies.outage.outage_command.layout_of", lambda _: cpus(1))
    reason = "move is not possible for nf-1-1: the data threads of nf-1-1 are on CPU 0, and the plan has no other CPU"
    for options in ([], ["--list"], ["--format", "json"], ["--list", "--format", "json"]):
        out, err = previewed(capsys, SPEC, "-t", LOCAL, *options)
        assert reason in (err if "--format" in options else out)
        assert "--list" not in options or ("\tmove nf-1-1" not in out and '"move nf-1-1"' not in out)
    two, lab = tmp_path / "two.yaml", tmp_path / "lab.yaml"
    two.write_text(SPEC.read_text(encoding="utf-8").replace("instances: 3", "instances: 2"), encoding="utf-8")
    text = (PROJECT / "topologies" / "available" / "lab-2n-kernel.yaml").read_text(encoding="utf-8")
    lab.write_text(re.sub(r"cpus:\n +- \{cpus: .*", "cpus: discover", text), encoding="utf-8")
    unknown = "Which events the plan leaves no CPU for is not known: testbed"
    assert unknown in previewed(capsys, two, "-t", lab)[0]
