"""NFs of several kinds: those that account for their work do, and others do not."""

from typing import get_type_hints

import pytest

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.functions.mixed_kinds import MixedKinds, OneKind
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.disturbance import Disturbance, PartEvent
from resources.libraries.python.model.measurements.node_costs import NodeCost


class Counting(OneKind):
    """NFs of a kind that keeps accounts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.begun = 0

    def begin_accounts(self) -> tuple[str, ...]:
        self.begun += 1
        return (self._name,)

    def accounts(self) -> tuple[NodeCost, ...]:
        return (NodeCost(part=self._name, node="ip4-lookup", packets=self.begun),)


def test_accounts_are_those_of_the_kinds_that_keep_some() -> None:
    first, second = Counting("nf-1-1"), Counting("nf-1-3")
    several = MixedKinds((first, OneKind(), second))
    assert several.begin_accounts() == ("nf-1-1", "nf-1-3")
    assert [(row.part, row.packets) for row in several.accounts()] == [("nf-1-1", 1), ("nf-1-3", 1)]


def test_an_event_that_no_kind_can_have_is_refused() -> None:
    """Else it would not happen, and a study would name another reason."""
    several = MixedKinds((OneKind(),), {"csn1x1i1": "nf-1-1"})
    coming = Disturbance(targets=("nf-1-1",), event=PartEvent.PAUSE, after_s=0.0, hold_s=0.1)
    with pytest.raises(Unsupported, match="pause is not possible for nf-1-1 with its driver"):
        several.disturb(coming)
    several.disturb(coming.model_copy(update={"targets": ("nf-2-1",)}))  # on another node
    assert several.disturbed() == ()


def test_drivers_that_declare_events_can_be_disturbed() -> None:
    """By the declaration a study refuses an event before anything starts."""
    drivers = {**driver_registry.functions(), **driver_registry.vswitches()}
    for name, driver in drivers.items():
        if driver.factory is not None:
            made = driver_registry.load(driver.factory)
            kind = made if isinstance(made, type) else get_type_hints(made)["return"]
            assert issubclass(kind, Disturbed) or not getattr(driver, "events", ()), name
