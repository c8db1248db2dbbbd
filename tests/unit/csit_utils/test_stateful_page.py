"""Pages, tables and the preview of studies of stateful density."""

import json
from pathlib import Path

from typer.testing import CliRunner

from csit_utils.cli import make_app
from csit_utils.dataset.items import Characterized, Status
from csit_utils.studies.registry import explanations, measures, record_kinds
from csit_utils.studies.stateful.study import STUDY, headline
from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.stateful.model.record import StatefulDensity
from tests.unit.csit_utils.characterized import record
from tests.unit.csit_utils.characterized_pages import made, words
from tests.unit.csit_utils.stateful_cells import NAT, SPEC, cell

(PAGE,) = STUDY.pages


def stateful_record(*failed: int) -> Record:
    found = StatefulDensity(spec=NAT, cells=(cell(1), cell(2, *failed)), skipped={"4x1": "needs 9 cores, 8 available"})
    return record("stateful", "NAT", stateful=found)


def item(found: Record) -> Characterized[Record]:
    return Characterized(record=found, source="output.xml", status=Status.PASS, message="")


def test_a_page_has_rates_in_sum_and_per_instance_and_every_requirement() -> None:
    text = words(made(PAGE, stateful_record()))
    for part in (
        "200,000", "204,000", "100,000", "1,000,000", "262,144", "65,536", "Requirements of RFC 9693",
        "1 of 1 trials at the rate established every connection", "4x1 was skipped: needs 9 cores, 8 available",
    ):  # fmt: skip
        assert part in text, part


def test_a_rate_at_which_trials_failed_is_not_valid_and_is_no_measure() -> None:
    kind = record_kinds()["stateful"]
    valid = list(kind.measured(item(stateful_record())))
    assert [(row.test_type, row.nf_chains, [value.value for value in row.measures]) for row in valid] == [
        ("new-connections", 1, [100_000.0]), ("tear-downs", 1, [500_000.0]), ("table-capacity", 1, [262_144.0]),
        ("new-connections", 2, [200_000.0]), ("tear-downs", 2, [1_000_000.0]), ("table-capacity", 2, [262_144.0]),
    ]  # fmt: skip
    failed = list(kind.measured(item(stateful_record(998))))
    assert [bool(row.measures) for row in failed] == [True] * 3 + [False] * 3
    assert "1 of 2 trials at the rate" in words(made(PAGE, stateful_record(998)))
    assert "not valid" in headline(item(stateful_record(998)))


def test_metrics_are_explained_and_compared() -> None:
    for name, section in (("connection-rate", "4.5"), ("tear-down-rate", "4.8"), ("table-capacity", "4.9")):
        assert f"RFC 9693, section {section}" in explanations()[name].how
    assert {"new-connections", "tear-downs", "table-capacity"} <= set(measures())


def test_the_preview_lists_cells_and_time() -> None:
    runner = CliRunner()
    done = runner.invoke(make_app(["stateful"]), ["stateful", str(SPEC)])
    assert done.exit_code == 0, done.output
    assert "nat: 3 cells of linux_nat, about 144 trials" in " ".join(done.output.split())
    lines = runner.invoke(make_app(["stateful"]), ["stateful", str(SPEC), "--json"]).output.splitlines()
    assert [json.loads(line)["object"] for line in lines] == ["cell", "cell", "cell", "summary"]


def test_a_wrong_specification_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC.read_text().replace("linux_nat", "linux_router"))
    done = CliRunner().invoke(make_app(["stateful"]), ["stateful", str(tmp_path / "spec.yaml")])
    assert done.exit_code != 0
    assert "linux_router keeps no table of connections" in str(done.exception) + done.output
