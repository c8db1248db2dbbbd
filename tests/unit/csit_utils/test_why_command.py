"""Why a rate changed: flame graphs and their differences, costs by node, `./csit why`, and both on pages."""

import base64
import json
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.stats import chi2_contingency
from typer.testing import CliRunner, Result

from csit_utils.analysis.flames import StackSide, differences, flame, functions, path_differences, probability
from csit_utils.analysis.node_costs import largest, node_changes
from csit_utils.cli import make_app
from csit_utils.dataset.rows import TestRow
from csit_utils.report.details.flames import cost_table, difference_graph, flame_graph
from csit_utils.report.html import fill
from csit_utils.report.pages import compare
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import render
from csit_utils.report.uti import info_file
from csit_utils.studies.chains import study as chain_page
from resources.libraries.python.drivers.sim.probes import shares
from resources.libraries.python.model.measurements.node_costs import CostByNode, NodeCost, NodeCosts
from resources.libraries.python.model.measurements.stacks import Stacks, described
from resources.libraries.python.studies.chains.model import ChainStacks, ChainStudy
from resources.libraries.python.studies.density.model import DensityRecord
from tests.unit.csit_utils.builders import CSC, result
from tests.unit.csit_utils.characterized_pages import made, words
from tests.unit.csit_utils.datasets import dataset_of, html_of, invoked, plain
from tests.unit.csit_utils.histories import Rows, row
from tests.unit.csit_utils.measured_extras import sampled
from tests.unit.csit_utils.rendered_pages import Page, page_of
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.study_records import FAULTY, chain_studied, chain_study

FEW = {"nf-1-1;poll;filter": 100, "nf-1-1;poll;<route>": 400, "vswitch;poll": 500}
MANY = {"nf-1-1;poll;filter": 400, "nf-1-1;poll;<route>": 300, "vswitch;poll": 300}


def run(*arguments: str | Path, command: str = "why") -> Result:
    return CliRunner().invoke(make_app([command]), [command, *map(str, arguments)])


def stacked(stacks: dict[str, int], chains: int = 1, night: int = 20) -> DensityRecord:
    found = sampled(stacks)
    return result(
        CSC, chains, stacks=found, stacks_sampled=described(found),
        started_at=f"2026-11-{night}T11:01:00Z",
    )  # fmt: skip


def test_what_grew_is_named_with_its_time_per_packet_or_why_not(tmp_path: Path) -> None:
    few = write_output_xml(tmp_path / "few.xml", [stacked(FEW), stacked(FEW, 2)])
    many = write_output_xml(tmp_path / "many.xml", [stacked(MANY, night=21), stacked(FEW, 2, night=21)])
    done = run(few, many, "--format", "json")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["cell"] for row in rows} == {"CSC 1x1 NF-1c vSwitch-1c 64B"}
    first = rows[0]
    assert (first["part"], first["function"], first["share_a"], first["share_b"]) == ("nf-1-1", "filter", 0.1, 0.4)
    assert first["ns_per_packet_b"] == pytest.approx(4 * first["ns_per_packet_a"]) and first["significant"]
    assert "64B: 4 functions beyond the noise of 1000 and 1000 samples" in done.stderr
    plain = write_output_xml(tmp_path / "plain.xml", [result()])
    for arguments, sentence in (
        ((few, plain), "plain.xml: no test has call stacks; run it with -v STACKS:10"),
        ((few, many, "--cell", "9x9"), "have no cell 9x9 with call stacks in common"),
    ):
        done = run(*arguments)
        assert done.exit_code and sentence in str(done.exception)


def test_the_compare_page_has_the_graph_of_a_cell_on_both_sides() -> None:
    found = dataset_of(stacked(FEW), source="monday.xml")
    found.recorded += dataset_of(stacked(MANY, night=21), source="tuesday.xml").recorded
    page = Page(html_of(found))
    assert any(tip.startswith("filter in nf-1-1: 10 % to 40 % (100 and 400 samples)") for tip in page.tips())
    assert "<route> in nf-1-1: 40 % to 30 % (400 and 300 samples); 2010 to 1508 ns per packet" in page.tips()
    assert "Why: CPU time" not in page_of(result(), result(started_at="2026-11-21T10:00:00Z")).text


