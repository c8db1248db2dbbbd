"""Flame graphs and their differences: shares add up, and noise is no change."""

from collections import Counter
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.stats import chi2_contingency

from csit_utils.analysis.flames import StackSide, differences, flame, functions, path_differences, probability
from csit_utils.report.details.flames import difference_graph, flame_graph
from csit_utils.report.html import fill
from resources.libraries.python.drivers.sim.probes import shares
from resources.libraries.python.model.measurements.stacks import described
from tests.unit.csit_utils.sampled_stacks import sampled


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
    for row in there:
        other = found[row.owner, row.function]
        assert row.difference == -other.difference and row.significant == other.significant
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


def drawn(rng: Random, hot: dict[str, float], number: int = 2000) -> dict[str, int]:
    truth = shares("nf-1-1", hot)
    return dict(Counter(f"nf-1-1;{stack}" for stack in rng.choices(list(truth), list(truth.values()), k=number)))


@pytest.mark.slow
def test_equal_systems_rarely_differ_and_a_planted_function_is_named_first() -> None:
    rng = Random(7)
    false = sum(
        any(row.significant for row in differences(side(drawn(rng, {})), side(drawn(rng, {})))) for _ in range(200)
    )
    assert false <= 20  # 5 % expected, 10 % is four deviations above
    for _ in range(20):
        first = differences(side(drawn(rng, {})), side(drawn(rng, {"sim_filter": 2.0})))[0]
        assert first.significant and first.function == "sim_filter" and first.difference > 0


def test_the_graph_of_a_test_names_functions_and_escapes_them() -> None:
    graph = flame_graph(sampled({"nf-1-1;<b>f</b>;g": 150, "vswitch;br_forward": 50}, cut=3), simulated=True)
    assert graph.rows == 3
    assert graph.caption.startswith("Call stacks: 200 samples by cpu-clock at 199 Hz, in 10 s at PDR; 1.5 % in stacks")
    assert [(box.name, box.left, box.width, box.row) for box in graph.boxes][:2] == [
        ("nf-1-1", 0.0, 75.0, 0),
        ("vswitch", 75.0, 25.0, 0),
    ]
    assert graph.boxes[-1].tip == "g in nf-1-1: 150 samples, 75 %, 754 ns per packet; itself 75 %"
    assert graph.notes[0] == "DUT1: 400 samples of 1 data CPU in 10.0 s, of them 50 % idle."
    text = fill("flames.html.j2", {"test": SimpleNamespace(flames=graph)})
    assert "SIMULATED" in text and "&lt;b&gt;f&lt;/b&gt;" in text and "<b>f</b>" not in text
    assert flame_graph(None, simulated=False) is None
    assert described(sampled({"a;b": 1})) == "1 sample by cpu-clock at 199 Hz, in 10 s at PDR"


def test_the_difference_is_red_where_a_function_grew_and_grey_where_noise_is_enough() -> None:
    a, b = {"nf-1-1;f;g": 100, "nf-1-1;f;h": 900}, {"nf-1-1;f;g": 500, "nf-1-1;f;h": 500}
    graph = difference_graph(side(a), side(b), "A to B", simulated=False)
    tones = {box.name: (box.tone, box.width) for box in graph.boxes}
    assert tones == {"nf-1-1": ("same", 100), "f": ("same", 100), "g": ("more5", 30), "h": ("less5", 70)}
    tip = next(box.tip for box in graph.boxes if box.name == "g")
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
    graph = difference_graph(whole, half, "", simulated=False, per_packet=True)
    assert [box.tone for box in graph.boxes] == ["more5", "more5"]
    assert graph.boxes[1].tip == "f in nf-1-1: 3015 to 6030 ns per packet (600 and 600 samples)"
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
