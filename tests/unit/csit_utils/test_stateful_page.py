"""Pages, tables and the preview of studies of stateful density."""

import json

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from csit_utils.cli import make_app
from csit_utils.dataset.items import Recorded, Status
from csit_utils.studies.registry import record_kinds
from csit_utils.studies.stateful.study import STUDY
from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.stateful.model.record import Phase, StatefulDensity
from tests.unit.csit_utils.characterized_pages import made, words
from tests.unit.csit_utils.stateful_cells import NAT, SPEC, cell, stateful_record, trial

(PAGE,) = STUDY.pages


def item(found: Record) -> Recorded[Record]:
    return Recorded(record=found, source="output.xml", status=Status.PASS, message="")


def test_packets_lost_before_a_table_are_no_refusal() -> None:
    lost = trial(Phase.CAPACITY, 5_000.0, 990, 1)
    assert not lost.lost_before_tables, "an entry is missing for packets that arrived"
    row = lost.instances[0].model_copy(update={"arrived": 990})
    assert lost.model_copy(update={"instances": (row,)}).lost_before_tables
    assert not lost.model_copy(update={"instances": (row,), "evicted": 1}).lost_before_tables
    assert not trial(Phase.CAPACITY, 5_000.0, 1000, 1).lost_before_tables, "it is complete"


def test_a_rate_at_which_trials_failed_is_not_valid_and_is_no_measure() -> None:
    kind = record_kinds()["stateful"]
    valid = list(kind.rows_of(item(stateful_record())))
    assert [(row.nf_chains, {value.measure: value.value for value in row.measures}) for row in valid] == [
        (1, {"new-connections": 100_000.0, "tear-downs": 500_000.0, "table-capacity": 262_144.0}),
        (2, {"new-connections": 200_000.0, "tear-downs": 1_000_000.0, "table-capacity": 262_144.0}),
    ]
    failed = list(kind.rows_of(item(stateful_record(998))))
    assert [bool(row.measures) for row in failed] == [True, False]
    assert "1 of 2 trials at the rate" in words(made(PAGE, stateful_record(998)))
    assert words(made(PAGE, stateful_record())).count("all tables were empty before each") == 1, "both cells met it"
    assert "not valid" in record_kinds()["stateful"].view(item(stateful_record(998)), 0).headline


def test_a_record_whose_cells_have_different_checks_is_refused() -> None:
    one = cell(1)
    with pytest.raises(ValidationError):
        StatefulDensity(spec=NAT, cells=(one, one.model_copy(update={"checks": one.checks[1:]})))


def test_the_preview_lists_cells_and_time() -> None:
    runner = CliRunner()
    done = runner.invoke(make_app(["stateful"]), ["stateful", str(SPEC)])
    assert done.exit_code == 0, done.output
    assert "nat: 3 cells of linux_nat, about 144 trials" in " ".join(done.output.split())
    lines = runner.invoke(make_app(["stateful"]), ["stateful", str(SPEC), "--format", "json"]).output.splitlines()
    assert [json.loads(line)["object"] for line in lines] == ["cell", "cell", "cell", "summary"]
