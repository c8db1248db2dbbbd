"""Previews of studies: counts, times, and refusals of what cannot end; suspects, and where functions are placed."""

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
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.chains.model.spec import load_chains
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.density.suite_rows import rows_for
from resources.libraries.python.studies.interference.analysis import study as interference_study
from resources.libraries.python.studies.interference.model import InterferenceSpec
from resources.libraries.python.studies.interference.planning import ALONE_S
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.sizing.run import ServiceSizing
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.unit.csit_utils.builders import ENVIRONMENT
from tests.unit.csit_utils.characterization_records import record
from tests.unit.studies.interference.measurements import Company, measured
from tests.unit.studies.interference.measurements import spec_of as contenders_of

SIM_FILE = PROJECT / "topologies" / "sim.yaml"
SIM = load_topology(SIM_FILE)
WORLD: Testbed = SimulatedTestbed(SIM)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
A_MILLION = {"volumes_mbps": [*range(1, 101)], "sessions": [*range(1, 101)], "frames": ["64B"] * 100}


def chains(count: int, **changes: Any) -> dict[str, Any]:
    vnfs = [{"name": name, "kind": "linux_nat"} for name in LETTERS[:count]]
    return {"name": "s", "vnfs": vnfs, "workloads": {"volumes_mbps": [1], "frames": ["64B"]}, **changes}


def company(count: int, **changes: Any) -> dict[str, Any]:
    rows = [{"name": name, "type": "I", "kind": "linux_gateway"} for name in LETTERS[:count]]
    return {"name": "s", "frame": "64B", "contenders": rows, **changes}


def refusal(run: Any) -> str:
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
        ("chains", chains(7, duration_s=3600), "s: 13,700 measurements of chains under workloads take about 572 days"),
        ("chains", chains(2, workloads=A_MILLION), "workloads: 1,000,000 workloads; at most 1,000 are possible"),
        ("chains", chains(2, duration_s=10**15), "duration_s: 1000000000000000 is above the maximum of 3,600"),
        ("interference", company(2, load_pps=list(range(1, 18))), "spec.yaml:1: 17 items; at most 16 are possible"),
        ("interference", company(26, together=30), "s: 925,755,310,643,763,600 measurements; at most 1,000,000 are"),
        ("interference", company(26, repetitions=1000, duration_s=100), "s: 702,000 measurements take about"),
    ],
)
def test_previews_and_runs_refuse_endless_ones(tmp_path: Path, study: str, spec: dict[str, Any], sentence: str) -> None:
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
        (1, {"increase": 1e-9}, "increase: 1e-09 makes 200000000000 loads; at most 10000"),
    ],
)
def test_an_endless_sizing_is_refused(tmp_path: Path, instances: int, changes: dict[str, Any], sentence: str) -> None:
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


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    make_app(words)(words, standalone_mode=False)
    return capsys.readouterr().out


def objects(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed(capsys, *words, "--format", "json").splitlines()]


def sizing(deployment: str | Path, *options: str) -> list[str]:
    return ["size", str(CLEARWATER / deployment), str(CLEARWATER / "workload.json"), *options]


def test_an_exhaustive_plan_has_sizes_costs_and_templates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    *sizes, summary = objects(capsys, *sizing("exhaustive.json", "--deploy", "60"))
    assert [row["size"] for row in sizes][:2] == ["bn1s-sp1s-hs1s", "bn1s-sp1s-hs1m"]
    assert (sizes[0]["vcpus"], sizes[0]["memory_mb"], sizes[0]["instances"]) == (3, 6144, 3)
    assert sizes[1]["components"]["homestead"] == {"flavor": "medium", "instances": 1}
    assert (summary["sizes"], summary["sizes_at_most"], summary["loads"], summary["runs"]) == (11, False, 19, 2090)
    assert summary["seconds"] == 11 * 3 * 60 + 2090 * 301
    said = printed(capsys, *sizing("scaling.json", "--heat", str(tmp_path / "heat")))
    assert said.endswith(f"templates: 6 in {tmp_path}/heat\n")
    names = {path.stem for path in (tmp_path / "heat").iterdir()}
    assert names == {row["size"] for row in objects(capsys, *sizing("scaling.json"))[:-1]}


