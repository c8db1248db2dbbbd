"""The table of connections of a namespace as the kernel's files have it."""

import errno
import socket
import struct
from pathlib import Path
from typing import Self

import pytest

from resources.libraries.python.drivers.host.links import conntrack
from resources.libraries.python.errors import CsitError, Unsupported

STATISTICS = """\
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error
00000010  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000000a 00000001 00000000 00000000
00000010  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000006 00000000 000000ff 00000000
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    values = {"count": 16, "max": 1000, "buckets": 4096, "udp_timeout": 30, "udp_timeout_stream": 120}
    for name, value in values.items():
        (tmp_path / f"nf_conntrack_{name}").write_text(f"{value}\n")
    (tmp_path / "statistics").write_text(STATISTICS)
    monkeypatch.setattr(conntrack, "_SETTINGS", tmp_path)
    monkeypatch.setattr(conntrack, "_STATISTICS", tmp_path / "statistics")
    return tmp_path


def test_a_table_has_its_size_and_the_counters_of_all_cpus(settings: Path) -> None:
    found = conntrack.table()
    assert (found.entries, found.limit, found.buckets, found.timeout_s) == (16, 1000, 4096, 30)
    assert (found.failed, found.dropped, found.evicted) == (16, 1, 255)
    (settings / "statistics").unlink()
    assert conntrack.table().failed is None, "a counter that cannot be read is unknown, not 0"


def test_without_a_table_the_kernel_tracks_nothing(settings: Path) -> None:
    (settings / "nf_conntrack_count").unlink()
    with pytest.raises(Unsupported, match=r"tracks no connections: there is no .*nf_conntrack_count"):
        conntrack.table()


def test_timeouts_of_all_kinds_of_entries_are_set(settings: Path) -> None:
    assert conntrack.hold(300).timeout_s == 300
    assert (settings / "nf_conntrack_udp_timeout_stream").read_text() == "300"
    assert (settings / "nf_conntrack_tcp_timeout_time_wait").read_text() == "300"
    (settings / "nf_conntrack_udp_timeout").unlink()
    (settings / "nf_conntrack_udp_timeout").mkdir()
    with pytest.raises(CsitError, match="nf_conntrack_udp_timeout cannot be set to 300: Is a directory"):
        conntrack.hold(300)


def test_what_is_left_after_a_deletion_is_waited_for_and_then_reported(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conntrack, "_EMPTY_S", 0.01)
    assert conntrack.settled() == 16
    (settings / "nf_conntrack_count").write_text("0\n")
    assert conntrack.settled() == 0


class _Kernel:
    """The kernel's socket, which answers to the deletion of all entries."""

    def __init__(self, code: int) -> None:
        self.code = code

    def __call__(self, *_: int) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def settimeout(self, _: float) -> None:
        pass

    def send(self, request: bytes) -> None:
        assert struct.unpack("=IHH", request[:8]) == (20, 1 << 8 | 2, 5), "all of the namespace, and an answer"

    def recv(self, _: int) -> bytes:
        return struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -self.code)


@pytest.mark.usefixtures("settings")
def test_a_deletion_has_its_entries_and_is_refused_in_the_words_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conntrack, "go_first", lambda: None)
    monkeypatch.setattr(socket, "socket", _Kernel(0))
    found = conntrack.delete()
    assert (found.entries, found.left) == (16, 16) and found.began_ns <= found.ended_ns
    monkeypatch.setattr(socket, "socket", _Kernel(errno.EPERM))
    with pytest.raises(CsitError, match="the kernel does not delete connections: Operation not permitted"):
        conntrack.delete()
