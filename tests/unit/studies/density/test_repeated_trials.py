"""A cell that decays, or runs in two bands, says what changes together with its rate; a steady one repeats nothing."""

import pytest

from resources.libraries.python.model.result import VerdictKind
from tests.unit.studies.density.simulated import measured

pytestmark = pytest.mark.parametrize("seed", range(3))


def findings(seed: int, **planted: object) -> dict[VerdictKind, str]:
    """What the verdict says of repeated trials, by kind."""
    draft = measured(searched="ladder", seed=seed, **planted).draft
    assert any(each.trial.purpose == "repeated" for each in draft.trials) is bool(planted)
    return {each.kind: each.text for each in draft.verdict.findings if "further trials at" in each.text}


def test_a_decay_names_the_memory_that_leaks_and_nothing_where_no_reading_rises(seed: int) -> None:
    found = findings(seed, model="sharp", decay={"per_minute": 0.05, "leak_mib": 100})
    assert "memory of nf-1-1 from" in found[VerdictKind.DECAYING]
    assert "memory" not in findings(seed, model="sharp", decay={"per_minute": 0.05})[VerdictKind.DECAYING]


def test_waiting_for_a_cpu_is_named_where_it_makes_the_lower_band_and_a_steady_cell_repeats_nothing(seed: int) -> None:
    found = findings(seed, model="two_band", low_band=0.9, low_band_share=0.3)
    assert "waits for its CPU from 0 to 100 ms/s" in found[VerdictKind.UNSTABLE]
    assert not findings(seed)
