"""What began to fail or to pass, from one run to the next."""

from typing import Any

from csit_utils.analysis.causes import outcomes
from csit_utils.dataset.rows import TestRow
from tests.unit.csit_utils.histories import row


def made(chains: int, rate_pps: float | None = 1e6, **changes: Any) -> TestRow:
    """A test of a cell with so many services."""
    return row(rate_pps, cell=("CSC", chains, 1), **changes)


def test_what_is_new_in_how_tests_end() -> None:
    before = [made(1), made(2), made(3, None), made(4), made(5, None), made(6)]
    gone = made(4, None, quarantined="vswitch: the process is gone")
    after = [made(1), made(2, None), made(3), gone, made(5, None), made(7)]
    found = outcomes(before, after)
    assert [one.nf_chains for one in found.failing] == [2]
    assert [one.nf_chains for one in found.passing] == [3]
    assert [one.nf_chains for one in found.quarantined] == [4]


def test_a_cell_that_stays_in_quarantine_is_not_reported_again_and_a_skipped_test_did_not_fail() -> None:
    kept_out = made(1, None, status="SKIP", message="quarantined: CSC 1x1: vswitch: the process is gone")
    assert outcomes([kept_out], [kept_out]).quarantined == ()
    found = outcomes([made(1), made(2)], [kept_out, made(2, None, status="SKIP", message="not asked for")])
    assert [one.nf_chains for one in found.quarantined] == [1]
    assert found.failing == ()


def test_the_last_of_two_attempts_counts() -> None:
    assert outcomes([made(1)], [made(1, None), made(1)]).failing == ()
