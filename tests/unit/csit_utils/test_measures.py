"""Numbers of characterizations are compared, followed and judged like those of the density matrix."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from csit_utils.analysis.cells import figures
from csit_utils.analysis.comparisons.comparison import Outcome, compare, decide
from csit_utils.commands.results.gate import junit_xml
from csit_utils.commands.results.inputs import opened
from csit_utils.dataset.items import Recorded, status_of
from csit_utils.dataset.measures import Measure, MeasuredValue
from csit_utils.dataset.rows import MeasuredRow
from csit_utils.report.pages import compare as compare_page
from csit_utils.report.pages import trend as trend_page
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render
from csit_utils.studies.interference.study import NORMALIZED
from csit_utils.studies.registry import measured_rows as rows_of
from csit_utils.studies.sizing.study import CAPACITY
from csit_utils.studies.sweep.study import BREAK_POINT, SATURATED, WITHOUT_LOSS
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.recording.writer import write_record
from resources.libraries.python.studies.sweep.model import SweepRecord
from tests.unit.csit_utils.builders import ENVIRONMENT
from tests.unit.csit_utils.characterization_records import FIREWALL, burst, chained, sized, sweep_of, swept
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.study_records import chain_studied, interfered

STEP = 2e5 * (1.5 - 1 / 8) / 11
"""Between loads of `sweep_of`."""


def rows(*records: Record, source: str = "x.xml") -> list[MeasuredRow]:
    return rows_of(Recorded(each, source, status_of(each), each.message) for each in records)


def firewall(capacity_pps: float = 2e5, **parts: Any) -> SweepRecord:
    return swept("Firewall", sweep_of("firewall", FIREWALL, capacity_pps=capacity_pps), **parts)


def test_a_sweep_has_its_break_point_what_arrives_there_and_the_highest_load_without_loss() -> None:
    (row,) = rows(firewall())
    found = {each.measure: each for each in row.measures}
    assert set(found) == {BREAK_POINT, SATURATED, WITHOUT_LOSS}
    saturates = found[BREAK_POINT]
    assert saturates.value == pytest.approx(2e5, rel=1e-3)
    assert saturates.lowest < 2e5 < saturates.highest < 1.01 * saturates.lowest
    assert found[SATURATED].value == pytest.approx(2e5)
    without = found[WITHOUT_LOSS]
    assert 2e5 - STEP < without.value <= 2e5
    assert without.highest == pytest.approx(without.value + STEP)
    sweep = sweep_of("router", (NfKind("linux_router"),))
    below = sweep.model_copy(update={"points": sweep.points[:4], "samples": sweep.samples[:8]})
    ((only,),) = (row.measures for row in rows(swept("Router", below)))
    assert (only.measure, only.value, only.highest) == (WITHOUT_LOSS, below.points[-1].input_pps, None)


def test_a_sizing_has_a_capacity_for_each_size_and_cells_are_named_by_service_size_and_frame() -> None:
    found = figures(rows(sized()))
    assert {(cell.series.nf_size, cell.metric, own[0].value_pps, own[0].upper_pps) for cell, own in found.items()} == {
        ("fr1s-ba1s", CAPACITY, 300.0, 400.0),
        ("fr1m-ba1s", CAPACITY, 500.0, None),
    }
    names = [cell.name for cell in figures(rows(chained(), sized()))]
    assert "local (local) router-firewall 1x2 NF-1c vSwitch-1c 64B break-point" in names
    assert "local (local) proxy 1x2 NF-fr1s-ba1s calls/s capacity" in names
    assert rows(burst()) == [] and not figures(rows(firewall(passed=False, message="the vSwitch died")))


def lasting(*seconds: float) -> list[MeasuredRow]:
    """Nights of a study whose figure is a time."""
    found, outage = [], Measure("outage", "s", less_is_better=True)
    for night, each in enumerate(seconds, 1):
        (row,) = rows(firewall(started_at=f"2026-01-0{night}T20:00:00+00:00"), source=f"night-{night}.xml")
        found.append(replace(row, measures=(MeasuredValue(outage, each, each, each),)))
    return found


def test_an_increase_is_a_regression_of_what_is_better_the_less_there_is() -> None:
    """As for a time, whatever the others are."""
    found = compare(lasting(1.0, 1.01, 0.99), lasting(2.0, 2.02, 1.98))
    (change,) = found.of(Outcome.REGRESSION)
    assert change.worsening == change.change == pytest.approx(1.0)
    assert found.of(Outcome.PROGRESSION) == ()
    decision = decide(found, [], 0.5)
    assert decision.fallen == (change,)
    assert b"1.00 s changed to 2.00 s: +100" in junit_xml(decision)
    (better,) = compare(lasting(2.0, 2.02, 1.98), lasting(1.0, 1.01, 0.99)).of(Outcome.PROGRESSION)
    assert better.worsening == pytest.approx(-0.5)


def test_other_traffic_is_unlike() -> None:
    one = firewall()
    spec = one.sweep.spec.model_copy(update={"protocol": Protocol.TCP, "flows": 4})
    other = one.model_copy(update={"sweep": one.sweep.model_copy(update={"spec": spec})})
    changes = compare(rows(one), rows(other)).changes
    assert {each.outcome.value for each in changes} == {"unlike"}
    assert changes[0].remarks[0] == "A is loaded by UDP, 1 flow and B by TCP, 4 flows"


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Three runs each of a firewall and of a sizing; on the second side the firewall does less."""
    folder = tmp_path_factory.mktemp("sides")
    for side, capacity in (("before", 2e5), ("after", 1.5e5)):
        for number in (0, 1, 2):
            at = f"2026-01-0{number + 1}T20:00:00+00:00"
            for made in (firewall(capacity * (1 + number / 100), started_at=at), sized(started_at=at)):
                write_record(made, folder / side / str(number))
    return folder / "before", folder / "after"


