"""Finding data threads in a made-up /proc; waiting; rights."""

import sys
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu import data_threads
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