def nights(levels: list[tuple[float, dict[str, int]]]) -> list[DensityRecord]:
    found = [(rate, sampled(stacks)) for rate, stacks in levels]
    return [
        plain(
            1, 1, rate * (1 + 0.002 * (night % 3)), stacks=stacks, stacks_sampled=described(stacks),
            started_at=f"2026-11-{night:02d}T11:00:00Z", test_id=f"Density.Night {night}",
        )
        for night, (rate, stacks) in enumerate(found, 1)
    ]  # fmt: skip


def test_a_step_of_the_trend_has_the_graph_of_the_levels_before_and_after() -> None:
    found = dataset_of()
    for record in nights([(3e5, FEW)] * 8 + [(2e5, MANY)] * 8):
        found.recorded += dataset_of(record, source=f"{record.started_at}.xml").recorded
    page = Page(html_of(found))
    assert "since 2026-11-09" in page.text and "\u221233 %" in page.text
    # All eight nights of each level count, and not only those beside the step.
    assert any(tip.startswith("filter in nf-1-1: 10 % to 40 % (800 and 3200 samples)") for tip in page.tips())


def test_a_gate_that_fails_says_which_function_has_grown(tmp_path: Path) -> None:
    records = nights([(3e5, FEW)] * 3 + [(2e5, MANY)])
    for number, record in enumerate(records[:3]):
        (tmp_path / "before" / f"{number}").mkdir(parents=True)
        write_output_xml(tmp_path / "before" / f"{number}" / "output.xml", [record])
    after = write_output_xml(tmp_path / "after.xml", records[3:])
    done = run(tmp_path / "before", after, command="gate")
    assert done.exit_code == 1 and done.stdout, done.exception
    lines = done.stdout.splitlines()
    assert lines[0].startswith("fell\t")
    why = [line for line in lines if line.startswith("why\t")]
    assert why == ["why\tCSC 1x1 NF-1c vSwitch-1c 64B\tfilter of nf-1-1 takes 40 % of the CPU time, 10 % before"]


REFERENCE = {"nat;poll;lookup": 300, "firewall;poll;<match>": 300, "vswitch;forward": 400}
SUSPECT = {"nat;poll;lookup": 300, "firewall;poll;<match>": 1500, "vswitch;forward": 400}


def study_with(a: Stacks | str, b: Stacks | str) -> ChainStudy:
    """A study whose first suspect and its reference have call stacks, or a reason for none."""
    study = chain_study()
    first = study.suspects[0]
    assert first.chain == FAULTY and first.reference is not None
    rows = [
        ChainStacks(chain=chain, workload=first.reference.workload, throughput_bps=1e8, failed=found)
        if isinstance(found, str)
        else ChainStacks(chain=chain, workload=first.reference.workload, throughput_bps=1e8, stacks=found)
        for chain, found in ((first.reference.chain, a), (first.chain, b))
    ]
    return study.model_copy(update={"stacks": tuple(rows)})


@pytest.fixture(scope="module")
def study() -> ChainStudy:
    counted = NodeCost(part="vswitch", node="ip4-lookup", packets=17, cost=123.0)
    told = sampled(SUSPECT).model_copy(update={"accounts": (counted,)})
    return study_with(sampled(REFERENCE), told)


def test_the_page_has_the_graph_of_a_suspect_against_its_reference_or_says_why_there_is_none(study: ChainStudy) -> None:
    page = made(chain_page.PAGE, chain_studied(study, simulated=True))
    html, text = str(page.html), words(page)
    assert "&lt;match&gt; of firewall takes 7538 ns per packet, 1508 in the reference" in text and "SIMULATED" in html
    assert "&lt;match&gt; in firewall: 1508 to 7538 ns per packet (300 and 1500 samples)" in html
    assert "lookup in nat: 1508 to 1508 ns per packet (300 and 300 samples); within the noise of sampling" in html
    assert "ip4-lookup" in text and "123 clocks" in text
    text = words(made(chain_page.PAGE, chain_studied(study_with(sampled(REFERENCE), "perf did not start"))))
    assert "nat &gt; firewall was not sampled: perf did not start" in text and "beside firewall" not in text


