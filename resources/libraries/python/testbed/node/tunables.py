"""Asks a node for its settings, changes them, and puts back what was there."""

from collections.abc import Collection
from dataclasses import dataclass

from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.preparation import Files, Preparation, SettingChange, changes
from resources.libraries.python.testbed.node.sent import tunables
from resources.libraries.python.testbed.roles.connection import Connection

_WITHIN_S = 120.0
"""Huge pages are cleared one by one, and memory may have to be compacted for them."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What came of changing or of putting back."""

    done: tuple[SettingChange, ...]
    refused: tuple[str, ...]
    """What the kernel did not let happen, in sentences."""
    short: tuple[str, ...] = ()
    """Settings that got another value than asked for, in sentences."""
    notes: tuple[str, ...] = ()
    """What was done besides."""


def look(connection: Connection, python: str) -> Files:
    """Texts of a node's settings by path; raises as `asking.ask`."""
    return dict(ask(connection, tunables, {"do": "look"}, python=python, root=False)["files"])


def apply(connection: Connection, python: str, wanted: Preparation, by: str) -> Tuned:
    """Change the settings of a node; what was there is on record before the first one is changed.

    Args:
        connection: The way to it.
        python: The node's Python.
        wanted: What to change.
        by: Who does, for others to read.

    Raises:
        CsitError: It cannot be done, such as for want of root's rights.
    """
    value = {setting.path: setting.value for setting in wanted.settings}
    asked = {
        "do": "apply", "by": by, "settings": list(value.items()), "stop_irqbalance": wanted.stop_irqbalance,
    }  # fmt: skip
    said = ask(connection, tunables, asked, python=python, within_s=_WITHIN_S)
    done = [(path, old, new) for path, old, new in said["changed"]]
    wrong = [(path, value[path], new) for path, _, new in done if new != value[path]]
    stopped = ["irqbalance: stopped (it moves interrupts while packets are measured)"] if said["irqbalance"] else []
    failed = ["irqbalance could not be stopped"] if said["irqbalance"] is False else []
    return Tuned(
        tuple(changes(done, wanted.settings)),
        (*_refused(said["refused"]), *failed),
        tuple(f"{each.subject}: asked for {each.old}, got {each.new}" for each in changes(wrong)),
        tuple(stopped),
    )


def restore(connection: Connection, python: str) -> Tuned:
    """Put back what was there before `apply`; nothing where it was not, or where the node has restarted since.

    Raises:
        CsitError: The record cannot be read.
    """
    said = ask(connection, tunables, {"do": "restore"}, python=python, within_s=_WITHIN_S)
    notes = ["irqbalance: started again"] if said["irqbalance"] else []
    if said["restarted"]:
        notes.append("it has restarted since it was prepared, and has the settings of its start")
    done = changes((path, old, new) for path, old, new in said["restored"])
    failed = ["irqbalance could not be started again"] if said["irqbalance"] is False else []
    return Tuned(tuple(done), (*_refused(said["failed_paths"]), *failed), notes=tuple(notes))


def _refused(rows: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """One sentence for settings of a kind that are refused for one reason."""
    kinds = changes((path, "", why) for path, why in rows)
    return tuple(f"{each.subject}: left unchanged: {each.new}" for each in kinds)
