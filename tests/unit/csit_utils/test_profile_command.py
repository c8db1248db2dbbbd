"""`profile` on sweeps of services whose functions are known, and `convert`, which writes what others read."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from csit_utils.cli import make_app
from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.studies.sweep.analysis.tables import statistics
from tests.unit.planning.labs import TWO_NODES, written
from tests.unit.studies.sweep.synthetic_sweeps import ADVA, growing_to, plain_router, printed_sweep, sweep_of


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps")
    rates = np.linspace(0.1, 3.5, 35)

    def write(name: str, capacity: float, vcpus: int, used: float, delay_ms: float) -> None:
        threads = tuple(growing_to(used / vcpus, capacity) for _ in range(vcpus))
        points = sweep_of(rates, plain_router(capacity, 1, delay_ms), {name: threads}, 0.003, seed=len(name))
        (folder / f"{name}.csv").write_text(csv_text(statistics(points)), encoding="utf-8")

    (folder / "router").mkdir()
    (folder / "router" / "S_statistics.csv").write_text(csv_text(statistics(printed_sweep(ADVA, 0.002, 0))), "utf-8")
    write("one", 1.0, 1, 1.0, 0.2)
    write("two", 1.9, 2, 2.0, 0.2)
    write("three", 1.95, 3, 2.0, 0.2)
    write("firewall", 1.5, 1, 1.0, 0.4)
    write("chain", 1.5, 1, 1.0, 0.6)
    write("path", 9.0, 1, 0.1, 0.1)
    return folder


def run(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(make_app(["profile"]), ["profile", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def rows(*arguments: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--format", "json").stdout.splitlines()]


def test_the_break_point_is_reported_with_its_interval(files: Path) -> None:
    done = run(files / "router" / "S_statistics.csv")
    assert len(done.stdout.splitlines()) == 1 + 6, "three metrics on both sides of the break point"
    pattern = r"router saturates at (\S+) Gbit/s \(95 % interval (\S+) to (\S+)\), by CPU: router uses"
    found = re.match(pattern, done.stderr)
    assert found is not None
    rate, low, high = map(float, found.groups())
    assert rate == pytest.approx(2.5, rel=0.002)
    assert 2.475 < low <= rate <= high < 2.525


def test_the_highest_rate_for_a_loss_and_a_delay(files: Path) -> None:
    (found,) = rows(files / "firewall.csv", "--loss", "1", "--delay", "2")
    assert found["highest_gbps"] == pytest.approx(1.5, rel=0.01), "where the delay jumps from 0.4 ms to 5.5 ms"
    assert found["highest_low_gbps"] < 1.5 < found["highest_high_gbps"] < 1.02 * found["highest_low_gbps"]
    assert found["limited_by"] == "delay"


@pytest.mark.slow
def test_the_best_flavor_and_where_vcpus_stop_to_help(files: Path) -> None:
    flavors = [f"{size}={files / size}.csv" for size in ("three", "one", "two")]
    found = rows(*flavors, "--rate", "1.5", "--loss", "1")
    assert [(each["service"], each["vcpus"], each["carries"], each["scales"]) for each in found] == [
        ("one", 1, False, None),
        ("two", 2, True, True),
        ("three", 3, True, False),
    ]
    assert found[0]["gain"] is None
    for smaller, larger in pairwise(found):
        assert larger["gain"] == pytest.approx(larger["highest_gbps"] / smaller["highest_gbps"] - 1)
    said = run(*flavors, "--rate", "1.5", "--loss", "1").stderr
    assert "best for 1.5 Gbit/s: two, with 2 vCPUs" in said and "does not scale past 2 vCPUs" in said
    assert "none is known to carry 9 Gbit/s" in run(*flavors, "--rate", "9", "--loss", "1").stderr


def test_a_path_without_delay_is_refused(files: Path, tmp_path: Path) -> None:
    (tmp_path / "path.csv").write_text("input_pps,output_pps,input_gbps,output_gbps\n1e6,1e6,0.5,0.5\n", "utf-8")
    with pytest.raises(ConfigError, match=r"path.csv: --path needs delays; column delay_ms is empty"):
        run("--chain", files / "one.csv", "--rate", "1", "--path", tmp_path / "path.csv")


@pytest.mark.slow
def test_a_chain_is_predicted_with_its_path_branches_and_shared_cpus_and_the_error_reported(files: Path) -> None:
    done = run("--chain", f"{files / 'two.csv'},{files / 'firewall.csv'}", "--against", files / "chain.csv")
    assert len(done.stdout.splitlines()) == 1 + 35
    assert "chain from two + firewall (by the bottleneck VNF)" in done.stderr and "throughput 0." in done.stderr
    chain = ["--chain", f"{files / 'two.csv'},{files / 'firewall.csv'}", "--rate", "0.5"]
    (with_path,), (without,) = rows(*chain, "--path", files / "path.csv"), rows(*chain)
    assert (with_path["path"], without["path"]) == ("path", None)
    assert with_path["delay_summed_ms"] == without["delay_predicted_ms"]
    (path,) = rows("--chain", files / "path.csv", "--rate", "0.5")
    alone_ms = path["delay_predicted_ms"]
    assert with_path["delay_predicted_ms"] == pytest.approx(without["delay_predicted_ms"] - alone_ms, rel=0.02)
    fire = files / "firewall.csv"
    branches = ["--chain", f"a={fire},b={fire}", "--shares", "0.5,0.5", "--rate", "2.5"]
    (found,) = rows(*branches)
    assert found["throughput_predicted_gbps"] == pytest.approx(2.5, rel=0.01)
    shared = rows(*branches, "--shared-cpus")
    assert [line["model"] for line in shared] == ["hungriest", "shared_cpus"]
    assert shared[1]["throughput_predicted_gbps"] == pytest.approx(1.5, rel=0.05)


def convert(*arguments: str) -> None:
    make_app(["convert"])(["convert", *arguments], standalone_mode=False)


def test_the_file_is_written_once_and_can_be_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = written(tmp_path, TWO_NODES), tmp_path / "new" / "icx.yaml"
    convert(str(source), "-o", str(output))
    said = capsys.readouterr()
    assert said.out == ""
    assert "nodes.TG.password: not copied" in said.err
    assert "runs use the 2 TG ports cabled to Intel-E810CQ" in said.err
    assert "in the clear" not in said.err + output.read_text(encoding="utf-8")
    assert load_topology(output).metadata.name == "some_2n_testbed1"
    with pytest.raises(ConfigError, match=r"icx\.yaml: exists; --force overwrites it"):
        convert(str(source), "-o", str(output))
    convert(str(source), "-o", str(output), "--force")


def test_standard_output_is_the_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(str(written(tmp_path, TWO_NODES)))
    piped = written(tmp_path, capsys.readouterr().out, "piped.yaml")
    assert load_topology(piped).tg.generator.driver == "trex"
