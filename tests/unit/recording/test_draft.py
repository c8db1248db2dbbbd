"""The record of a test is closed with how it ended."""

import pytest

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.draft import Draft
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.unit.csit_utils.builders import result


@pytest.mark.parametrize(("skipped", "kind"), [(True, VerdictKind.SKIPPED), (False, VerdictKind.FAILED)])
def test_the_verdict_of_a_skipped_test_is_not_failed(skipped: bool, kind: VerdictKind) -> None:
    draft = Draft(DensityRecord, load_topology(PROJECT / "topologies" / "sim.yaml"), result().environment)
    verdict = draft._verdict(passed=False, skipped=skipped, message="needs 33 cores")
    assert verdict is not None
    assert (verdict.kinds, verdict.evidence) == ((kind,), ("needs 33 cores",))
