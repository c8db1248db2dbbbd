"""The suites on the simulated testbed: all cells that fit, each with a valid record that says simulated."""

from collections import Counter
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from resources.libraries.python.paths import PROJECT
from tests.integration.robot_runs import DENSITY, SIM, results, run_robot

pytestmark = pytest.mark.parallel


def test_each_suite_runs_19_cells_with_1c_and_23_with_half_a_core_and_the_tags_of_csit(tmp_path: Path) -> None:
    """All density suites on the simulated 28-core socket."""
    run_robot(tmp_path, *SIM, "-v", "SEARCH:quick")
    count = Counter((r.cell.service_type, r.asked.test_type, r.cell.size_name) for r in results(tmp_path))
    assert set(count.values()) == {19, 23}
    assert {key: value for key, value in count.items() if key[2] == "1c" and value != 19} == {}
    assert len(count) == 3 * 3 * 2
    tests = list(ExecutionResult(tmp_path / "output.xml").suite.all_tests)
    assert len(tests) == 3 * 3 * (19 + 23)
    assert {"NF_DENSITY", "CSC", "CHAIN", "1R1C", "64B", "1C"} <= set(tests[0].tags)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--include", "2R1CANDCSCAND64BANDMRR"], {"CSC 2R1C"}),
        (["--include", "2R1C", "--include", "1R2C", "--suite", "csp-mrr"], {"CSP 2R1C", "CSP 1R2C"}),
        (["--exclude", "CSCORVSC", "-v", "CELLS:1x1-2", "--suite", "*-mrr"], {"CSP 1R1C", "CSP 1R2C"}),
        (["-v", "CELLS:3x3,5x1", "--suite", "csc-mrr"], {"CSC 3R3C", "CSC 5R1C"}),
    ],
)
def test_tags_and_variables_choose_cells(tmp_path: Path, options: list[str], expected: set[str]) -> None:
    run_robot(tmp_path, *SIM, "-v", "NF_SIZES:1c", *options)
    assert {f"{row.cell.service_type} {row.cell.locator}" for row in results(tmp_path)} == expected


def test_each_number_of_flows_is_a_test(tmp_path: Path) -> None:
    text = (PROJECT / "topologies" / "sim.yaml").read_text(encoding="utf-8")
    topology = tmp_path / "cached.yaml"
    topology.write_text(text.replace("  seed: 1", "  seed: 1\n  flow_cache: {entries: 8192}"), encoding="utf-8")
    options = ("-v", f"TOPOLOGY:{topology}", "-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "-v", "FLOWS:1,1000000")
    run_robot(tmp_path / "out", *options, sources=[DENSITY / "csp-mrr.robot"])
    few, many = results(tmp_path / "out")
    assert (few.asked.frame.name, few.asked.frame.flows) == ("64B-1f", 1)
    assert (many.asked.frame.name, many.asked.frame.flows) == ("64B-1000000f", 1_000_000)
    assert {"64B", "1000000_FLOWS"} <= set(many.tags)
    assert few.mrr is not None and many.mrr is not None
    assert many.mrr.mean_pps / few.mrr.mean_pps == pytest.approx(0.5, rel=0.05)
    assert many.rerun is not None and many.rerun.variables["FLOWS"] == "1,1000000"
    by_tag = ("-v", f"TOPOLOGY:{topology}", "--include", "1R1CANDNF_1CAND1000_FLOWS")
    done = run_robot(tmp_path / "again", *by_tag, "--suite", "csp-mrr", check=False)
    assert [row.asked.frame.name for row in results(tmp_path / "again")] == ["64B-1000f"], done.stdout + done.stderr