def test_a_directed_plan_needs_no_list_of_all_sizes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of 3 ** 9 sizes."""
    many = Path(shutil.copytree(CLEARWATER, tmp_path / "specs"), "many.json")
    spec = json.loads((CLEARWATER / "deployment.json").read_text(encoding="utf-8"))
    parts = [{**spec["components"][0], "name": f"part{each}", "short": each} for each in "abcdefghi"]
    many.write_text(json.dumps({**spec, "components": parts, "resources": {}}), encoding="utf-8")
    assert "at most 19 of more than 10000 sizes" in printed(capsys, *sizing(many))
    *sizes, summary = objects(capsys, *sizing(many))
    assert [row["size"] for row in sizes] == ["-".join(f"{part}1s" for part in "abcdefghi")]
    assert (summary["sizes"], summary["sizes_at_most"], summary["loads"]) == (19, True, 19)


def test_in_a_lab_the_first_dut_has_to_hold_the_instances(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By what the file says of it: no node of this testbed can be asked."""
    lab = yaml.safe_load((PROJECT / "topologies" / "available" / "lab-2n-kernel.yaml").read_text(encoding="utf-8"))
    lab["nodes"]["DUT1"] |= {"cpus": [{"cpus": "0-3", "cores": "0-3"}], "memory": [{"node": 0, "total_mb": 8000}]}
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(lab), encoding="utf-8")
    one = (CLEARWATER / "exhaustive.json").read_text(encoding="utf-8").replace('"count": 3', '"count": 1')
    shutil.copytree(CLEARWATER, tmp_path / "specs")
    (tmp_path / "specs" / "exhaustive.json").write_text(one, encoding="utf-8")
    *sizes, summary = objects(capsys, *sizing(tmp_path / "specs" / "exhaustive.json", "-t", str(path)))
    why_not = {row["size"]: row["why_not"] for row in sizes}
    assert why_not["bn1s-sp1s-hs1s"] is None
    assert why_not["bn1s-sp1s-hs1m"] == "3 instances need 8192 MB of memory, 8000 MB available"
    assert not summary["seconds_are_virtual"]


def written(path: Path, data: Record) -> str:
    path.write_text(data.model_dump_json(), encoding="utf-8")
    return str(path)


def pairs_record(tmp_path: Path, name: str = "pairs", started_at: str = "2026-01-01T00:00:00+00:00") -> str:
    shares = {("a", "a"): 0.9, ("a", "b"): 0.5, ("a", "c"): 0.85, ("b", "a"): 0.6, ("b", "b"): 0.9, ("b", "c"): 0.7}
    shares |= {("c", "a"): 0.8, ("c", "b"): 0.7, ("c", "c"): 0.9}
    beside: dict[Company, float] = {(one, (other,)): mean for (one, other), mean in shares.items()}
    measurements = measured({"a": 9e4, "b": 6e4, "c": 3e4}, beside)
    found = interference_study.analyse(contenders_of("a", "b", "c", name=name), measurements)
    path = tmp_path / f"{name}-{started_at[:10]}.json"
    return written(path, record("interference", name, interference=found, started_at=started_at))


def test_chains_are_counted_and_listed_and_drops_by_policy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nat = {"name": "nat", "kind": "linux_nat", "sizes": ["1c", "0.5c"], "memory_mib": [64, 128]}
    vnfs = [{"name": name, "kind": f"linux_{name}"} for name in ("firewall", "router")]
    asked = {"policies": ["firewall > nat", "nat | router"], "duration_s": 3, "vnfs": [vnfs[0], nat, vnfs[1]]}
    workloads = {"volumes_mbps": [20, 40], "frames": ["64B"]}
    spec = str(tmp_path / "three.yaml")
    Path(spec).write_text(yaml.safe_dump(chains(0, workloads=workloads, **asked)), encoding="utf-8")
    found = objects(capsys, "chains", spec)
    assert [(row["length"], row["orders"]) for row in found if row["object"] == "length"] == [(1, 3), (2, 3), (3, 0)]
    assert [(row["policy"], row["drops"]) for row in found if row["object"] == "dropped"] == [
        ("firewall > nat", 1 + 3),
        ("nat | router", 2 + 3),
    ]
    assert found[-1]["chains"] == 1 + 4 + 1 + 4 + 2
    assert found[-1]["deployments"] == 12 + 1, "and the path without VNFs"
    assert found[-1]["measurements"] == 2 * 13
    assert found[-1]["seconds"] == 13 * (4 + 2 * 4)
    assert "about 3 min 54 s" in printed(capsys, "chains", spec, "--deploy", "10")
    lines = printed(capsys, "chains", spec, "--list").splitlines()
    assert len(lines) == 13 and "firewall > nat\t1c 0.5c\t- 128 MiB" in lines
    assert objects(capsys, "chains", spec, "--list")[-1] == {
        "object": "chain", "vnfs": ["router", "firewall"], "sizes": ["1c", "1c"], "memory_mib": [None, None],
    }  # fmt: skip


