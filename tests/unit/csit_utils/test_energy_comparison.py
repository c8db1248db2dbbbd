"""Polling beside adaptive data planes on one page, from rows of several runs."""

from typing import Any

from csit_utils.dataset.rows import TestRow
from csit_utils.studies.density.pages.energy import energy_blocks
from tests.unit.csit_utils import histories


def row(waiting: str | None, watts: float | None, **more: Any) -> TestRow:
    values: dict[str, Any] = {
        "anchor": f"{waiting}-{watts}",
        "waiting": waiting,
        "pdr0_w": watts,
        "pdr50_w": watts,
        "pdr50_j_per_packet": None if watts is None else watts / 5e5,
        "pdr0_busy_cpus": 1.0,
        "pdr50_busy_cpus": 1.0,
        "pdr50_energy_p99_ns": 36_000,
    }
    return histories.row(1e6, testbed="local-ovs", **(values | more))


def test_two_ways_of_waiting_are_two_columns_of_one_table() -> None:
    (block,) = energy_blocks([row("never sleep", 100.0), row("sleeping up to 100 µs", 80.0)])
    assert block.columns == ("local-ovs: never sleep", "local-ovs: sleeping up to 100 µs")
    half = next(line for line in block.lines if line.load == "50 % of PDR")
    assert [cell.watts for cell in half.cells] == [100.0, 80.0]
    assert [cell.joules_per_packet for cell in half.cells] == [2e-4, 1.6e-4]
    assert [cell.received_pps for cell in half.cells] == [5e5, 5e5]
    assert [trace["y"][0] for trace in block.figure.variants[""]["data"]] == [100.0, 80.0]


def test_the_newest_test_of_a_column_is_shown() -> None:
    newer = row("never sleep", 90.0, started_at="2026-12-02T00:00:00+00:00")
    (block,) = energy_blocks([newer, row("never sleep", 100.0)])
    assert [cell.watts for cell in block.lines[0].cells] == [90.0]


def test_other_cells_and_simulated_ones_are_apart() -> None:
    rows = [row("a", 1.0), row("a", 1.0, nf_chains=2), row("a", 1.0, simulated=True)]
    assert len(energy_blocks(rows)) == 3
    assert energy_blocks([row("a", None, pdr0_busy_cpus=None)]) == []


def test_without_a_meter_busy_cpus_are_drawn() -> None:
    (block,) = energy_blocks([row(None, None)])
    assert not block.metered and block.columns == ("local-ovs",)
    assert block.figure.variants[""]["data"][0]["y"] == [1.0, None, 1.0, None]
