"""Order, number and time of measurements; packet sizes and loads as lists, from the file to table and figure."""

from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.studies.interference.study import PAGE
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.studies.interference.analysis.sentences import matrix_in_words, most_sensitive
from resources.libraries.python.studies.interference.analysis.tables import MATRIX, by_frame_and_load, spots
from resources.libraries.python.studies.interference.model import Interference, InterferenceSpec, Resource
from resources.libraries.python.studies.interference.planning import cost, gatherings, more_turns, schedule
from tests.unit.csit_utils.characterized_pages import made
from tests.unit.csit_utils.study_records import interfered
from tests.unit.studies.interference.measurements import FRAME, spec_of, tables
from tests.unit.studies.interference.simulated_studies import measured

FILE = """
name: sweep
frame: [512B, 64B, 1518B]
load_pps: [auto, 20000]
repetitions: 2
contenders:
  - {name: gateway, type: I, kind: linux_gateway}
  - {name: monitor, type: II, kind: pktstat}
"""


def loaded(folder: Path, text: str = FILE) -> InterferenceSpec:
    (folder / "sweep.yaml").write_text(text)
    return load_yaml(folder / "sweep.yaml", InterferenceSpec)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Interference:
    return measured(loaded(tmp_path_factory.mktemp("sweep")))


def test_lists_are_all_packet_sizes_with_all_loads_in_one_shuffled_order(tmp_path: Path) -> None:
    spec = loaded(tmp_path)
    assert (spec.frame.name, spec.load_pps) == ("512B", None)
    assert [(frame.name, load_pps) for frame, load_pps in spec.points()] == [
        ("512B", None), ("512B", 2e4), ("64B", None), ("64B", 2e4), ("1518B", None), ("1518B", 2e4),
    ]  # fmt: skip
    assert InterferenceSpec.model_validate_json(spec.model_dump_json()) == spec
    one = loaded(tmp_path, FILE.replace("[512B, 64B, 1518B]", "512B").replace("[auto, 20000]", "20000"))
    assert [(frame.name, load_pps) for frame, load_pps in one.points()] == [("512B", 2e4)]
    assert "frames" not in one.model_dump(), "records of one point are as they were"
    spec = loaded(tmp_path)
    first, second = ([each.point for each in schedule(spec) if each.repetition == number] for number in (0, 1))
    assert Counter(first) == dict.fromkeys(range(6), 6)
    assert sorted(first) != first != second, "drift falls on all points alike"
    changed = load_yaml(tmp_path / "sweep.yaml", InterferenceSpec, {"frame": "64B", "load_pps": "[5000, auto]"})
    assert [(frame.name, load_pps) for frame, load_pps in changed.points()] == [("64B", 5e3), ("64B", None)]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[512B, 64B, 1518B]", "[512B, 512B]", "frame sizes 512B more than once"),
        ("[512B, 64B, 1518B]", "[]", "frame: an empty list"),
        ("[512B, 64B, 1518B]", "[512B, 12B]", "no frame size '12B'"),
        ("[auto, 20000]", "[auto, auto]", "loads auto more than once"),
        ("[auto, 20000]", "[20000, many]", "'many'"),
        ("[auto, 20000]", "[20000, -1]", "-1 is not above 0"),
        ("repetitions: 2", "verify: -1", "-1 is below the minimum of 0"),
        ("repetitions: 2", "verify: 17", "16"),
        ("[auto, 20000]", f"{list(range(1, 18))}", "at most 16"),
        ("repetitions: 2", "guarantee: memory", "unknown word 'memory'"),
        ("repetitions: 2", "guarantee: [cpu, cpu]", "each resource once"),
        ("monitor, type", "gateway, type", "named gateway more than once"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded(tmp_path, FILE.replace(before, after))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("true", ("network",)), ("false", ()), ("cpu", ("cpu",)), ("[cpu, network]", ("cpu", "network"))],
)
def test_guarantees_are_a_yes_or_the_names_of_resources(tmp_path: Path, value: str, wanted: tuple[str, ...]) -> None:
    assert loaded(tmp_path, f"{FILE}\nguarantee: {value}\n").guarantee == wanted


