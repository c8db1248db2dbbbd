"""The size command: the plan with its cost, as table and JSON, and nothing else happens."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from csit_utils.cli import make_app
from resources.libraries.python.errors import ConfigError

ROOT = Path(__file__).parents[3]
CLEARWATER = ROOT / "tests" / "characterization" / "specs" / "clearwater"


def size(capsys: pytest.CaptureFixture[str], deployment: str, *options: str) -> str:
    """What `size` prints."""
    capsys.readouterr()
    files = (str(CLEARWATER / deployment), str(CLEARWATER / "workload.json"))
    make_app(["size"])(["size", *files, *options], standalone_mode=False)
    return capsys.readouterr().out


def objects(capsys: pytest.CaptureFixture[str], deployment: str, *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in size(capsys, deployment, "--format", "json", *options).splitlines()]


def test_an_exhaustive_plan_has_every_size_and_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    *sizes, summary = objects(capsys, "exhaustive.json", "--deploy", "60")
    assert [row["size"] for row in sizes][:2] == ["bn1s-sp1s-hs1s", "bn1s-sp1s-hs1m"]
    assert (sizes[0]["vcpus"], sizes[0]["memory_mb"], sizes[0]["instances"]) == (3, 6144, 3)
    assert sizes[1]["components"]["homestead"] == {"flavor": "medium", "instances": 1}
    assert (summary["sizes"], summary["sizes_at_most"], summary["loads"], summary["runs"]) == (11, False, 19, 2090)
    assert summary["seconds"] == 11 * 3 * 60 + 2090 * 301
    text = size(capsys, "exhaustive.json")
    assert "clearwater: 11 sizes.\nEach with at most 19 loads from 200 to 1100 calls/s, 10 x 300 s.\n" in text


def test_a_directed_plan_is_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    text = size(capsys, "deployment.json", "-t", str(ROOT / "topologies" / "sim.yaml"))
    assert "at most 4 of 11 sizes, smallest first (directed search, up)" in text
    assert "of a virtual clock" in text
    assert "fits" not in text
    assert objects(capsys, "deployment.json")[-1]["at_most"]


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A specification with 3 ** 9 sizes, without scripts of its own."""
    shutil.copytree(CLEARWATER, tmp_path / "specs")
    spec = json.loads((CLEARWATER / "deployment.json").read_text(encoding="utf-8"))
    first = spec["components"][0]
    spec["components"] = [{**first, "name": f"part{each}", "short": each} for each in "abcdefghi"]
    spec["resources"] = {}
    path = tmp_path / "specs" / "many.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


def test_a_directed_plan_needs_no_list_of_all_sizes(capsys: pytest.CaptureFixture[str], many: Path) -> None:
    text = size(capsys, str(many))
    assert "at most 19 of more than 10000 sizes, smallest first (directed search, up)" in text
    assert text.endswith("Only the smallest size is listed.\n")
    *sizes, summary = objects(capsys, str(many))
    assert [row["size"] for row in sizes] == ["-".join(f"{part}1s" for part in "abcdefghi")]
    assert (summary["sizes"], summary["sizes_at_most"], summary["loads"]) == (19, True, 19)
    with pytest.raises(ConfigError, match="--heat: clearwater has more than 10000 sizes"):
        size(capsys, str(many), "--heat", str(many.parent / "heat"))
    assert not (many.parent / "heat").exists()


def test_in_a_lab_the_first_dut_has_to_hold_the_instances(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By what the file says of it: no node of this testbed can be asked."""
    lab = yaml.safe_load((ROOT / "topologies" / "available" / "lab-2n-kernel.yaml").read_text(encoding="utf-8"))
    lab["nodes"]["DUT1"] |= {"cpus": [{"cpus": "0-3", "cores": "0-3"}], "memory": [{"node": 0, "total_mb": 8000}]}
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(lab), encoding="utf-8")
    one = (CLEARWATER / "exhaustive.json").read_text(encoding="utf-8").replace('"count": 3', '"count": 1')
    shutil.copytree(CLEARWATER, tmp_path / "specs")
    (tmp_path / "specs" / "exhaustive.json").write_text(one, encoding="utf-8")
    *sizes, summary = objects(capsys, str(tmp_path / "specs" / "exhaustive.json"), "-t", str(path))
    why_not = {row["size"]: row["why_not"] for row in sizes}
    assert why_not["bn1s-sp1s-hs1s"] is None
    assert why_not["bn1s-sp1s-hs1m"] == "3 instances need 8192 MB of memory, 8000 MB available"
    assert not summary["seconds_are_virtual"]


def test_templates_are_written_where_they_are_wanted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert size(capsys, "scaling.json", "--heat", str(tmp_path / "heat")).endswith(f"templates: 6 in {tmp_path}/heat\n")
    names = {path.stem for path in (tmp_path / "heat").iterdir()}
    assert names == {row["size"] for row in objects(capsys, "scaling.json")[:-1]}
