"""Data threads in a made-up /proc, also of ports with several queues; affinity of observers; rights."""

import os
import sys
import threading
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.data_threads import affinity, find_all
from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on, took, where
from resources.libraries.python.drivers.host.nics.ethtool import Channels
from resources.libraries.python.drivers.host.ownership import preflight
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.testbed.kinds.factory import refuse_without_basics


def proc(root: Path, names: dict[int, str]) -> Path:
    for thread, name in names.items():
        (root / str(thread)).mkdir()
        (root / str(thread) / "comm").write_text(f"{name}\n")
    (root / "self").mkdir()
    return root


def test_threads_are_found_by_port(tmp_path: Path) -> None:
    root = proc(tmp_path, {7: "napi/csv1p1-8193", 8: "napi/csv1p10-8194", 9: "bash", 10: "napi/other-1"})
    assert data_threads.find(["csv1p1", "csv1p10"], root) == {"csv1p1": 7, "csv1p10": 8}


def test_names_that_old_kernels_cut_are_found(tmp_path: Path) -> None:
    root = proc(tmp_path, {7: "napi/csv10x10i1", 8: "napi/csv1x1i2-8"})
    assert data_threads.find(["csv10x10i1", "csv1x1i2"], root) == {"csv10x10i1": 7, "csv1x1i2": 8}


def test_hidden_threads_are_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_threads, "_DEADLINE_S", 0.0)
    with pytest.raises(Unsupported, match="none for csv1p1, csv1p2, csv1p3 and 1 more in /proc"):
        data_threads.find([f"csv1p{number}" for number in range(1, 5)], proc(tmp_path, {}))


def test_a_port_of_the_same_name_elsewhere_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match="two kernel threads"):
        data_threads.find(["csv1p1"], proc(tmp_path, {7: "napi/csv1p1-8193", 8: "napi/csv1p1-8194"}))


def test_a_thread_that_is_still_ending_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that was removed just now may have had the name."""
    root = proc(tmp_path, {7: "napi/csv1p1-8193", 8: "napi/csv1p1-8194"})
    looks = []

    def look(thread: int, at: Path) -> str:
        looks.append(thread)
        if len(looks) == 3:
            (root / "7" / "comm").write_text("gone\n")
        return (at / str(thread) / "comm").read_text().strip()

    monkeypatch.setattr(data_threads, "name", look)
    assert data_threads.find(["csv1p1"], root) == {"csv1p1": 8}


def test_missing_capabilities_are_named() -> None:
    assert preflight._missing_capabilities("Name:\tx\nCapEff:\t0000000000000000\n") == [
        "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN", "CAP_SYS_NICE",
    ]  # fmt: skip
    assert preflight._missing_capabilities("CapEff:\t000001ffffdfffff\n") == ["CAP_SYS_ADMIN"]
    assert preflight._missing_capabilities("CapEff:\t000001ffffffffff\n") == []


def test_a_user_without_rights_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_missing_capabilities", lambda _: ["CAP_NET_ADMIN"])
    (problem,) = preflight.check()
    assert isinstance(problem, PreflightProblem)
    assert str(problem).startswith("CAP_NET_ADMIN missing for ")
    assert "run as root" in str(problem)


def test_linux_is_missing_before_its_rights_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(preflight, "_missing_rights", lambda: pytest.fail("there is no /proc"))
    needs = r"^network namespaces need Linux, this is darwin; use topologies/sim\.yaml here$"
    with pytest.raises(Unsupported, match=needs):
        refuse_without_basics(load_topology(PROJECT / "topologies" / "local.yaml"))
    refuse_without_basics(load_topology(PROJECT / "topologies" / "sim.yaml"))


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


def test_a_thread_stays_on_its_cpu_and_others_do_not_follow() -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend([stay_on(cpu), os.sched_getaffinity(0)]))
    thread.start()
    thread.join()
    assert found == [True, {cpu}]
    assert os.sched_getaffinity(0) == before


def test_a_cpu_that_is_not_there_leaves_the_thread_free() -> None:
    before = os.sched_getaffinity(0)
    assert not stay_on(1 << 14)
    assert not stay_on(None)
    assert os.sched_getaffinity(0) == before


def test_place_and_time_are_words() -> None:
    assert where(3) == "on CPU 3"
    assert where(None) == "on any CPU"
    assert took(0.002, 4.0) == "0.05 % of a CPU's time"
