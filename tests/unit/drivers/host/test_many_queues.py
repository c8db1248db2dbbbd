"""Threads of ports with several queues."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu.data_threads import affinity, find_all
from resources.libraries.python.drivers.host.nics.ethtool import Channels
from resources.libraries.python.errors import Unsupported


def test_all_threads_of_a_port_are_found_by_either_name(tmp_path: Path) -> None:
    names = {
        7: "napi/csv1p1-8193", 8: "napi/csv1p1-8194", 9: "napi/enp65s0-8195", 10: "napi/csv1p11-1", 11: "bash",
        12: "napi/enp66s0f0n", 13: "napi/enp66s0f1n",  # as kernels before 5.17 show them
    }  # fmt: skip
    for thread, name in names.items():
        (tmp_path / str(thread)).mkdir()
        (tmp_path / str(thread) / "comm").write_text(f"{name}\n")
    at_home = {"csv1p1": "enp64s0", "csv1p2": "enp65s0", "csv1p3": "enp66s0f0np0", "csv1p4": "enp66s0f1np1"}
    found = find_all(at_home, tmp_path)
    expected = {"csv1p1": [7, 8], "csv1p2": [9], "csv1p3": [12], "csv1p4": [13]}
    assert {name: sorted(row) for name, row in found.items()} == expected
    with pytest.raises(Unsupported, match=r"none for csv9p9 \(enp9s0\) in /proc"):
        find_all({"csv1p1": "enp64s0", "csv9p9": "enp9s0"}, tmp_path)


def test_one_thread_that_is_gone_is_the_loss_of_its_port() -> None:
    gone = 2**22 + 1  # above the highest process id
    assert affinity({"csv1p1": [gone, 0], "csv1p2": []}) == {"csv1p1": frozenset(), "csv1p2": frozenset()}


@pytest.mark.parametrize(
    ("queues", "fewest"),
    [((0, 0, 8), (0, 0, 1)), ((4, 4, 0), (1, 1, 0)), ((1, 1, 0), (1, 1, 0)), ((0, 0, 0), (0, 0, 0))],
)
def test_one_queue_is_asked_for(queues: tuple[int, int, int], fewest: tuple[int, int, int]) -> None:
    wanted = Channels(*queues, 8, 8, 8, 1).one_of_each
    assert (wanted.rx, wanted.tx, wanted.combined) == fewest
    assert (wanted.most_rx, wanted.other) == (8, 1)