def test_why_of_one_side_compares_suspects_with_references_and_needs_stacks(study: ChainStudy, tmp_path: Path) -> None:
    file = write_output_xml(tmp_path / "output.xml", [chain_studied(study)])
    folded = tmp_path / "both.folded"
    done = run(file, "--format", "json", "--folded", folded)
    assert done.exit_code == 0, done.exception
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["part"], row["function"]) for row in rows] == [("firewall", "<match>"), ("firewall", "poll")]
    assert rows[0]["ns_per_packet_b"] == pytest.approx(5 * rows[0]["ns_per_packet_a"])
    assert rows[0]["cell"].startswith("nat > firewall beside firewall > nat at ")
    assert "vswitch;forward 400 400" in folded.read_text(encoding="utf-8").splitlines()
    assert run(file, "--cell", "no such").exit_code
    file = write_output_xml(tmp_path / "none.xml", [chain_studied(chain_study())])
    assert "no suspect with call stacks; run its chain study with -v STACKS:10" in str(run(file).exception)


def side(*runs: dict[str, int]) -> StackSide:
    return StackSide(tuple(map(sampled, runs)))


STACKS = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(";".join), st.integers(1, 500), max_size=12
)


@given(STACKS, STACKS)
def test_children_take_no_more_than_their_caller_and_functions_count_once(a: dict[str, int], b: dict[str, int]) -> None:
    root = flame([a, b])
    assert root.total == [sum(a.values()), sum(b.values())]
    for _, node in root.walk():
        below = [sum(child.total[run] for child in node.children.values()) for run in (0, 1)]
        assert node.total == [own + rest for own, rest in zip(node.own, below, strict=True)]
    for counts in (a, b):
        found = functions(counts)
        assert sum(own for _, own in found.values()) == sum(counts.values())
        assert all(own <= total <= sum(counts.values()) for total, own in found.values())


@given(STACKS, STACKS)
def test_differences_of_shares_are_opposite_in_the_other_direction(a: dict[str, int], b: dict[str, int]) -> None:
    if not a or not b:
        return
    there, back = differences(side(a), side(b)), differences(side(b), side(a))
    found = {(row.owner, row.function): row for row in back}
    for each in there:
        other = found[each.owner, each.function]
        assert each.difference == -other.difference and each.significant == other.significant
    assert not any(row.significant for row in differences(side(a), side(a)))


@pytest.mark.parametrize(("hits", "every"), [((50, 90), (1000, 1000)), ((5, 20), (300, 500)), ((400, 380), (900, 900))])
def test_the_test_of_two_proportions_is_that_of_a_table(hits: tuple[int, int], every: tuple[int, int]) -> None:
    table = [[hits[0], every[0] - hits[0]], [hits[1], every[1] - hits[1]]]
    expected = chi2_contingency(table, correction=False).pvalue
    assert probability([(hits[0], every[0])], [(hits[1], every[1])]) == pytest.approx(expected, rel=1e-9)


def test_runs_that_differ_among_themselves_need_a_larger_difference_and_few_samples_are_not_judged() -> None:
    alike = probability([(100, 1000), (101, 1000)], [(150, 1000), (149, 1000)])
    apart = probability([(50, 1000), (150, 1000)], [(100, 1000), (200, 1000)])
    assert alike < 0.001 and apart > 0.1
    assert probability([(1, 1000)], [(3, 1000)]) is probability([(0, 0)], [(3, 10)]) is None


def drawn_stacks(rng: Random, hot: dict[str, float], number: int = 2000) -> dict[str, int]:
    truth = shares("nf-1-1", hot)
    return dict(Counter(f"nf-1-1;{stack}" for stack in rng.choices(list(truth), list(truth.values()), k=number)))


