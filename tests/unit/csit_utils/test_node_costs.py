"""Costs by node in files, SQL, comparisons, exports and on the page of a test."""

import base64
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from csit_utils.analysis.node_costs import largest, node_changes
from csit_utils.dataset.rows import TestRow
from csit_utils.report.details.flames import cost_table
from csit_utils.report.pages import compare
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render
from csit_utils.report.uti import info_file
from resources.libraries.python.model.measurements.node_costs import CostByNode, NodeCost, NodeCosts
from resources.libraries.python.model.request.cell import ServiceType
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.histories import Rows, row
from tests.unit.csit_utils.robot_output import write_output_xml


def reading(clocks: float, calls: int) -> NodeCosts:
    def row(node: str, cost: float, calls: int, thread: str = "vpp_wk_0") -> NodeCost:
        return NodeCost(part="vswitch", thread=thread, node=node, packets=1000, calls=calls, cost=cost, error=0.05)

    nodes = (row("ip4-lookup", clocks, calls), row("ip4-rewrite", 22.0, 10), row("ip4-rewrite", 24.0, 10, "vpp_wk_1"))
    return NodeCosts(load="PDR", load_pps=1e6, received=1000, read_s=0.078, nodes=nodes)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("costs")
    a, b = (
        str(write_output_xml(folder / f"{name}.xml", [result(ServiceType.CSC, 2, 1, costs=costs)]))
        for name, costs in (("a", reading(30.0, 20)), ("b", reading(41.0, 250)))
    )
    return a, b


def objects(*words: object) -> list[dict[str, Any]]:
    done = invoked(*words)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_compare_names_the_node_that_changed_beside_the_rate(sides: tuple[str, str]) -> None:
    rows = {row["metric"]: row for row in objects("compare", *sides, "--format", "json")}
    pdr = rows["PDR"]["remarks"]
    assert len([text for text in pdr if "vswitch ip4-lookup +11 clocks" in text and "starved: 4 " in text]) == 1
    assert not any("ip4-rewrite" in text for text in pdr), "it is the same on both sides"
    assert not any("ip4-lookup" in text for text in rows["NDR"]["remarks"]), "read at PDR"
    assert (rows["PDR-clocks"]["a_mean_pps"], rows["PDR-clocks"]["b_mean_pps"]) == (76.0, 87.0)


def test_compare_lists_all_nodes(sides: tuple[str, str]) -> None:
    rows = {row["node"]: row for row in objects("compare", *sides, "--nodes", "--format", "json")}
    assert [(row["metric"], row["cost_a"], row["cost_b"], row["changed"]) for row in rows.values()] == [
        ("PDR", 30.0, 41.0, True),
        ("PDR", 23.0, 23.0, False),
    ]
    assert rows["ip4-rewrite"]["packets_per_call_a"] == 100, "of both threads"


def test_a_dataset_has_them_as_a_view_and_gives_them_back(sides: tuple[str, str], tmp_path: Path) -> None:
    history = tmp_path / "history"
    assert invoked("import", *sides, "-o", history).exit_code == 0
    asked = "SELECT nf_chains, load, node, cost FROM costs WHERE cost > 25 ORDER BY cost"
    found = [tuple(row.values()) for row in objects("query", history, asked, "--format", "json")]
    assert found == [(2, "PDR", "ip4-lookup", 30.0), (2, "PDR", "ip4-lookup", 41.0)]
    (shown, _) = objects("show", history, "--format", "json")
    assert [each["node"] for each in shown["costs"]] == ["ip4-lookup", "ip4-rewrite"]


def test_a_row_without_values_is_damage(sides: tuple[str, str], tmp_path: Path) -> None:
    history = tmp_path / "history"
    invoked("import", sides[0], "-o", history)
    (part,) = (history / "tests").rglob("*.parquet")
    table = pq.read_table(part, partitioning=None)
    at = table.schema.get_field_index("costs")
    pq.write_table(table.set_column(at, "costs", pa.array([[None]], table.schema.field(at).type)), part)
    assert "a row without values" in str(invoked("show", history, "--format", "json").exception)


