"""Deletion of connections by the routers with nftables."""

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.functions.nftables.driver import NftablesRouters
from resources.libraries.python.drivers.host.links import conntrack
from resources.libraries.python.model.measurements.counters import Deletion
from resources.libraries.python.model.request.kinds import NfKind

OWNERS = ("nf-1-1", "nf-2-1")


class Tables:
    """Namespaces whose tables packets on their way fill again after so many deletions."""

    def __init__(self, late: int) -> None:
        self.late, self.here = late, ""
        self.deletions = dict.fromkeys(OWNERS, 0)
        self.threads = set[int]()

    def run_inside_each(self, owners: Sequence[str], work: Callable[[], Any]) -> dict[str, Any]:
        found = {}
        for self.here in owners:
            found[self.here] = work()
        return found

    def delete(self) -> Deletion:
        self.threads.add(threading.get_ident())
        self.deletions[self.here] += 1
        begun_ns = self.deletions[self.here]
        return Deletion(entries=500, left=3, began_ns=begun_ns, ended_ns=begun_ns + 10)

    def settled(self) -> int:
        return 6 if self.here == "nf-1-1" and self.deletions["nf-1-1"] <= self.late else 0


@pytest.mark.parametrize(("late", "deletions", "left"), [(0, 1, 0), (1, 2, 0), (9, 4, 6)])
def test_entries_of_packets_on_their_way_are_deleted_again(
    late: int, deletions: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: Any = Tables(late)
    monkeypatch.setattr(conntrack, "delete", tables.delete)
    monkeypatch.setattr(conntrack, "settled", tables.settled)
    functions: Any = [SimpleNamespace(name=name, kind=NfKind("linux_nat")) for name in OWNERS]
    node: Any = SimpleNamespace(settings=lambda _: None)
    found = NftablesRouters(node, cast(Any, SimpleNamespace(fabric=tables)), functions).delete_connections()
    assert tables.deletions == dict.fromkeys(OWNERS, deletions)
    assert len(tables.threads) == 1, "threads that wait for the kernel's lock use a CPU each"
    assert {owner: (row.entries, row.left, row.began_ns, row.ended_ns) for owner, row in found.items()} == {
        "nf-1-1": (500, left, 1, 11),
        "nf-2-1": (500, 0, 1, 11),
    }
