"""The commands of chains and of interference: what they print, and how bad input is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from csit_utils.cli import make_app
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.chains.analysis.study import analyse
from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.chains.planning.chain_generation import generate
from resources.libraries.python.studies.interference.analysis import study as interference_study
from resources.libraries.python.studies.interference.planning import ALONE_S
from tests.unit.csit_utils.characterization_records import record
from tests.unit.studies.chains.chain_runs import chain, noisy_runs, spec_of
from tests.unit.studies.interference.measurements import Company, measured
from tests.unit.studies.interference.measurements import spec_of as contenders_of

SPEC = """\
name: three
vnfs:
  - {name: firewall, kind: linux_firewall}
  - {name: nat, kind: linux_nat, sizes: [1c, 0.5c], memory_mib: [64, 128]}
  - {name: router, kind: linux_router}
policies: [firewall > nat, nat | router]
workloads: {volumes_mbps: [20, 40], frames: [64B]}
duration_s: 3
"""
VOLUMES = (1e8, 2e8)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """On stdout and stderr."""
    capsys.readouterr()
    make_app(words)(words, standalone_mode=False)
    found = capsys.readouterr()
    return found.out, found.err


def objects(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed(capsys, *words, "--format", "json")[0].splitlines()]


def written(path: Path, data: Record) -> str:
    path.write_text(data.model_dump_json(), encoding="utf-8")
    return str(path)


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "three.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return str(path)


@pytest.fixture
def chain_record(tmp_path: Path) -> str:
    asked = spec_of(("firewall", "nat", "ids"), volumes_bps=VOLUMES)
    chains = generate(asked)
    runs = noisy_runs(chains, VOLUMES, chain("firewall", "nat", "ids"), "nat")
    found = analyse(asked, runs)
    study = ChainStudy(
        spec=asked, chains=chains.count, runs=tuple(runs), statistics=found.statistics, suspects=found.suspects
    )
    return written(tmp_path / "chains.json", record("chains", "three", chain_study=study))


def pairs_record(tmp_path: Path, name: str = "pairs", started_at: str = "2026-01-01T00:00:00+00:00") -> str:
    shares = {("a", "a"): 0.9, ("a", "b"): 0.5, ("a", "c"): 0.85, ("b", "a"): 0.6, ("b", "b"): 0.9, ("b", "c"): 0.7}
    shares |= {("c", "a"): 0.8, ("c", "b"): 0.7, ("c", "c"): 0.9}
    beside: dict[Company, float] = {(one, (other,)): mean for (one, other), mean in shares.items()}
    measurements = measured({"a": 9e4, "b": 6e4, "c": 3e4}, beside)
    found = interference_study.analyse(contenders_of("a", "b", "c", name=name), measurements)
    path = tmp_path / f"{name}-{started_at[:10]}.json"
    return written(path, record("interference", name, interference=found, started_at=started_at))


def test_chains_are_counted_by_length_and_what_is_dropped_by_policy(
    capsys: pytest.CaptureFixture[str], spec: str
) -> None:
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
    assert "about 3 min 54 s" in printed(capsys, "chains", spec, "--deploy", "10")[0]


def test_all_chains_are_listed_with_their_resources(capsys: pytest.CaptureFixture[str], spec: str) -> None:
    lines = printed(capsys, "chains", spec, "--list")[0].splitlines()
    assert len(lines) == 13 and "firewall > nat\t1c 0.5c\t- 128 MiB" in lines
    assert objects(capsys, "chains", spec, "--list")[-1] == {
        "object": "chain", "vnfs": ["router", "firewall"], "sizes": ["1c", "1c"], "memory_mib": [None, None],
    }  # fmt: skip


def test_suspects_are_ranked_with_their_reasons(capsys: pytest.CaptureFixture[str], chain_record: str) -> None:
    (first,) = objects(capsys, "suspects", chain_record, "--most", "1")
    assert (first["rank"], first["chain"], first["simulated"]) == (1, "firewall > nat > ids", False)
    assert first["planted"] == "nat is limited to 0.1 CPUs"
    assert any("nat is throttled" in reason for reason in first["reasons"])
    assert "\nfirewall > nat > ids:\n  nat is throttled" in printed(capsys, "suspects", chain_record, "--why")[0]


def test_all_are_placed_on_two_servers_by_what_they_lose(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = pairs_record(tmp_path)
    lines = printed(capsys, "place", path)[0].splitlines()
    assert "put a + c on server 1, b on server 2: total capacity 2.65 (2.65 to 2.65) against 2.40" in lines[1], (
        "the answer first"
    )
    assert "a\tb\t0.500 (0.500 to 0.500)\t50.0 %\t25.0 % (25.0 to 25.0 %)\t5" in lines
    (lost,) = {row["sensitivity"] for row in objects(capsys, "place", path) if row.get("target") == "a"}
    assert lost == pytest.approx(1 - (0.9 + 0.5 + 0.85) / 3)


def test_one_more_is_placed_on_servers_that_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = pairs_record(tmp_path)
    out, _ = printed(capsys, "place", path, "--server", "a", "--server", "c", "--add", "b")
    assert "put b on server 2 (c): total capacity 2.40 (2.40 to 2.40) against 2.10 (2.10 to 2.10) on server 1\n" in out
    advice = objects(capsys, "place", path, "--server", "a+c", "--server", "-")[-1]
    assert (advice["object"], advice["best"]["servers"]) == ("advice", [["a", "c"], ["b"]])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--server", "a+x"), "x: not a network function of this study; choose from a, b, c"),
        (("--server", "a+b+c"), "all network functions of the study are on servers"),
        (("--study", "other"), "--study other: no such study; choose from pairs"),
        (("--guaranteed-cpu",), "pairs was not measured with guaranteed CPU time"),
        (("--frame", "64B"), "--frame 64B: not measured; choose from 512B"),
    ],
)
def test_invalid_values_are_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    path = pairs_record(tmp_path)
    with pytest.raises(ConfigError, match=message):
        printed(capsys, "place", path, *words)


def test_of_several_studies_one_is_named_and_the_newest_of_a_name_counts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    paths = (pairs_record(tmp_path), *(pairs_record(tmp_path, "more", f"2026-0{at}-02T00:00:00Z") for at in (1, 2)))
    with pytest.raises(ConfigError, match="the results have 2 studies; choose one by --study: "):
        printed(capsys, "place", *paths)
    assert "more:" in printed(capsys, "place", *paths, "--study", "more")[0]


def test_a_sweep_has_a_line_for_each_frame_and_load(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (found,) = objects(capsys, "place", pairs_record(tmp_path), "--sweep")
    assert (found["frame"], found["load_pps"]) == ("512B", 1e5)


def test_records_of_other_kinds_are_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, chain_record: str
) -> None:
    with pytest.raises(ConfigError, match="contains no interference study"):
        printed(capsys, "place", chain_record)
    with pytest.raises(ConfigError, match="contains no chain study"):
        printed(capsys, "suspects", pairs_record(tmp_path))


PAIRS = """\
name: pairs
frame: 512B
duration_s: 0.6
repetitions: 5
contenders:
  - {name: gateway, type: I, kind: linux_gateway}
  - {name: inspection, type: III, kind: suricata, stand_in: ngrep}
"""


def test_measurements_of_interference_are_counted_with_their_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "pairs.yaml"
    path.write_text(PAIRS, encoding="utf-8")
    *functions, summary = objects(capsys, "interference", str(path), "--deploy", "1.4")
    assert [(row["name"], row["kind"], row["stand_in"]) for row in functions] == [
        ("gateway", "linux_gateway", None), ("inspection", "suricata", "ngrep"),
    ]  # fmt: skip
    assert (summary["combinations"], summary["measurements"], summary["deployments"]) == (6, 30, 32)
    assert summary["seconds"] == pytest.approx(2 * ALONE_S + 30 * (0.6 + 1.4))
    lines = printed(capsys, "interference", str(path), "--list")[0].splitlines()
    assert lines[1:4] == ["gateway\t-", "gateway\tgateway", "gateway\tinspection"]
    path.write_text(PAIRS.replace("0.6", "0.6\nguarantee: true\ntogether: 3"), encoding="utf-8")
    assert objects(capsys, "interference", str(path))[-1]["measurements"] == 2 * (1 + 2 * (2 + 3)) * 5
