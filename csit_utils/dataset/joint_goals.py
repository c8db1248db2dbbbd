"""Goals of tests of other tools, joined where a file has a part of the figures of a cell.

FD.io CSIT and NFVbench measure NDR and MRR by different tests, each of which states its own definitions only. Results
with different `TestRow.goals` never share a matrix, and these do not differ.
"""

from collections import defaultdict
from collections.abc import Iterable

from csit_utils.dataset.goal_words import one_way
from csit_utils.dataset.rows import OWN, TestRow

COLUMNS = ("origin", "world", "simulated", "testbed", "drivers", "frame", "goals")
"""Columns that rows need for this."""


def join_goals(rows: Iterable[TestRow]) -> None:
    """Give tests of other tools the goals of all tests of their system and frame, unless one has two definitions."""
    alike: dict[tuple[object, ...], list[TestRow]] = defaultdict(list)
    for row in rows:
        if row.origin != OWN and row.goals:
            alike[*(getattr(row, name) for name in COLUMNS[:-1]), one_way(row.goals)].append(row)
    for own in alike.values():
        parts = {part for goals in {row.goals or "" for row in own} for part in goals.split("; ")}
        names = {part.partition(" ")[0]: part for part in parts}
        if len(names) == len(parts):
            ordered = sorted(names, key=lambda name: (name.islower(), name == "MRR", name))
            joined = "; ".join(names[name] for name in ordered)
            for row in own:
                object.__setattr__(row, "goals", joined)  # rows that have some columns cannot be made anew
