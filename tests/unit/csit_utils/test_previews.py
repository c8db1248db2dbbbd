"""Previews answer at once, and refuse what cannot end with its number and the bound; that of a sizing as a whole."""

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from csit_utils.cli import make_app
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model import bounds
from resources.libraries.python.model.load import load_topology, load_yaml
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.chains.model.spec import load_chains
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.density.suite_rows import rows_for
from resources.libraries.python.studies.interference.model.record import InterferenceSpec
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.sizing.run import ServiceSizing
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.unit.csit_utils.builders import ENVIRONMENT

SIM_FILE = PROJECT / "topologies" / "sim.yaml"
SIM = load_topology(SIM_FILE)
WORLD: Testbed = SimulatedTestbed(SIM)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def chains(count: int, **changes: Any) -> dict[str, Any]:
    vnfs = [{"name": name, "kind": "linux_nat"} for name in LETTERS[:count]]
    return {"name": "s", "vnfs": vnfs, "workloads": {"volumes_mbps": [1], "frames": ["64B"]}, **changes}


def company(count: int, **changes: Any) -> dict[str, Any]:
    rows = [{"name": name, "type": "I", "kind": "linux_gateway"} for name in LETTERS[:count]]
    return {"name": "s", "frame": "64B", "contenders": rows, **changes}


def lists(count: int) -> dict[str, Any]:
    """Workloads of which there are `count` to the third power."""
    numbers = list(range(1, count + 1))
    return {"volumes_mbps": numbers, "sessions": numbers, "frames": ["64B"] * count}


def refusal(run: Any) -> str:
    """What is said of something that would not end."""
    with pytest.raises(ConfigError) as caught:
        run()
    return str(caught.value)


RUNS: dict[str, Callable[[Path], object]] = {
    "chains": lambda path: ChainStudyTest(SIM, WORLD, load_chains(path), ENVIRONMENT),
    "interference": lambda path: InterferenceTest(SIM, WORLD, load_yaml(path, InterferenceSpec), ENVIRONMENT),
}
"""What a run of a study begins with, by the command that previews it."""


@pytest.mark.parametrize(
    ("study", "spec", "sentence"),
    [
        ("chains", chains(13), "s: 16,926,797,485 measurements of chains under workloads; at most 1,000,000 are"),
        ("chains", chains(14, policies=[f"{a} > {b}" for a, b in pairwise("abcdefghijk")]), "at most 1,000"),
        ("chains", chains(8, resources={"memory_mib": list(range(16, 116))}), "measurements of chains under workloads"),
        ("chains", chains(7, duration_s=3600), "s: 13,700 measurements of chains under workloads take about 572 days"),
        ("chains", chains(2, workloads=lists(100)), "workloads: 1,000,000 workloads; at most 1,000 are possible"),
        ("chains", chains(2, duration_s=10**15), "duration_s: 1000000000000000 is above the maximum of 3,600"),
        ("chains", chains(2, workloads={"volumes_mbps": [1e300], "frames": ["64B"]}), "1e+300 is above the maximum of"),
        ("interference", company(2, repetitions=10**9), "repetitions: 1000000000 is above the maximum of 1,000"),
        ("interference", company(2, duration_s=1e15), "duration_s: 1000000000000000.0 is above the maximum of 86,400"),
        ("interference", company(2, load_pps=1e13), "load_pps: 10000000000000.0 is above the maximum of 1,000,000"),
        ("interference", company(2, load_pps=list(range(1, 18))), "spec.yaml:1: 17 items; at most 16 are possible"),
        ("interference", company(26, together=30), "s: 925,755,310,643,763,600 measurements; at most 1,000,000 are"),
        ("interference", company(26, repetitions=1000, duration_s=100), "s: 702,000 measurements take about"),
        (
            "interference",
            company(2, duration_s=86400, repetitions=100),
            "600 measurements take about 600 days; at most",
        ),
    ],
)
def test_a_study_that_cannot_end_is_refused_by_its_preview_and_by_its_run(
    tmp_path: Path, study: str, spec: dict[str, Any], sentence: str
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    previewed = refusal(lambda: make_app([study])([study, str(path)], standalone_mode=False))
    assert sentence in previewed
    assert refusal(lambda: RUNS[study](path)) == previewed


@pytest.mark.parametrize(
    ("instances", "changes", "sentence"),
    [
        (10, {"repeat": 1000, "increase": 1}, "edges: 2,010,000 runs of the generator; at most 1,000,000 are possible"),
        (1, {"repeat": 200, "duration_s": 86400}, "edges: 600 runs of the generator take about 600 days; at most 365"),
        (1, {"duration_s": 1e15}, "duration_s: 1000000000000000.0 is above the maximum of 86,400"),
        (1, {"increase": 1e-9}, "increase: 1e-09 makes 200000000000 loads; at most 10000"),
    ],
)
def test_a_sizing_that_cannot_end_is_refused(
    tmp_path: Path, instances: int, changes: dict[str, Any], sentence: str
) -> None:
    for script in ("install.sh", "load.sh"):
        (tmp_path / script).write_text("#!/bin/sh\n")
        (tmp_path / script).chmod(0o755)
    workload = {"range": {"min": 100, "max": 300}, "increase": 100, "generator": "load.sh", "duration_s": 1}
    deployment = {
        "vnf_name": "edges",
        "components": [{"name": "edge", "short": "ed", "flavors": ["small"], "most_instances": 10}],
        "flavors": {"small": {"vcpus": 1, "memory_mb": 64}},
        "install": "install.sh",
        "mode": "custom",
        "sizes": [{"components": {"edge": {"flavor": "small", "instances": many}}} for many in range(1, instances + 1)],
    }
    files = tmp_path / "deployment.json", tmp_path / "workload.json"
    files[0].write_text(json.dumps(deployment))
    files[1].write_text(json.dumps(workload | changes))
    previewed = refusal(lambda: make_app(["size"])(["size", *map(str, files)], standalone_mode=False))
    assert sentence in previewed
    assert refusal(lambda: ServiceSizing(SIM, WORLD, load_specifications(*files), ENVIRONMENT)) == previewed


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"CELLS": "1-4000x1-4000"}, "'1-4000x1-4000': 16,000,000 cells; at most 1,000,000 are possible"),
        ({"CELLS": "1-1000x1-1000", "FRAMES": "64B,IMIX"}, "a cell of 1,000,000 NFs; at most 1,024 are possible"),
    ],
)
def test_a_matrix_that_cannot_end_is_refused(variables: dict[str, str], sentence: str) -> None:
    options = [word for name, text in variables.items() for word in ("-v", f"{name}:{text}")]
    assert sentence in refusal(lambda: make_app(["plan"])(["plan", str(SIM_FILE), *options], standalone_mode=False))
    said = {"TOPOLOGY": str(SIM_FILE), "SERVICE_TYPE": "CSC", "TEST_TYPE": "MRR", **variables}
    assert sentence in refusal(lambda: rows_for({**said, "OPTIONS": SimpleNamespace(include=[])}.get))


