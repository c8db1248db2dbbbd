"""Putting back the settings that a machine had before it was prepared."""

from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.testbed.maintenance.machines import MaintainedMachine
from resources.libraries.python.testbed.node import tunables
from resources.libraries.python.testbed.node.facts import Leftovers
from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.sent import leftovers


def is_prepared(place: MaintainedMachine) -> bool:
    """Whether a machine has settings to put back.

    Raises:
        InUse: It has, and a run is alive there that began with them.
    """
    left = Leftovers.model_validate(ask(place.connection, leftovers, {}, python=place.python, root=False))
    if left.prepared and left.in_use:
        raise InUse(f"{place.name}: a run is alive there; its settings can be put back after its end, or with --force")
    return left.prepared is not None


def restore(place: MaintainedMachine) -> tuple[str, ...]:
    """Put the settings of a machine back; a sentence for each.

    Raises:
        CsitError: Some could not be put back; the text says which. They stay on record.
    """
    done = tunables.restore(place.connection, place.python)
    if done.refused:
        raise CsitError(f"{place.name}: {'; '.join(done.refused)}")
    return (*(f"{place.name}: {each}" for each in done.done), *(f"{place.name}: {note}" for note in done.notes))
