"""Simulated studies of interference stay within their stated bounds, and those with a broken part do not."""

from collections.abc import Mapping

import pytest

from csit_utils.bench.studies.interference import SHARE_BOUND, crowd_of, is_false_alarm, pairs_of, placement_of, table
from resources.libraries.python.studies.interference.analysis import findings
from resources.libraries.python.studies.interference.analysis.estimates import SampledEstimate
from resources.libraries.python.studies.interference.analysis.verification import PlacementVerification
from resources.libraries.python.studies.interference.colocation_server import SharedServer


@pytest.mark.slow
def test_every_line_is_within_its_bound() -> None:
    lines = table(1)
    assert [line.what for line in lines] == [
        "coverage of normalized throughput",
        "coverage of sensitivity",
        "coverage of aggressiveness",
        "coverage of degradation of all pairs",
        "coverage of share of network I/O, all pairs",
        "coverage of share of network I/O, each pair",
        "wrong order",
        "false alarms",
        "share of network I/O, 3 NFs",
        "share of network I/O, 4 NFs",
        "regret of the placement advised from pairs",
        "verified placement is not the best",
    ]
    for line in lines:
        assert 0 <= line.value <= line.bound, line


@pytest.mark.slow
def test_limits_that_do_not_know_how_many_share_are_outside_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SharedServer.line_share_pps
    monkeypatch.setattr(SharedServer, "line_share_pps", lambda server, company, frame: real(server, company[:2], frame))
    errors = crowd_of(2)
    assert errors
    for each in errors:
        assert 100 * abs(each.measured - each.truth) > SHARE_BOUND


@pytest.mark.slow
def test_without_verification_another_placement_than_the_best_one_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert placement_of(1).regret < 0.005
    monkeypatch.setattr(PlacementVerification, "next_groups", lambda *_: [])
    assert placement_of(1).regret > 0.005


@pytest.mark.slow
def test_orders_that_are_not_tested_are_wrong_and_noise_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Study 2 has small effects."""
    assert not pairs_of(2).wrong and not is_false_alarm(2)

    def by_value(means: Mapping[str, SampledEstimate], _: float) -> frozenset[tuple[str, str]]:
        return frozenset((one, other) for one in means for other in means if means[one].value < means[other].value)

    monkeypatch.setattr(findings, "told_apart", by_value)
    monkeypatch.setattr(findings, "_none_p", lambda *_: 0.0)
    assert pairs_of(2).wrong and is_false_alarm(2)
