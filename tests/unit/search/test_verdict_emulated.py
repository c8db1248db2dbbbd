"""Numbers of emulated virtual machines say that they are."""

import pytest

from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.search.findings.verdict import judge
from tests.unit.search.wired_plans import planned

WHY = "no guest boots with KVM here: it hangs for 20 s"


def test_emulated_guests_are_a_finding_with_the_reason() -> None:
    verdict = judge(planned("VSC", 1, 1), facts={"functions": {"accelerator": "tcg", "why": WHY}})
    assert VerdictKind.EMULATED in verdict.kinds
    assert f"virtual machines ran in software emulation (TCG): {WHY}" in verdict.evidence


@pytest.mark.parametrize("facts", [{}, {"functions": {}}, {"functions": {"accelerator": "kvm", "why": "it boots"}}])
def test_others_are_not(facts: dict[str, dict[str, str]]) -> None:
    assert VerdictKind.EMULATED not in judge(planned("VSC", 1, 1), facts=facts).kinds