def test_each_point_has_its_matrix_and_interference_grows_with_the_rate(swept: Interference) -> None:
    found = spots(swept)
    assert [spot.frame.name for spot in found] == ["512B", "512B", "64B", "64B", "1518B", "1518B"]
    assert all(len(spot.matrix) == 4 for spot in found)
    assert {row.mean for row in found[0].matrix} == {row.mean for row in swept.matrix}
    assert {row.samples for row in swept.matrix} == {2}
    by_point = {
        (spot.frame.name, spot.asked_pps): {row.target: row.mean for row in spot.matrix if row.against == ("monitor",)}
        for spot in found
    }
    assert by_point["512B", 2e4]["monitor"] == pytest.approx(1, abs=0.01), "at a low load none lacks anything"
    assert by_point["512B", None]["monitor"] == pytest.approx(0.461, abs=0.06)
    lost = {}
    for point in by_frame_and_load([swept]):
        lost[point.frame.name, point.load_pps > 3e4] = point.findings.degradation.value
        assert most_sensitive(point.findings) == (() if point.load_pps < 3e4 else ("monitor",))
    for size in ("64B", "512B", "1518B"):
        assert lost[size, False] == pytest.approx(0, abs=0.01) and lost[size, True] > 0.1


def test_table_and_words_have_a_line_for_each_point(swept: Interference) -> None:
    head, *rows = tables(swept)["interference_sweep"]
    assert head == ("frame", "load_pps", *MATRIX) and len(rows) == 6 * 4
    lines = [line for line in matrix_in_words(swept) if " each: " in line]
    assert [line.partition(",")[0] for line in lines] == ["512B", "512B", "64B", "64B", "1518B", "1518B"]
    assert "no interference" in lines[1] and "most sensitive is monitor" in lines[0]
    single = swept.model_copy(update={"spec": swept.spec.model_copy(update={"frames": (), "loads_pps": ()})})
    assert "interference_sweep" not in tables(single)
    assert not [line for line in matrix_in_words(single) if " each: " in line]


def test_the_plots_have_throughput_over_packet_size_and_over_rate(swept: Interference) -> None:
    sizes, rates = made(PAGE, interfered(swept)).figures[-2:]
    assert sizes.selectors[0] == ("more than the fastest carries", "20.0 kpps each")
    assert rates.selectors[0] == ("512B", "64B", "1518B")
    lines = sizes.variants["more than the fastest carries|mean of each network function"]["data"]
    assert [line["name"] for line in lines] == ["gateway", "monitor"]
    assert lines[1]["x"] == [64, 512, 1518]
    (mean,) = (each.normalized.value for each in swept.findings.sensitivity if each.name == "monitor")
    assert lines[1]["y"][1] == pytest.approx(mean, abs=1e-3)
    (beside,) = (
        line for line in rates.variants["512B|monitor beside each"]["data"] if line["name"] == "beside monitor"
    )
    assert beside["x"][0] == 20_000 and beside["x"][1] > 5e5
    assert beside["y"][0] > beside["y"][1]
    assert beside["error_y"]["array"][1] > 0


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True), st.integers(1, 4), st.integers(0, 99))
def test_each_repetition_has_all_alone_and_all_ordered_pairs_once(
    names: list[str], repetitions: int, seed: int
) -> None:
    found = schedule(spec_of(*names, repetitions=repetitions, seed=seed))
    wanted = {(one, ()) for one in names} | {(one, (other,)) for one, other in product(names, names)}
    assert [turn.number for turn in found] == list(range(len(wanted) * repetitions))
    for repetition in range(repetitions):
        row = [(turn.target, turn.against) for turn in found if turn.repetition == repetition]
        assert Counter(row) == Counter(wanted)
    # A repetition is over before the next one begins, so that drift falls on all alike.
    assert [turn.repetition for turn in found] == sorted(turn.repetition for turn in found)
    assert schedule(spec_of(*names, repetitions=repetitions, seed=seed)) == found