@pytest.mark.slow
def test_equal_systems_rarely_differ_and_a_planted_function_is_named_first() -> None:
    rng = Random(7)
    false = sum(
        any(row.significant for row in differences(side(drawn_stacks(rng, {})), side(drawn_stacks(rng, {}))))
        for _ in range(200)
    )
    assert false <= 20  # 5 % expected, 10 % is four deviations above
    for _ in range(20):
        first = differences(side(drawn_stacks(rng, {})), side(drawn_stacks(rng, {"sim_filter": 2.0})))[0]
        assert first.significant and first.function == "sim_filter" and first.difference > 0


def test_graphs_name_and_escape_functions_and_are_red_where_one_grew_beyond_noise() -> None:
    graph = flame_graph(sampled({"nf-1-1;<b>f</b>;g": 150, "vswitch;br_forward": 50}, cut=3), simulated=True)
    assert graph.rows == 3
    boxes = [(box.name, box.left, box.width, box.row) for box in graph.boxes]
    assert boxes[:2] == [("nf-1-1", 0.0, 75.0, 0), ("vswitch", 75.0, 25.0, 0)]
    assert graph.boxes[-1].tip == "g in nf-1-1: 150 samples, 75 %, 754 ns per packet; itself 75 %"
    text = fill("flames.html.j2", {"test": SimpleNamespace(flames=graph)})
    assert "SIMULATED" in text and "&lt;b&gt;f&lt;/b&gt;" in text and "<b>f</b>" not in text
    assert flame_graph(None, simulated=False) is None
    a, b = {"nf-1-1;f;g": 100, "nf-1-1;f;h": 900}, {"nf-1-1;f;g": 500, "nf-1-1;f;h": 500}
    change = difference_graph(side(a), side(b), "A to B", simulated=False)
    tones = {box.name: (box.tone, box.width) for box in change.boxes}
    assert tones == {"nf-1-1": ("same", 100), "f": ("same", 100), "g": ("more5", 30), "h": ("less5", 70)}
    tip = next(box.tip for box in change.boxes if box.name == "g")
    assert tip == "g in nf-1-1: 10 % to 50 % (100 and 500 samples); 503 to 2513 ns per packet"
    noise = difference_graph(side(a), side({"nf-1-1;f;g": 102, "nf-1-1;f;h": 898}), "", simulated=False)
    assert {box.tone for box in noise.boxes} == {"same"}
    assert path_differences(side(a), side(b))["nf-1-1;f;g"].significant


def test_times_per_packet_are_tested_as_rates_so_that_one_function_moves_no_other() -> None:
    a, b = {"nf-1-1;f;g": 200, "nf-1-1;f;h": 800}, {"nf-1-1;f;g": 1200, "nf-1-1;f;h": 800}
    rows = {row.function: row for row in differences(side(a), side(b), per_packet=True)}
    assert rows["g"].significant and rows["f"].significant
    assert rows["h"].difference_ns == 0 and not rows["h"].significant and rows["h"].difference < -0.3
    assert rows["h"].own_ns_a == rows["h"].ns_a == pytest.approx(800 / 199 * 1e3)
    shares_of = {row.function: row for row in differences(side(a), side(b))}
    assert shares_of["h"].significant and (shares_of["h"].own_a, shares_of["h"].own_b) == (0.8, 0.4), "it shrinks"
    assert (shares_of["f"].own_a, shares_of["f"].share_b) == (0, 1.0)


def test_as_many_samples_for_half_of_the_packets_are_twice_the_time() -> None:
    whole, half = (StackSide((sampled({"nf-1-1;f": 600}, received=packets),)) for packets in (1_000_000, 500_000))
    (_, row) = differences(whole, half, per_packet=True)
    assert (row.function, row.significant) == ("f", True) and row.difference == 0
    assert row.ns_b == pytest.approx(2 * (row.ns_a or 0))
    nothing = StackSide((sampled({"nf-1-1;f": 600}, received=0),))
    assert difference_graph(whole, nothing, "", simulated=False, per_packet=True) is None
    assert not any(row.significant for row in differences(whole, nothing, per_packet=True))


