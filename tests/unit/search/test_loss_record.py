"""Loss trials from search to record, on the simulated testbed."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from csit_utils.report.details.loss_patterns import loss_notes
from resources.libraries.python.driver_registry import generators
from resources.libraries.python.studies.density import run
from resources.libraries.python.studies.density.run import DensityTest
from tests.unit.search.density_tests import deployed, planted

LOADS = ["NDR", "PDR", "OVERLOAD"]


@pytest.fixture
def searched() -> DensityTest:
    """A cell with its throughput, packets of which are dropped at random while losses are counted."""
    test = deployed(planted(packet_losses={"random_ratio": 0.01}), searched="quick")
    test.search(("NDR", "PDR"))
    return test


@pytest.mark.slow
def test_every_load_has_its_losses_and_a_sentence(searched: DensityTest) -> None:
    before = len(searched.draft.trials)
    said = searched.losses(0.1)
    draft = searched.draft
    searched.remove()
    assert [row.label for row in draft.losses] == LOADS == list(draft.loss_patterns)
    assert " at random" in draft.loss_patterns["NDR"] and draft.loss_patterns["NDR"] in said[0] + said[1]
    assert [trial.trial.purpose for trial in draft.trials[before:]] == ["losses"] * 3
    assert not any(trial.losses for trial in draft.trials)  # the record has them once
    assert draft.losses[2].load_pps == pytest.approx(
        min(1.2 * draft.pdr.lower_pps, searched._highest_loads().search_pps)
    )


def test_a_generator_that_numbers_no_packets_leaves_the_reason_and_the_other_results(searched: DensityTest) -> None:
    counter = replace(generators()["sim"], numbers_packets=False, label="TRex")
    with patch.object(run, "generators", lambda: {"sim": counter}):
        said = searched.losses(0.1)
    draft = searched.draft
    searched.remove()
    reason = "not measured: TRex numbers no packets, so it cannot count losses one by one"
    assert draft.loss_patterns == dict.fromkeys(LOADS, reason) and not draft.losses
    assert said == tuple(f"{load} {reason}" for load in LOADS)
    assert loss_notes(draft.losses, draft.loss_patterns) == tuple(f"{load}: {reason}" for load in LOADS)
    assert draft.ndr is not None
