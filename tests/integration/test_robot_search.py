"""The variables SEARCH and PRIORS, on the simulated testbed."""

from pathlib import Path

import pytest

from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.robot_runs import results, run_robot

pytestmark = pytest.mark.parallel

SIM = ("-v", "TOPOLOGY:topologies/sim.yaml", "-v", "CELLS:2x1", "-v", "NF_SIZES:1c", "--suite", "csc-ndrpdr")


def run(output: Path, *options: str) -> DensityRecord:
    run_robot(output, *SIM, *options)
    (row,) = results(output)
    return row


def test_a_search_starts_from_an_earlier_run_unless_it_is_plain_mlrsearch(tmp_path: Path) -> None:
    earlier = run(tmp_path / "cold")
    assert earlier.search is not None and earlier.ndr is not None
    assert (earlier.search.algorithm, earlier.search.prior, earlier.search.prior_refuted) == ("ladder", None, False)
    assert 0 < earlier.search.aborted_trials < earlier.search.trials
    warm = run(tmp_path / "warm", "-v", f"PRIORS:{tmp_path / 'cold'}")
    assert warm.search is not None and warm.search.prior is not None
    assert warm.search.prior.test_id == earlier.test_id
    assert warm.search.prior.lower_pps["NDR"] == earlier.ndr.lower_pps
    # No orientation at line rate, at least not before trials have refuted the prior.
    first = next(trial for trial in warm.trials if trial.trial.purpose == "search")
    assert first.trial.load_pps < 1.1 * (earlier.ndr.lower_pps or 0)
    row = run(tmp_path / "reference", "-v", "SEARCH:reference", "-v", f"PRIORS:{tmp_path / 'cold'}")
    assert row.search is not None
    assert (row.search.algorithm, row.search.prior, row.search.aborted_trials) == ("mlrsearch", None, 0)
    searched = [trial for trial in row.trials if trial.trial.purpose == "search"]
    assert all(trial.trial.abort_loss_ratio is None for trial in searched[: row.search.trials])


def test_rfc_2544_fills_ndr_and_pdr(tmp_path: Path) -> None:
    row = run(tmp_path, "-v", "SEARCH:rfc2544,width=0.01")
    assert row.search is not None and row.search.algorithm == "rfc2544"
    assert row.ndr is not None
    assert (row.ndr.goal.exceed_ratio, row.ndr.goal.relative_width) == (0, 0.01)
    assert max(trial.trial.duration_s for trial in row.trials) == 60.0
