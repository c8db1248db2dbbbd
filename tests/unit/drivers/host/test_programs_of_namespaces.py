"""Programs of NFs that are about to end, of which others notice before their end can be seen."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.daemons import NO_ENTRY
from resources.libraries.python.drivers.host.programs.namespace_programs import Companions, problems_at_an_end
from resources.libraries.python.model.core_map import CoreMap


def run_inside(_: str, work: Callable[[], None]) -> None:
    """As a fabric does: in a thread that ends."""
    thread = Thread(target=work)
    thread.start()
    thread.join()


@pytest.fixture
def companions(tmp_path: Path) -> Iterator[Companions]:
    cores = cast("CoreMap", SimpleNamespace(cpus=lambda _: tuple(os.sched_getaffinity(0))))
    fabric: Any = SimpleNamespace(run_inside=run_inside)
    groups: Any = SimpleNamespace(entry=lambda _: NO_ENTRY, allows_real_time=lambda _: False)
    with MachineLock(tmp_path) as machine:
        found = Companions("wireguard", cores, fabric, machine, groups)
        try:
            yield found
        finally:
            found.stop()


def test_one_that_hangs_up_and_ends_later_is_named(companions: Companions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.libraries.python.drivers.host.programs.namespace_programs._ENDING_S", 60.0)
    companions.start("nf-1-1", ["sh", "-c", "sleep 0.3; exit 7"])
    companions.start("nf-1-2", ["sleep", "600"])
    assert problems_at_an_end([companions]) == ("wireguard of nf-1-1 ended with 7; it said last: nothing",)
