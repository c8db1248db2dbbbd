"""Pages, tables and the preview of studies of stateful density."""

import json
from pathlib import Path

from typer.testing import CliRunner

from csit_utils.cli import make_app
from csit_utils.dataset.items import Characterized, Status
from csit_utils.studies.registry import explanations, measures, record_kinds
from csit_utils.studies.stateful.study import STUDY, headline
from resources.libraries.python.model.connections import ConnectionTable
from resources.libraries.python.model.record import Record
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.stateful.analysis.validity import checks
from resources.libraries.python.studies.stateful.model.record import (
    CellConnections,
    ConnectionTrial,
    EstablishmentRate,
    InstanceConnections,
    Phase,
    StatefulDensity,
    TableCapacity,
    TearDown,
)
from resources.libraries.python.studies.stateful.model.spec import load_stateful
from tests.unit.csit_utils.characterized import record
from tests.unit.csit_utils.characterized_pages import made, words

SPEC = PROJECT / "tests" / "characterization" / "specs" / "stateful" / "nat.yaml"
(PAGE,) = STUDY.pages
NAT = load_stateful(SPEC)


def trial(phase: Phase, load_cps: float, entries: int, instances: int) -> ConnectionTrial:
    return ConnectionTrial(
        phase=phase, load_cps=load_cps, duration_s=0.3, failed=0, dropped=0, evicted=0,
        instances=(InstanceConnections(sent=1000, arrived=1000, entries=entries),) * instances,
    )  # fmt: skip


def cell(instances: int, *failed: int) -> CellConnections:
    """A cell of which trials at the rate have so many entries of 1000 each."""
    rate = EstablishmentRate(
        lower_cps=100_000.0 * instances, upper_cps=102_000.0 * instances, by_instance_cps=(100_000.0,) * instances,
        complete=True, trials=30, search_s=11.0, sending_s=10.0,
    )  # fmt: skip
    trials = (
        *(trial(Phase.RATE, rate.lower_cps, entries, instances) for entries in (1000, *failed)),
        trial(Phase.RATE, 150_000.0, 700, instances),
        trial(Phase.TEAR_DOWN, 0.5 * rate.lower_cps, 1000, instances),
    )
    tear_downs = (TearDown(entries=(1000,) * instances, seconds=(0.001,) * instances, total_s=0.002),)
    return CellConnections(
        instances=instances, nodes=1, plan="digest", rate=rate, empty_s=0.0001, tear_downs=tear_downs, trials=trials,
        tables={
            f"nf-{instance}-1": ConnectionTable(
                entries=0, limit=262_144, buckets=65_536, timeout_s=300, failed=0, dropped=0, evicted=0
            )
            for instance in range(1, instances + 1)
        },
        capacity=TableCapacity(entries=262_144, refused_at=264_765, rate_cps=50_000.0, trials=3),
        checks=checks(NAT, rate, trials, tear_downs),
    )  # fmt: skip


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
