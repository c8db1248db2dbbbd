"""What became of a run, as an exit status."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from csit_utils import cli
from csit_utils.commands.results.inputs import opened
from csit_utils.commands.runs.outcome import unfinished
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.marker import NOTHING_FITS
from tests.unit.csit_utils.builders import mrr_result
from tests.unit.csit_utils.characterization_records import burst
from tests.unit.csit_utils.robot_output import write_output_xml

PASSED = mrr_result(ServiceType.CSC, 1, 1)
FAILED = PASSED.model_copy(update={"passed": False, "message": "no traffic"})
FAILED_STUDY = burst(passed=False, message="no traffic")
NO_SETUP = ("64B-1c", "Fail", "Parent suite setup failed: no space", ())
TOO_LARGE = (NOTHING_FITS, "Fail", "CSC 10x10 needs more cores", ())
LEFT_OUT = ("64B-1c", "Skip", "quarantined", ())


@pytest.mark.parametrize(
    ("results", "unrecorded", "ended", "says"),
    [
        ([PASSED], [], True, None),
        ([FAILED], [LEFT_OUT], True, None),
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


@pytest.mark.parametrize("failed", [FAILED, FAILED_STUDY], ids=["density", "bursts"])
def test_tests_of_all_studies_count(tmp_path: Path, failed: Record) -> None:
    write_output_xml(tmp_path / "output.xml", [PASSED, failed], [LEFT_OUT])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("csit_utils.commands.runs.outcome.has_ended", lambda _: True)
        done = CliRunner().invoke(cli.make_app(["outcome"]), ["outcome", str(tmp_path)])
    assert re.findall(r"\d+ [a-z]+", done.output.rpartition(f"{tmp_path}: ")[2])[:3] == [
        "3 tests",
        "1 passed",
        "1 failed",
    ]
    assert done.exit_code == 1