def test_each_guarantee_adds_all_combinations_and_three_together_those_with_two_others() -> None:
    found = schedule(spec_of("A", "B", repetitions=1, guarantee="network,cpu"))
    assert Counter((turn.guarantee, bool(turn.against)) for turn in found) == {
        (None, False): 2, (None, True): 4, (Resource.NETWORK, True): 4, (Resource.CPU, True): 4,
    }  # fmt: skip
    ways = [turn.guarantee for turn in found]
    assert sum(one is not other for one, other in pairwise(ways)) > 3, "not one way after the other"
    found = schedule(spec_of("A", "B", repetitions=1, together=3))
    threes = Counter(turn.against for turn in found if len(turn.against) == 2)
    assert threes == {("A", "A"): 2, ("A", "B"): 2, ("B", "B"): 2} and len(found) == 2 + 4 + 6


@given(
    st.lists(st.sampled_from("ABCD"), min_size=3, max_size=4, unique=True), st.integers(1, 3), st.integers(0, 50),
    st.integers(0, 9),
)  # fmt: skip
def test_further_repetitions_have_each_set_and_the_baselines_of_its_targets_once_under_new_numbers(
    names: list[str], repetitions: int, first: int, repetition: int
) -> None:
    """Neighbours are in the order of the specification, as in all other measurements of the same set."""
    spec = spec_of(*names, repetitions=repetitions)
    one, two, three = names[:3]
    found = more_turns(spec, [(one, (three, two)), (two, (one,)), (one, (three, two))], first, repetition)
    assert [turn.number for turn in found] == list(range(first, first + len(found)))
    for number in range(repetition, repetition + repetitions):
        row = [(turn.target, turn.against) for turn in found if turn.repetition == number]
        assert Counter(row) == Counter([(one, (two, three)), (two, (one,)), (one, ()), (two, ())])
    assert {(turn.point, turn.guarantee) for turn in found} == {(0, None)}


@given(st.integers(1, 5), st.integers(2, 5), st.integers(1, 3), st.sampled_from(["no", "yes", "cpu", "network,cpu"]))
def test_the_cost_counts_what_the_schedule_has(names: int, together: int, repetitions: int, guarantee: str) -> None:
    spec = spec_of(*"ABCDE"[:names], together=together, repetitions=repetitions, guarantee=guarantee)
    found = cost(spec)
    assert found.counted["combinations"] == len(gatherings(spec))
    assert found.runs == len(schedule(spec))
    assert found.counted["deployments"] == found.runs + names
    assert found.seconds > found.runs * spec.duration_s


def test_the_cost_of_pairs_and_of_a_sweep_whose_load_is_found_for_each_frame_size() -> None:
    """3 alone and 9 pairs, 10 times for 4 s each: 1.6 s around each measurement, 3 s to find each load."""
    found = cost(spec_of("A", "B", "C", repetitions=10, duration_s=4.0))
    assert found.seconds == pytest.approx(3 * 3.0 + 120 * 5.6)
    assert found.counts() == {"combinations": 12, "measurements": 120, "deployments": 123, "seconds": found.seconds}
    frames = (FRAME, FRAME.model_copy(update={"name": "64B"}))
    spec = spec_of("A", "B", repetitions=5, duration_s=4.0, frames=frames, load_pps=1e5, loads_pps=(1e5, 2e5, 3e5))
    found = cost(spec, around_s=2.0)
    assert (found.runs, found.counted["deployments"]) == (6 * 5 * 2 * 3, 180 + 2 * 2)
    assert found.seconds == pytest.approx(4 * 3.0 + 180 * 6.0)
    with pytest.raises(ConfigError, match=r"pairs.*measurements"):
        cost(spec_of(*"ABCDEFGH", together=5, repetitions=1000))
