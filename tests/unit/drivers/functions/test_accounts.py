"""NFs of several kinds, and within limits: those that account for their work do, and others do not."""

from typing import Any, cast

from resources.libraries.python.drivers.functions.mixed_kinds import ConfinedFunctions, MixedKinds
from resources.libraries.python.testbed.roles.part import Accounting


class Counting:
    """NFs of a kind that keeps accounts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.begun = 0

    def begin_accounts(self) -> None:
        self.begun += 1

    def accounts(self) -> dict[str, str]:
        return {self._name: f"since {self.begun}"}


def test_accounts_are_those_of_the_kinds_that_keep_some() -> None:
    first, second = Counting("nf-1-1"), Counting("nf-1-3")
    several = MixedKinds(cast(Any, (first, object(), second)))
    confined = ConfinedFunctions(cast(Any, several), cast(Any, None))
    for each in (several, confined):
        assert isinstance(each, Accounting)
        each.begin_accounts()
    assert (first.begun, second.begun) == (2, 2)
    assert several.accounts() == confined.accounts() == {"nf-1-1": "since 2", "nf-1-3": "since 2"}
    other = ConfinedFunctions(cast(Any, object()), cast(Any, None))
    other.begin_accounts()
    assert other.accounts() == {}