def test_rates_of_a_poisson_process_rarely_differ_by_chance() -> None:
    rng = default_rng(3)

    def count(mean: float) -> tuple[float, float]:
        return float(rng.poisson(mean)), 1e6

    calls = [probability([count(200)], [count(200)], per_packet=True) or 1.0 for _ in range(2000)]
    assert 0.03 < sum(call < 0.05 for call in calls) / len(calls) < 0.07
    apart = [probability([count(200)], [count(400)], per_packet=True) or 1.0 for _ in range(100)]
    assert max(apart) < 0.001


def reading(clocks: float, calls: int) -> NodeCosts:
    def row(node: str, cost: float, calls: int, thread: str = "vpp_wk_0") -> NodeCost:
        return NodeCost(part="vswitch", thread=thread, node=node, packets=1000, calls=calls, cost=cost, error=0.05)

    nodes = (row("ip4-lookup", clocks, calls), row("ip4-rewrite", 22.0, 10), row("ip4-rewrite", 24.0, 10, "vpp_wk_1"))
    return NodeCosts(load="PDR", load_pps=1e6, received=1000, read_s=0.078, nodes=nodes)


@pytest.fixture(scope="module")
def cost_sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("costs")
    a, b = (
        str(write_output_xml(folder / f"{name}.xml", [result(CSC, 2, 1, costs=costs)]))
        for name, costs in (("a", reading(30.0, 20)), ("b", reading(41.0, 250)))
    )
    return a, b


def objects(*words: object) -> list[dict[str, Any]]:
    done = invoked(*words)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_compare_names_the_node_that_changed_beside_the_rate_and_lists_all(cost_sides: tuple[str, str]) -> None:
    rows = {row["metric"]: row for row in objects("compare", *cost_sides, "--format", "json")}
    pdr = rows["PDR"]["remarks"]
    assert len([text for text in pdr if "vswitch ip4-lookup +11 clocks" in text and "starved: 4 " in text]) == 1
    assert not any("ip4-rewrite" in text for text in pdr), "it is the same on both sides"
    assert not any("ip4-lookup" in text for text in rows["NDR"]["remarks"]), "read at PDR"
    assert (rows["PDR-clocks"]["a_mean_pps"], rows["PDR-clocks"]["b_mean_pps"]) == (76.0, 87.0)
    lookup, rewrite = objects("compare", *cost_sides, "--nodes", "--format", "json")
    assert [lookup[name] for name in ("metric", "cost_a", "cost_b", "changed")] == ["PDR", 30.0, 41.0, True]
    assert [rewrite[name] for name in ("cost_a", "cost_b", "changed")] == [23.0, 23.0, False]
    assert rewrite["packets_per_call_a"] == 100, "of both threads"


def test_a_dataset_has_them_as_a_view_and_gives_them_back(cost_sides: tuple[str, str], tmp_path: Path) -> None:
    history = tmp_path / "history"
    assert invoked("import", *cost_sides, "-o", history).exit_code == 0
    asked = "SELECT nf_chains, load, node, cost FROM costs WHERE cost > 25 ORDER BY cost"
    found = [tuple(row.values()) for row in objects("query", history, asked, "--format", "json")]
    assert found == [(2, "PDR", "ip4-lookup", 30.0), (2, "PDR", "ip4-lookup", 41.0)]
    (shown, _) = objects("show", history, "--format", "json")
    assert [each["node"] for each in shown["costs"]] == ["ip4-lookup", "ip4-rewrite"]


def test_the_page_says_what_share_was_lost_meanwhile() -> None:
    table = cost_table(reading(30.0, 20).model_copy(update={"loss_ratio": 0.33}), simulated=False)
    assert table is not None and "1.00 Mpps offered, 33 % lost, read in 78" in table.note


def test_a_row_without_values_is_damage(cost_sides: tuple[str, str], tmp_path: Path) -> None:
    history = tmp_path / "history"
    invoked("import", cost_sides[0], "-o", history)
    (part,) = (history / "tests").rglob("*.parquet")
    table = pq.read_table(part, partitioning=None)
    at = table.schema.get_field_index("costs")
    pq.write_table(table.set_column(at, "costs", pa.array([[None]], table.schema.field(at).type)), part)
    assert "a row without values" in str(invoked("show", history, "--format", "json").exception)