def test_a_matrix_that_takes_years_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONGEST_RUN_S", bounds.DAY_S)
    run = ["plan", str(SIM_FILE), "--search", "soak", "--cells", "1-10x1-10"]
    with pytest.raises(ConfigError, match=r"^this selection: \d+ tests take about \d+ days; at most 1 are possible$"):
        make_app(["plan"])(run, standalone_mode=False)
    said = {"TOPOLOGY": str(SIM_FILE), "SERVICE_TYPE": "CSC", "TEST_TYPE": "NDRPDR", "SEARCH": "soak,sum=3600"}
    with pytest.raises(ConfigError, match=r"^SEARCH:soak,sum=3600: \d+ NDRPDR tests take about \d+ days; at most 1 ar"):
        rows_for({**said, "CELLS": "1-10x1-10", "OPTIONS": SimpleNamespace(include=[])}.get)


CLEARWATER = PROJECT / "tests" / "characterization" / "specs" / "clearwater"


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


def test_a_directed_plan_is_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    text = size(capsys, "deployment.json", "-t", str(SIM_FILE))
    assert "at most 4 of 11 sizes, smallest first (directed search, up)" in text and "of a virtual clock" in text
    assert objects(capsys, "deployment.json")[-1]["at_most"]


def test_a_directed_plan_needs_no_list_of_all_sizes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of 3 ** 9 sizes."""
    many = Path(shutil.copytree(CLEARWATER, tmp_path / "specs"), "many.json")
    spec = json.loads((CLEARWATER / "deployment.json").read_text(encoding="utf-8"))
    parts = [{**spec["components"][0], "name": f"part{each}", "short": each} for each in "abcdefghi"]
    many.write_text(json.dumps({**spec, "components": parts, "resources": {}}), encoding="utf-8")
    assert "at most 19 of more than 10000 sizes" in size(capsys, str(many))
    *sizes, summary = objects(capsys, str(many))
    assert [row["size"] for row in sizes] == ["-".join(f"{part}1s" for part in "abcdefghi")]
    assert (summary["sizes"], summary["sizes_at_most"], summary["loads"]) == (19, True, 19)
    with pytest.raises(ConfigError, match="--heat: clearwater has more than 10000 sizes"):
        size(capsys, str(many), "--heat", str(many.parent / "heat"))
    assert not (many.parent / "heat").exists()


def test_in_a_lab_the_first_dut_has_to_hold_the_instances(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By what the file says of it: no node of this testbed can be asked."""
    lab = yaml.safe_load((PROJECT / "topologies" / "available" / "lab-2n-kernel.yaml").read_text(encoding="utf-8"))
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
