"""`profile` as a person calls it, on sweeps of services whose functions are known."""

import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from csit_utils.cli import make_app
from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.analysis.tables import statistics
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
    threads = {name: (growing_to(0.9, 1.0),) for name in ("router", "firewall")}
    pair = sweep_of(rates, plain_router(1.0, 1, 0.2), threads, 0.003, seed=1)
    (folder / "pair.csv").write_text(csv_text(statistics(pair)), encoding="utf-8")
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


def test_programs_get_raw_numbers(files: Path) -> None:
    table = list(csv.DictReader(io.StringIO(run(files / "router" / "S_statistics.csv", "--format", "csv").stdout)))
    lines = rows(files / "router" / "S_statistics.csv")
    assert [float(row["standard_error"]) for row in table] == [line["standard_error"] for line in lines]
    (loss,) = (line for line in lines if (line["metric"], line["region"]) == ("loss", "nonsat"))
    assert loss["a"] == pytest.approx(8.503e-17, rel=0.05)
    assert loss["b"] == pytest.approx(14.95, rel=0.05)


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


@pytest.mark.slow
def test_a_chain_is_predicted_and_the_error_reported(files: Path) -> None:
    done = run("--chain", f"{files / 'two.csv'},{files / 'firewall.csv'}", "--against", files / "chain.csv")
    assert len(done.stdout.splitlines()) == 1 + 35
    assert "chain from two + firewall (by the bottleneck VNF)" in done.stderr and "throughput 0." in done.stderr


@pytest.mark.slow
def test_the_path_of_a_chain_is_taken_off_the_delay_of_its_parts(files: Path) -> None:
    chain = ["--chain", f"{files / 'two.csv'},{files / 'firewall.csv'}", "--rate", "0.5"]
    (with_path,), (without,) = rows(*chain, "--path", files / "path.csv"), rows(*chain)
    assert (with_path["path"], without["path"]) == ("path", None)
    assert with_path["delay_summed_ms"] == without["delay_predicted_ms"]
    (path,) = rows("--chain", files / "path.csv", "--rate", "0.5")
    alone_ms = path["delay_predicted_ms"]
    assert with_path["delay_predicted_ms"] == pytest.approx(without["delay_predicted_ms"] - alone_ms, rel=0.02)


def test_a_path_without_delay_is_refused(files: Path, tmp_path: Path) -> None:
    (tmp_path / "path.csv").write_text("input_pps,output_pps,input_gbps,output_gbps\n1e6,1e6,0.5,0.5\n", "utf-8")
    with pytest.raises(ConfigError, match=r"path.csv: --path needs delays; column delay_ms is empty"):
        run("--chain", files / "one.csv", "--rate", "1", "--path", tmp_path / "path.csv")


@pytest.mark.slow
def test_a_chain_is_predicted_at_a_rate_for_branches_and_shared_cpus(files: Path) -> None:
    fire = files / "firewall.csv"
    branches = ["--chain", f"a={fire},b={fire}", "--shares", "0.5,0.5", "--rate", "2.5"]
    (found,) = rows(*branches)
    assert found["throughput_predicted_gbps"] == pytest.approx(2.5, rel=0.01)
    shared = rows(*branches, "--shared-cpus")
    assert [line["model"] for line in shared] == ["hungriest", "shared_cpus"]
    assert shared[1]["throughput_predicted_gbps"] == pytest.approx(1.5, rel=0.05)


@pytest.mark.slow
def test_vcpus_that_no_column_shows_can_be_said(files: Path, tmp_path: Path) -> None:
    table = pd.read_csv(files / "three.csv")
    sums = table[[name for name in table.columns if "_vcpu" not in name]]
    sums.to_csv(tmp_path / "sums.csv", index=False)
    with pytest.raises(ConfigError, match=r"three used 2\d\d % of a CPU, but has 1 vCPUs; give --vcpus three=N"):
        run(tmp_path / "sums.csv")
    for vcpus in ("three=3", "3"):
        assert "uses no more than 2.00 of 3 CPUs" in run(tmp_path / "sums.csv", "--vcpus", vcpus).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give an S_statistics CSV or --chain"),
        (("nowhere.csv",), "nowhere.csv: cannot be read"),
        (("{files}/one.csv", "{files}/one.csv"), "two files are named 'one'"),
        (("{files}/one.csv", "--rate", "1"), "--rate 1: needs a bound, --loss or --delay"),
        (("{files}/one.csv", "--loss", "101"), "--loss 101: out of range"),
        (("{files}/one.csv", "--vcpus", "two"), "--vcpus two: give N, VNF=N, SERVICE=N or SERVICE/VNF=N"),
        (("{files}/one.csv", "--vcpus", "nat=2"), "--vcpus nat=2: no such VNF; choose from one"),
        (("{files}/pair.csv", "--vcpus", "pair=2"), "it is a service of 2 VNFs; give pair/firewall=N or pair/router=N"),
        (("{files}/one.csv", "--against", "x.csv"), "--against, --shares, --path and --shared-cpus need --chain"),
        (("--chain", "{files}/one.csv"), "--chain needs either --against (a measured chain) or --rate"),
        (("--chain", "{files}/one.csv", "--rate", "1", "--shares", "1,1"), "--shares 1,1: give 1 numbers above 0"),
        (("--chain", "{files}/one.csv", "--rate", "1", "--loss", "1"), "--chain cannot be combined with"),
    ],
)
def test_a_wrong_question_gets_one_sentence(files: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run(*(argument.format(files=files) for argument in arguments))
    assert message in str(caught.value)
