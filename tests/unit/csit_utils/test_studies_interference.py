"""Simulated studies of interference stay within their stated bounds, and a guarantee that is none does not."""

import pytest

from csit_utils.bench.studies.interference import SHARE_BOUND, crowd_of, pairs_of, table
from resources.libraries.python.studies.interference.colocation_server import SharedServer


@pytest.mark.slow
def test_every_line_is_within_its_bound() -> None:
    lines = table(1)
    assert [line.what for line in lines] == [
        "share of network I/O, 2 NFs",
        "share of network I/O, 3 NFs",
        "share of network I/O, 4 NFs",
        "sensitivity (row mean)",
        "regret of the advised placement",
    ]
    for line in lines[:-1]:
        assert 0 <= line.value <= line.bound, line
    assert 0 <= pairs_of(1).regret < 0.05, "of a single study; the bound of the last line is one of a mean"


@pytest.mark.slow
def test_limits_that_do_not_know_how_many_share_are_outside_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SharedServer.line_share_pps
    monkeypatch.setattr(SharedServer, "line_share_pps", lambda server, company, frame: real(server, company[:2], frame))
    for each in crowd_of(2):
        assert 100 * abs(each.measured - each.truth) > SHARE_BOUND
