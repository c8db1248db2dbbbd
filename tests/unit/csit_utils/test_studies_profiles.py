"""The table of errors of profiles: within its bounds for our profiles, beyond them for sweeps of another router."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from csit_utils.bench.studies import profiles as studies_profiles
from csit_utils.bench.studies.known_truth import BoundedQuantity
from csit_utils.bench.studies.profiles import PublishedFit, PublishedRouter, printed_sweep
from resources.libraries.python.studies.sweep.model.profile import ProfileMetric
from resources.libraries.python.studies.sweep.model.record import SweepPoint


def beyond(lines: Sequence[BoundedQuantity]) -> set[str]:
    return {line.what for line in lines if line.value > line.bound}


@pytest.mark.slow
def test_profiles_recover_the_printed_tables_within_the_promised_bounds() -> None:
    lines = studies_profiles.table(5)  # of one study, two of twelve regions would be beyond
    assert len(lines) == 2 * (4 + len(ProfileMetric))
    assert {line.unit for line in lines} == {"steps", "%"}
    assert not beyond(lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "found"),
    [
        ("break-point", {"profile: break-point"}),
        ("slope", {"profile: coefficients, 95th percentile", "profile: predicted delay"}),
        ("family", {"profile: regions with a function of another family", "profile: predicted delay"}),
    ],
)
def test_sweeps_of_another_router_are_beyond_the_bounds(
    monkeypatch: pytest.MonkeyPatch, other: str, found: set[str]
) -> None:
    def changed(testbed: PublishedRouter) -> PublishedRouter:
        below, above = testbed.metrics[ProfileMetric.DELAY]
        match other:
            case "break-point":
                return replace(testbed, break_point=0.9 * testbed.break_point)
            case "slope":
                above = PublishedFit(above.function, {**above.coefficients, "a": 3 * above.coefficients["a"]})
            case _:
                above = PublishedFit("power", {"a": 5.0, "b": 3.0})
        return replace(testbed, metrics={**testbed.metrics, ProfileMetric.DELAY: (below, above)})

    def sweep(testbed: PublishedRouter, noise: float, seed: int, loads: int) -> tuple[SweepPoint, ...]:
        return printed_sweep(changed(testbed), noise, seed, loads)

    monkeypatch.setattr(studies_profiles, "printed_sweep", sweep)
    assert found <= beyond(studies_profiles.table(1))
