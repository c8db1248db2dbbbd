"""Packet sizes and loads as lists of one specification: from the file to the table and the figure."""

from pathlib import Path

import pytest

from csit_utils.studies.interference.study import PAGE
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.studies.interference.analysis.sentences import matrix_in_words, most_sensitive
from resources.libraries.python.studies.interference.analysis.tables import MATRIX, by_frame_and_load, spots
from resources.libraries.python.studies.interference.model.record import (
    Interference,
    InterferenceSpec,
)
from resources.libraries.python.studies.interference.planning import schedule
from tests.unit.csit_utils.characterized_pages import made
from tests.unit.csit_utils.study_records import interfered
from tests.unit.studies.interference.measurements import tables
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


def test_lists_are_all_packet_sizes_with_all_loads_and_their_first_is_the_reference(tmp_path: Path) -> None:
    spec = loaded(tmp_path)
    assert (spec.frame.name, spec.load_pps) == ("512B", None)
    assert [(frame.name, load_pps) for frame, load_pps in spec.points()] == [
        ("512B", None), ("512B", 2e4), ("64B", None), ("64B", 2e4), ("1518B", None), ("1518B", 2e4),
    ]  # fmt: skip
    assert InterferenceSpec.model_validate_json(spec.model_dump_json()) == spec
    one = loaded(tmp_path, FILE.replace("[512B, 64B, 1518B]", "512B").replace("[auto, 20000]", "20000"))
    assert [(frame.name, load_pps) for frame, load_pps in one.points()] == [("512B", 2e4)]
    assert "frames" not in one.model_dump(), "records of one point are as they were"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[512B, 64B, 1518B]", "[512B, 512B]", "frame sizes 512B more than once"),
        ("[512B, 64B, 1518B]", "[]", "frame: an empty list"),
        ("[512B, 64B, 1518B]", "[512B, 12B]", "no frame size '12B'"),
        ("[auto, 20000]", "[auto, auto]", "loads auto more than once"),
        ("[auto, 20000]", "[20000, -1]", "-1 is not above 0"),
        ("[auto, 20000]", f"{list(range(1, 18))}", "at most 16"),
    ],
)
def test_lists_that_make_no_sense_are_refused(tmp_path: Path, before: str, after: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded(tmp_path, FILE.replace(before, after))


def test_settings_make_a_sweep_of_a_point_and_a_point_of_a_sweep(tmp_path: Path) -> None:
    loaded(tmp_path)
    file = tmp_path / "sweep.yaml"
    changed = load_yaml(file, InterferenceSpec, {"frame": "64B", "load_pps": "[5000, auto]"})
    assert [(frame.name, load_pps) for frame, load_pps in changed.points()] == [("64B", 5e3), ("64B", None)]
    with pytest.raises(ConfigError, match=r"a number is expected here, not the string 'many'"):
        load_yaml(file, InterferenceSpec, {"load_pps": "[5000, many]"})


def test_every_repetition_has_every_point_in_one_shuffled_order(tmp_path: Path) -> None:
    spec = loaded(tmp_path)
    turns = [turn for turn in schedule(spec) if turn.repetition == 0]
    assert len(turns) == 6 * 6
    points = [turn.point for turn in turns]
    assert points != sorted(points), "drift falls on all points alike"
    assert all(points.count(point) == 6 for point in range(6))


def test_each_point_has_its_matrix_and_the_rest_is_of_the_reference(swept: Interference) -> None:
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


def test_interference_grows_with_the_rate(swept: Interference) -> None:
    lost = {}
    for point in by_frame_and_load([swept]):
        lost[point.frame.name, point.load_pps > 3e4] = point.findings.degradation.value
        assert most_sensitive(point.findings) == (() if point.load_pps < 3e4 else ("monitor",))
    for size in ("64B", "512B", "1518B"):
        assert lost[size, False] == pytest.approx(0, abs=0.01) and lost[size, True] > 0.1


def test_table_and_words_have_a_line_for_each_point(swept: Interference) -> None:
    head, *rows = tables(swept)["interference_sweep"]
    assert head == ("frame", "load_pps", *MATRIX)
    assert len(rows) == 6 * 4
    lines = [line for line in matrix_in_words(swept) if " each: " in line]
    assert [line.partition(",")[0] for line in lines] == ["512B", "512B", "64B", "64B", "1518B", "1518B"]
    assert lines[1].startswith("512B, 20.0 kpps each: no interference was found")
    assert "; most sensitive is monitor: it loses " in lines[0]
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
    assert lines[1]["y"][1] == pytest.approx(swept.sensitivity["monitor"], abs=1e-3)
    (beside,) = (
        line for line in rates.variants["512B|monitor beside each"]["data"] if line["name"] == "beside monitor"
    )
    assert beside["x"][0] == 20_000 and beside["x"][1] > 5e5
    assert beside["y"][0] > beside["y"][1]
    assert beside["error_y"]["array"][1] > 0