def test_the_export_has_them_as_telemetry_of_the_runtime() -> None:
    (packed,) = info_file(result(CSC, 2, 1, costs=reading(30.0, 20))).content["telemetry"]
    lines = zlib.decompress(base64.b64decode(packed)).decode().splitlines()
    found = re.findall(r'_runtime_(\w+)\{.*name="ip4-lookup".*\} (.*)', "\n".join(lines))
    assert {name: float(value) for name, value in found} == {
        "calls": 20.0, "vectors": 1000.0, "clocks": 30.0, "vectors_calls": 50.0
    }  # fmt: skip
    assert sum("_vectors{" in line for line in lines) == 3, "by thread"


def runs(*costs: float, per_call: float = 50.0) -> Sequence[TestRow]:
    rows = (CostByNode("PDR", "vswitch", "ip4-lookup", 1000, per_call, cost, "clocks", 0.5) for cost in costs)
    return cast(Sequence[TestRow], [SimpleNamespace(costs=(row,)) for row in rows])


def test_nodes_are_compared_by_the_spread_of_runs_or_the_resolution_of_readings_or_are_of_one_side() -> None:
    noisy, steady = runs(28.0, 30.0, 32.0), runs(29.9, 30.0, 30.1)
    (within,) = node_changes(noisy, runs(31.0, 33.0, 35.0), "PDR")
    (beyond,) = node_changes(steady, runs(32.9, 33.0, 33.1), "PDR")
    assert within.difference == beyond.difference == 3.0
    assert not within.has_changed and within.error > 3.0
    assert beyond.has_changed
    assert largest([within]) == []
    for cost, has_changed in ((30.4, False), (30.9, False), (31.2, True)):  # ±1; 2 % are 0.6
        (change,) = node_changes(runs(30.0), runs(cost), "PDR")
        assert (change.has_changed, change.error) == (has_changed, 1.0)
    (starved,), (slow,) = (node_changes(runs(30.0), runs(41.0, per_call=calls), "PDR") for calls in (4.0, 50.0))
    assert starved.starved and not slow.starved
    assert node_changes(runs(30.0), runs(41.0), "MRR") == node_changes(runs(30.0), [], "PDR") == [], "one side"


def test_the_page_of_comparisons_lists_what_changed() -> None:
    def costs(lookup: float, calls: float) -> tuple[CostByNode, ...]:
        nodes = ("ip4-lookup", calls, lookup), ("ip4-rewrite", 50.0, 20.0)
        return tuple(CostByNode("PDR", "vswitch", node, 1000, per, cost, "clocks", 0.5) for node, per, cost in nodes)

    rows = [row(1e6, 0, costs=costs(30.0, 50.0)), row(9e5, 1, costs=costs(41.0, 4.0))]
    html = render(compare.PAGE, ReportContents(Rows(rows))).html
    (line,) = re.findall(r"<tr>(?:(?!</tr>).)*<td>vswitch</td>.*?</tr>", html, re.DOTALL)
    cells = re.sub(r"<[^>]+>", " ", line).split()
    assert cells[-9:] == ["ip4-lookup", "30.0", "41.0", "+11", "1.00", "clocks", "50.0", "4.00", "starved"]


def test_a_node_of_one_side_only_has_changed_by_all_that_it_costs() -> None:
    """An access list that was off before: nothing else of the vSwitch tells why packets cost more."""
    acl = CostByNode("PDR", "vswitch", "acl-plugin-in-ip4-l2", 1000, 50.0, 2234.0, "clocks", 5.0)
    with_acl = cast(Sequence[TestRow], [SimpleNamespace(costs=(*runs(30.0)[0].costs, acl))])
    for a, b, sign, side in ((runs(30.0), with_acl, "+", "B"), (with_acl, runs(30.0), "-", "A")):
        (change,) = largest(node_changes(a, b, "PDR"))
        assert change.text == f"vswitch acl-plugin-in-ip4-l2 {sign}2230 clocks per packet (±5), only in {side}"
