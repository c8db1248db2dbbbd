"""Files of other tools among our own: each counted once, none taken for a failed test of ours."""

import gzip
from pathlib import Path

import pytest

from csit_utils.analysis.grouping import all_series
from csit_utils.commands.results.inputs import opened
from csit_utils.studies.density.analysis.density import matrices
from csit_utils.studies.density.figures.heatmap import loss_definition
from resources.libraries.python.errors import ConfigError
from tests.loaded import load
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr, nfvbench, packed, plain, pps, searched
from tests.unit.csit_utils.in_memory import InMemory


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of CSIT, one of NFVbench, one of ours, and a damaged file."""
    tmp_path = tmp_path_factory.mktemp("results")
    for night, value in ((1, 5e6), (2, 5.2e6)):
        tree = tmp_path / f"run-{night}" / "tests" / "vpp" / "perf"
        tree.mkdir(parents=True)
        found = csit(csit_ndrpdr(ndr={"lower": pps(value)}), start_time=f"2024-03-0{night}T01:00:00Z")
        (tree / "density.info.json").write_bytes(packed(found))
        (tree / "plain.info.json.gz").write_bytes(
            gzip.compress(packed(plain(start_time=f"2024-03-0{night}T00:00:00Z")))
        )
    (tmp_path / "PVVP-3-10000-64-IMIX.json").write_bytes(packed(nfvbench({"64": searched(), "IMIX": searched()})))
    (tmp_path / "own.json").write_text(result().model_dump_json(), encoding="utf-8")
    (tmp_path / "bad.info.json").write_bytes(packed(csit([])))  # type: ignore[arg-type]
    return tmp_path


def test_results_of_several_tools_are_read_together_and_once(folder: Path) -> None:
    dataset = load([folder, folder / "PVVP-3-10000-64-IMIX.json"])
    assert len(dataset.foreign) == 6
    assert len(dataset.recorded) == 1
    assert not dataset.unrecorded
    assert {problem.source for problem in dataset.problems} == {str(folder / "bad.info.json")}


def test_a_run_of_csit_is_its_tree_and_not_each_file(folder: Path) -> None:
    rows = InMemory(load([folder])).tests
    runs = {row.run for row in rows if row.origin == "fdio-csit"}
    assert runs == {str(folder / "run-1"), str(folder / "run-2")}


def test_they_never_share_a_series(folder: Path) -> None:
    rows = InMemory(load([folder])).tests
    series = all_series(rows)
    assert sorted(one.system.origin for one in series) == ["csit-density", "fdio-csit", "nfvbench", "nfvbench"]


DEFINITIONS = {"fdio-csit": ["no packet lost", "loss ≤ 0.5 %"], "nfvbench": ["loss ≤ 0.001 %", "loss ≤ 0.1 %"]}


@pytest.mark.parametrize("origin", DEFINITIONS)
def test_heat_maps_give_the_definitions_of_their_own_tool(folder: Path, origin: str) -> None:
    rows = InMemory(load([folder])).tests
    series = next(one for one in all_series(rows) if one.system.origin == origin and one.frame == "64B")
    assert [loss_definition(matrix) for matrix in matrices(rows, series)] == DEFINITIONS[origin]


def test_a_directory_of_nothing_else_is_enough_for_a_report(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(packed(plain()))
    assert len(load([tmp_path]).foreign) == 1
    (tmp_path / "one.json").write_bytes(packed(plain(version="3.0.0")))
    with pytest.raises(ConfigError, match=r"invalid result of FD\.io CSIT"):
        opened([tmp_path]).contents()
