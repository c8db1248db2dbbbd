"""Deletion of connections by the routers with nftables."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.functions.nftables.driver import NftablesRouters
from resources.libraries.python.drivers.host.links import conntrack
from resources.libraries.python.model.request.kinds import NfKind

OWNERS = ("nf-1-1", "nf-2-1")


class Tables:
    """Namespaces whose tables packets on their way fill again after so many deletions."""

    def __init__(self, late: int) -> None:
        self.late, self.deletions, self.here = late, 0, ""

    def run_inside_each(self, owners: Sequence[str], work: Callable[[], Any]) -> dict[str, Any]:
        found = {}
        for self.here in owners:
            found[self.here] = work()
        return found

    def delete_all(self, deleters: dict[str, Any]) -> dict[str, tuple[int, int]]:
        self.deletions += 1
        return dict.fromkeys(deleters, (self.deletions, self.deletions + 10))

    def settled(self) -> int:
        return 6 if self.here == "nf-1-1" and self.deletions <= self.late else 0


@pytest.mark.parametrize(("late", "deletions", "left"), [(0, 1, 0), (1, 2, 0), (9, 4, 6)])
def test_entries_of_packets_on_their_way_are_deleted_again(
    late: int, deletions: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: Any = Tables(late)
    monkeypatch.setattr(conntrack, "Deleter", lambda: nullcontext(SimpleNamespace(entries=500)))
    monkeypatch.setattr(conntrack, "delete_all", tables.delete_all)
    monkeypatch.setattr(conntrack, "settled", tables.settled)
    functions: Any = [SimpleNamespace(name=name, kind=NfKind("linux_nat")) for name in OWNERS]
    found = NftablesRouters(functions, tables, ruleset=tables).delete_connections()
    assert tables.deletions == deletions
    assert {owner: (row.entries, row.left, row.began_ns, row.ended_ns) for owner, row in found.items()} == {
        "nf-1-1": (500, left, 1, 11),
        "nf-2-1": (500, 0, 1, 11),
    }
