"""Finding data threads in a made-up /proc; waiting; rights."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.errors import CsitError


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