def test_the_export_has_them_as_telemetry_of_the_runtime() -> None:
    (packed,) = info_file(result(ServiceType.CSC, 2, 1, costs=reading(30.0, 20))).content["telemetry"]
    lines = zlib.decompress(base64.b64decode(packed)).decode().splitlines()
    found = re.findall(r'_runtime_(\w+)\{.*name="ip4-lookup".*\} (.*)', "\n".join(lines))
    assert {name: float(value) for name, value in found} == {
        "calls": 20.0, "vectors": 1000.0, "clocks": 30.0, "vectors_calls": 50.0
    }  # fmt: skip
    assert sum("_vectors{" in line for line in lines) == 3, "by thread"


def test_the_page_has_the_nodes_that_cost_most_first() -> None:
    table = cost_table(reading(30.0, 20), simulated=False)
    assert [(row.node, row.total) for row in table.rows] == [
        ("ip4-lookup", 30.0), ("ip4-rewrite", 24.0), ("ip4-rewrite", 22.0),
    ]  # fmt: skip
    assert cost_table(None, simulated=False) is None


def runs(*costs: float, per_call: float = 50.0) -> Sequence[TestRow]:
    rows = (CostByNode("PDR", "vswitch", "ip4-lookup", 1000, per_call, cost, "clocks", 0.5) for cost in costs)
    return cast(Sequence[TestRow], [SimpleNamespace(costs=(row,)) for row in rows])


def test_several_runs_are_compared_by_their_spread() -> None:
    noisy, steady = runs(28.0, 30.0, 32.0), runs(29.9, 30.0, 30.1)
    (within,) = node_changes(noisy, runs(31.0, 33.0, 35.0), "PDR")
    (beyond,) = node_changes(steady, runs(32.9, 33.0, 33.1), "PDR")
    assert within.difference == beyond.difference == 3.0
    assert not within.has_changed and within.error > 3.0
    assert beyond.has_changed
    assert largest([within]) == []


def test_the_page_of_comparisons_lists_what_changed() -> None:
    def costs(lookup: float, calls: float) -> tuple[CostByNode, ...]:
        nodes = ("ip4-lookup", calls, lookup), ("ip4-rewrite", 50.0, 20.0)
        return tuple(CostByNode("PDR", "vswitch", node, 1000, per, cost, "clocks", 0.5) for node, per, cost in nodes)

    rows = [row(1e6, 0, costs=costs(30.0, 50.0)), row(9e5, 1, costs=costs(41.0, 4.0))]
    html = render(compare.PAGE, ReportContents(Rows(rows))).html
    (line,) = re.findall(r"<tr>(?:(?!</tr>).)*<td>vswitch</td>.*?</tr>", html, re.DOTALL)
    cells = re.sub(r"<[^>]+>", " ", line).split()
    assert cells[-9:] == ["ip4-lookup", "30.0", "41.0", "+11", "1.00", "clocks", "50.0", "4.00", "starved"]


def test_single_readings_have_their_resolution_a_least_change_and_are_starved_by_half_of_the_packets() -> None:
    for cost, has_changed in ((30.4, False), (30.9, False), (31.2, True)):  # ±1; 2 % are 0.6
        (change,) = node_changes(runs(30.0), runs(cost), "PDR")
        assert (change.has_changed, change.error) == (has_changed, 1.0)
    (starved,), (slow,) = (node_changes(runs(30.0), runs(41.0, per_call=calls), "PDR") for calls in (4.0, 50.0))
    assert starved.starved and not slow.starved
    assert node_changes(runs(30.0), runs(41.0), "MRR") == node_changes(runs(30.0), [], "PDR") == [], "one side"


def test_a_node_of_one_side_only_has_changed_by_all_that_it_costs() -> None:
    """An access list that was off before: nothing else of the vSwitch tells why packets cost more."""
    acl = CostByNode("PDR", "vswitch", "acl-plugin-in-ip4-l2", 1000, 50.0, 2234.0, "clocks", 5.0)
    with_acl = cast(Sequence[TestRow], [SimpleNamespace(costs=(*runs(30.0)[0].costs, acl))])
    for a, b, sign, side in ((runs(30.0), with_acl, "+", "B"), (with_acl, runs(30.0), "-", "A")):
        (change,) = largest(node_changes(a, b, "PDR"))
        assert change.text == f"vswitch acl-plugin-in-ip4-l2 {sign}2230 clocks per packet (±5), only in {side}"