def test_all_are_placed_on_two_servers_and_one_on_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = pairs_record(tmp_path)
    lines = printed(capsys, "place", path).splitlines()
    assert "put a + c on server 1, b on server 2: total capacity 2.65 (2.65 to 2.65) against 2.40" in lines[1]
    assert "a\tb\t0.500 (0.500 to 0.500)\t50.0 %\t25.0 % (25.0 to 25.0 %)\t5" in lines
    (lost,) = {row["sensitivity"] for row in objects(capsys, "place", path) if row.get("target") == "a"}
    assert lost == pytest.approx(1 - (0.9 + 0.5 + 0.85) / 3)
    (found,) = objects(capsys, "place", path, "--sweep")
    assert (found["frame"], found["load_pps"]) == ("512B", 1e5)
    out = printed(capsys, "place", path, "--server", "a", "--server", "c", "--add", "b")
    assert "put b on server 2 (c): total capacity 2.40 (2.40 to 2.40) against 2.10 (2.10 to 2.10) on server 1\n" in out
    advice = objects(capsys, "place", path, "--server", "a+c", "--server", "-")[-1]
    assert (advice["object"], advice["best"]["servers"]) == ("advice", [["a", "c"], ["b"]])


def test_one_of_several_studies_is_named_the_newest_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = (pairs_record(tmp_path), *(pairs_record(tmp_path, "more", f"2026-0{at}-02T00:00:00Z") for at in (1, 2)))
    with pytest.raises(ConfigError, match="the results have 2 studies; choose one by --study: "):
        printed(capsys, "place", *paths)
    assert "more:" in printed(capsys, "place", *paths, "--study", "more")
    with pytest.raises(ConfigError, match="pairs was not measured with guaranteed CPU time"):
        printed(capsys, "place", paths[0], "--guaranteed-cpu")


def test_measurements_of_interference_are_counted_and_timed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "pairs.yaml"
    gateway = {"name": "gateway", "type": "I", "kind": "linux_gateway"}
    inspection = {"name": "inspection", "type": "III", "kind": "suricata", "stand_in": "ngrep"}
    asked = company(0, duration_s=0.6, repetitions=5, contenders=[gateway, inspection])
    path.write_text(yaml.safe_dump(asked), encoding="utf-8")
    *functions, summary = objects(capsys, "interference", str(path), "--deploy", "1.4")
    assert [(row["name"], row["kind"], row["stand_in"]) for row in functions] == [
        ("gateway", "linux_gateway", None), ("inspection", "suricata", "ngrep"),
    ]  # fmt: skip
    assert (summary["combinations"], summary["measurements"], summary["deployments"]) == (6, 30, 32)
    assert summary["seconds"] == pytest.approx(2 * ALONE_S + 30 * (0.6 + 1.4))
    lines = printed(capsys, "interference", str(path), "--list").splitlines()
    assert lines[1:4] == ["gateway\t-", "gateway\tgateway", "gateway\tinspection"]
    path.write_text(yaml.safe_dump(asked | {"guarantee": True, "together": 3}), encoding="utf-8")
    assert objects(capsys, "interference", str(path))[-1]["measurements"] == 2 * (1 + 2 * (2 + 3)) * 5