def objects(*words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in invoked(*words, "--format", "json").stdout.splitlines()]


OF_SWEEPS = ("break-point", "saturated", "without-loss")


def test_compare_and_the_gate_have_units_and_let_a_service_that_fell_not_pass(sides: tuple[Path, Path]) -> None:
    found = {(each["metric"], each["outcome"]) for each in objects("compare", *sides)}
    assert found == {*((metric, "regression") for metric in OF_SWEEPS), ("capacity", "no change seen")}
    table = invoked("compare", *sides).stdout
    assert "proxy 1x2 NF-fr1s-ba1s calls/s capacity\t300 calls/s" in table
    assert "firewall 1x1 NF-1c vSwitch-1c 64B saturated\t20" in table
    done = invoked("gate", *sides)
    assert done.exit_code == 1, done.output
    assert "fell\tfirewall 1x1 NF-1c vSwitch-1c 64B break-point" in done.stdout
    assert "5 cells judged: 3 with a significant regression above 0%, 2 without" in done.stdout
    same = invoked("gate", sides[0], sides[0])
    assert same.exit_code == 0 and not same.stderr


def test_pages_show_what_commands_print_and_a_selection_finds_services_by_name(sides: tuple[Path, Path]) -> None:
    """Each number with its unit, compared and over time, though there is no test of the matrix."""
    shown = ReportContents(opened([*sides]).contents())
    beside, over_time = render(compare_page.PAGE, shown), render(trend_page.PAGE, shown)
    data = json.loads(beside.html.split('id="compare-data">', 1)[1].split("</script>", 1)[0])
    found = {(cell["t"], data["metrics"][cell["m"]], cell.get("x")) for cell in data["cells"]}
    numbers = {("firewall", metric, None) for metric in OF_SWEEPS}
    assert found == numbers | {("proxy", "capacity", "calls/s")}
    assert all(cell["m"] >= data["of_matrix"] for cell in data["cells"])
    (points,) = over_time.figures
    traces = [trace for variant in points.variants.values() for trace in variant["data"]]
    assert "300 calls/s" in [text for trace in traces for text in trace["text"]]
    done = invoked("compare", "service=firewall", "service=firewall", "--data", sides[0], "--format", "csv")
    assert done.stdout.count("firewall") >= 3 and "proxy" not in done.stdout
    refused = invoked("compare", "service=dpi", "service=firewall", "--data", sides[0]).exception
    assert isinstance(refused, ConfigError) and "service is one of firewall, proxy" in str(refused)


def test_of_neighbours_each_pair_is_a_service_with_its_share_and_interval() -> None:
    found = rows(interfered())
    assert len(found) == 18 and {row.test_type for row in found} == {"normalized"}
    row = next(row for row in found if row.service_type == "monitor beside balancer")
    (share,) = row.measures
    assert share.measure == NORMALIZED and share.value == pytest.approx(0.5, abs=0.03)
    assert share.highest is not None and share.lowest < share.value < share.highest
    better = next(row for row in found if row.service_type == "monitor beside balancer, network I/O guaranteed")
    assert better.measures[0].value == pytest.approx(0.75, abs=0.03)
    assert not any(row.measures for row in rows(interfered(passed=False)))
    assert rows(chain_studied()) == []


def test_a_row_names_drivers_version_and_revision() -> None:
    clean = ENVIRONMENT.model_copy(update={"git_dirty": False})
    drivers = {"vswitch": "linux", "generator": "trex"}
    by_kernel = firewall(simulated=False, facts={}, environment=clean, drivers=drivers)
    (row, *_) = rows(by_kernel)
    names = ("generator trex, vswitch linux", "Linux 6.18.4-amd64", "c3313a2d0f5b")
    assert (row.drivers, row.version, row.revision) == names
    named = {"generator": {"link": "up"}, "switching": {"vswitch": "VPP 26.06"}}
    (row, *_) = rows(by_kernel.model_copy(update={"facts": named, "environment": ENVIRONMENT}))
    assert (row.version, row.revision) == ("VPP 26.06", "c3313a2d0f5b+")
    (row, *_) = rows(by_kernel.model_copy(update={"facts": named, "simulated": True}))
    assert row.version == "simulated"
