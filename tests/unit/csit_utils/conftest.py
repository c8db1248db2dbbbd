"""Approved wording of commands and pages."""

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.csit_utils.approved import Approved


@pytest.fixture
def approved(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """What a text has to equal; `./csit test -e unit -- --snapshot-update` approves what it is now."""
    return snapshot.use_extension(Approved)
