"""How tests and runs end: one cause for one sentence, whatever numbers are in it, and an exit status of a run."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from csit_utils import cli
from csit_utils.analysis.causes import CauseKind, abstracted, causes, condensed
from csit_utils.commands.results.inputs import opened
from csit_utils.commands.results.show import unfinished
from csit_utils.dataset.rows import TestRow
from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.marker import NOTHING_FITS
from tests.unit.csit_utils.builders import CSC, mrr_result
from tests.unit.csit_utils.characterization_records import burst
from tests.unit.csit_utils.robot_output import write_output_xml

ROW = TestRow("a", "S.t", "t", "output.xml", recorded=True, status="FAIL", message="", tags="")


def failed(message: str, day: int = 1, **changes: object) -> TestRow:
    """A test that failed on a day of January."""
    made = replace(ROW, anchor=f"a{day}", message=message, started_at=f"2026-01-{day:02d}T00:00:00+00:00")
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nf-2-1 is down", "nf-10-3 is down"),
        ("needs 33 cores on NUMA 0, 28 available", "needs 41 cores on NUMA 1, 28 available"),
        ("instance 3 forward: csv1p1 saw 0 of 1,000 packets", "instance 1 forward: csv12p2 saw 17 of 9 packets"),
        ("quarantined: CSC 2R1C NF-1c vSwitch-1c: it hung", "quarantined: VSC 10R4C NF-0.5c vSwitch-2c: it hung"),
        ("the port 0000:3b:00.1 is gone", "the port 0000:5e:00.0 is gone"),
        ("it hung\nconsole: 17 lines", "it hung\nconsole: other lines"),
    ],
)
def test_numbers_and_names_do_not_make_another_cause(one: str, other: str) -> None:
    assert abstracted(one) == abstracted(other)
    assert len(causes([failed(one), failed(other, 2)])) == 1


def test_a_cause_has_its_count_and_times() -> None:
    rows = [failed("nf-1-1 is down", 3), failed("nf-2-1 is down", 9), failed("nf-1-2 is down", 5), failed("hung", 1)]
    first, second = causes([*rows, replace(ROW, status="PASS")])
    assert (first.sentence, [row.started_at[8:10] for row in first.tests]) == ("… is down", ["09", "05", "03"])
    assert second.sentence == "hung"
    times = {"a": None, "b": "2026-11-02", "c": "2026-11-02", "d": "2026-11-01", "e": "2026-11-03", "f": None}
    (found,) = causes([failed("no", anchor=name, started_at=time) for name, time in times.items()])
    assert "".join(row.anchor for row in found.tests) == "ecbdaf", (
        "those that were not started come last in their order"
    )


def test_the_worst_comes_first_and_tests_that_were_left_out_for_a_broken_cell_are_of_its_cause() -> None:
    rows = [
        failed("needs VPP", status="SKIP"),
        failed("needs 33 cores", unfit=True),
        failed("down"),
        failed("down", status="SKIP"),
        failed("quarantined after 2 attempts: down"),
        failed("quarantined: CSC 1R1C: down", status="SKIP"),
    ]
    assert [(cause.kind, len(cause.tests)) for cause in causes(rows)] == [
        (CauseKind.QUARANTINED, 2),
        (CauseKind.FAILED, 1),
        (CauseKind.DOES_NOT_FIT, 1),
        (CauseKind.SKIPPED, 1),
        (CauseKind.SKIPPED, 1),
    ], "other words, and another end, make another cause"


@given(st.text())
def test_any_message_has_a_cause(message: str) -> None:
    (cause,) = causes([failed(message)])
    assert not any(character in cause.sentence for character in "0123456789")


def test_files_that_fail_alike_are_one_sentence_with_the_first_place() -> None:
    old = [f"night{n}/output.xml: test 'Density.CSC {n}': the record has schema version 1" for n in range(60)]
    found = condensed([*old[:30], "lab.json: not a result record", *old[30:], *[f"{n}.xml: damaged" for n in "ab"]])
    assert len(found) == 4, "few are listed one by one"
    assert found[0].startswith(old[0]) and "59" in found[0]


PASSED = mrr_result(CSC, 1, 1)
WITH_RECORD = PASSED.model_copy(update={"passed": False, "message": "no traffic"})
FAILED_STUDY = burst(passed=False, message="no traffic")
NO_SETUP = ("64B-1c", "Fail", "Parent suite setup failed: no space", ())
TOO_LARGE = (NOTHING_FITS, "Fail", "CSC 10x10 needs more cores", ())
LEFT_OUT = ("64B-1c", "Skip", "quarantined", ())


@pytest.mark.parametrize(
    ("results", "unrecorded", "ended", "says"),
    [
        ([PASSED], [], True, None),
        ([WITH_RECORD], [LEFT_OUT], True, None),
        ([], [TOO_LARGE], True, None),
        ([PASSED], [], False, "interrupted, the journal has no end"),
        ([PASSED], [NO_SETUP], True, "64B-1c has no record: Parent suite setup failed: no space"),
    ],
)
def test_a_run_is_finished_when_every_failed_test_has_a_record(
    tmp_path: Path, results: list, unrecorded: list, ended: bool, says: str | None
) -> None:
    output = write_output_xml(tmp_path / "output.xml", results, unrecorded)
    reason = unfinished(opened([output]).contents(may_be_empty=True), ended=ended)
    assert (reason is None) == (says is None)
    assert says is None or says in str(reason)


def test_a_torn_output_is_unfinished(tmp_path: Path) -> None:
    output = write_output_xml(tmp_path / "output.xml", [PASSED])
    output.write_text(output.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    assert "truncated" in str(unfinished(opened([output]).contents(may_be_empty=True), ended=True))


@pytest.mark.parametrize("failed", [WITH_RECORD, FAILED_STUDY], ids=["density", "bursts"])
def test_tests_of_all_studies_count(tmp_path: Path, failed: Record) -> None:
    write_output_xml(tmp_path / "output.xml", [PASSED, failed], [LEFT_OUT])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("csit_utils.commands.results.show.has_ended", lambda _: True)
        done = CliRunner().invoke(cli.make_app(["outcome"]), ["outcome", str(tmp_path)])
    assert re.findall(r"\d+ [a-z]+", done.output.rpartition(f"{tmp_path}: ")[2])[:3] == [
        "3 tests",
        "1 passed",
        "1 failed",
    ]
    assert done.exit_code == 1
