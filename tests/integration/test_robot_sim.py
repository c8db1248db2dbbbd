"""The suites on the simulated testbed: cells that fit, searches, and the command that runs a test again."""

from collections import Counter
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from csit_utils.report.details.capsule import command
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.robot_runs import DENSITY, SIM, csit, results, run_robot, variables

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


def searched_cell(output: Path, *options: str) -> DensityRecord:
    run_robot(output, *SIM, *variables("CELLS:2x1 NF_SIZES:1c"), "--suite", "csc-ndrpdr", *options)
    (row,) = results(output)
    return row


def test_a_search_starts_from_an_earlier_run_unless_it_is_plain_mlrsearch(tmp_path: Path) -> None:
    earlier = searched_cell(tmp_path / "cold")
    assert earlier.search is not None and earlier.ndr is not None
    assert (earlier.search.algorithm, earlier.search.prior, earlier.search.prior_refuted) == ("ladder", None, False)
    assert 0 < earlier.search.aborted_trials < earlier.search.trials
    warm = searched_cell(tmp_path / "warm", "-v", f"PRIORS:{tmp_path / 'cold'}")
    assert warm.search is not None and warm.search.prior is not None
    assert warm.search.prior.test_id == earlier.test_id
    assert warm.search.prior.lower_pps["NDR"] == earlier.ndr.lower_pps
    # No orientation at line rate, at least not before trials have refuted the prior.
    first = next(trial for trial in warm.trials if trial.trial.purpose == "search")
    assert first.trial.load_pps < 1.1 * (earlier.ndr.lower_pps or 0)
    row = searched_cell(tmp_path / "reference", "-v", "SEARCH:reference", "-v", f"PRIORS:{tmp_path / 'cold'}")
    assert row.search is not None
    assert (row.search.algorithm, row.search.prior, row.search.aborted_trials) == ("mlrsearch", None, 0)
    searched = [trial for trial in row.trials if trial.trial.purpose == "search"]
    assert all(trial.trial.abort_loss_ratio is None for trial in searched[: row.search.trials])


def test_rfc_2544_fills_ndr_and_pdr(tmp_path: Path) -> None:
    row = searched_cell(tmp_path, "-v", "SEARCH:rfc2544,width=0.01")
    assert row.search is not None and row.search.algorithm == "rfc2544"
    assert row.ndr is not None
    assert (row.ndr.goal.exceed_ratio, row.ndr.goal.relative_width) == (0, 0.01)
    assert max(trial.trial.duration_s for trial in row.trials) == 60.0


def test_the_command_of_a_test_makes_the_same_plan(tmp_path: Path) -> None:
    options = (*SIM, *variables("CELLS:1x1,2x1 NF_SIZES:1c,0.5c SEARCH:quick"))
    run_robot(tmp_path / "first", *options, "--suite", "csc-mrr", check=False)
    first = next(one for one in results(tmp_path / "first") if one.cell.size_name == "0.5c" and one.cell.nf_chains == 2)
    assert first.rerun is not None
    assert (first.rerun.suite, first.rerun.topology) == ("tests/density/csc-mrr.robot", "topologies/sim.yaml")
    argv = command(first)
    assert argv[:2] == ["./csit", "robot"]
    assert csit("robot", "-d", str(tmp_path / "again"), *argv[2:]).returncode == 0
    (again,) = results(tmp_path / "again")
    assert (again.test_name, again.asked) == (first.test_name, first.asked)
    assert again.plan_digest == first.plan_digest is not None and again.rerun is not None
    assert again.rerun.topology_digest == first.rerun.topology_digest
