"""Packet captures as loads: what is read, and what is refused in one sentence."""

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LONGEST_REASON, MAX_CAPTURE_BYTES, MAX_CAPTURED_PACKETS
from resources.libraries.python.model.request.capture import read_capture
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.frames import capture_content, frame, with_flows, with_ipv6
from tests.captures import MIX, MIX6, ipv4, pcap, pcapng, tagged, udp, with_fcs

PADDED = tuple(each.ljust(60, b"\0") for each in MIX)


WRITTEN: tuple[tuple[Callable[..., bytes], dict[str, Any], bool], ...] = (
    *((pcap, {"link_type": flags | 1}, False) for flags in (0, 0x04000000, 0x20000000)),
    *((pcap, {"link_type": flags | 1}, True) for flags in (0x24000000, 0x50000000)),
    (pcap, {"link_type": 0x50000001, "magic": 0xA1B23C4D}, True),
    (pcap, {"link_type": 0x04000001, "magic": 0xA1B23C4D}, False),
    (pcapng, {}, False),
    (pcapng, {"fcs_bits": 0}, False),
    (pcapng, {"fcs_bits": 32}, True),
    (pcapng, {"fcs_bits": 4}, True),  # as in the example of the format, and as Wireshark reads it
    (pcapng, {"fcs_bits": 32, "simple": True}, True),
    (pcapng, {"flags": 1}, False),
    (pcapng, {"flags": 4 << 5 | 1}, True),
    (pcapng, {"flags": 1, "fcs_bits": 32}, True),  # no length in the flags says nothing
    (pcapng, {"flags": 4 << 5, "fcs_bits": 0}, True),
)
"""Ways to write a capture, and whether it says that frames have their FCS."""


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("write", "options", "has_fcs"), WRITTEN)
def test_packets_are_those_of_the_file_in_its_order_without_a_declared_fcs(
    write: Callable[..., bytes], options: dict[str, Any], has_fcs: bool, order: str
) -> None:
    found = read_capture(write(with_fcs(MIX) if has_fcs else PADDED, order=order, **options), "x.pcap")
    assert (found.frames, found.ip_version, found.sources) == (PADDED, 4, (0, 1, 0, 0, 2, 1, 0))
    six = read_capture(write(with_fcs(MIX6) if has_fcs else MIX6, order=order, **options), "x.pcap")
    assert (six.frames, six.ip_version, six.sources) == (MIX6, 6, (0, 1, 0))


def test_each_interface_of_pcapng_has_its_own_fcs() -> None:
    head, described = 28, 20
    plain, other = pcapng(()), pcapng((), fcs_bits=32)
    (packet,) = with_fcs(MIX[:1])
    block = bytearray(pcapng((packet,))[head + described :])
    block[8] = 1
    content = plain + other[head:] + bytes(block)
    assert read_capture(content, "x").frames == PADDED[:1]
    with pytest.raises(ConfigError, match="x: a packet at 48 before its interface is described"):
        read_capture(plain + bytes(block), "x")


@pytest.mark.parametrize("tags", [(0x8100,), (0x88A8,), (0x88A8, 0x8100), (0x8100, 0x8100), (0x9100, 0x8100, 0x8100)])
def test_packets_are_read_through_their_vlan_tags(tags: tuple[int, ...]) -> None:
    found = read_capture(pcap([tagged(frame, *tags) for frame in MIX6]), "x")
    assert (found.frames, found.sources) == (MIX6, (0, 1, 0))
    jumbo = ipv4(17, udp(b"x" * (9014 - 42)))
    assert read_capture(pcap((tagged(jumbo, *tags),)), "x").frames == (jumbo,)
    with pytest.raises(ConfigError, match=r"x: packet 1 is no IP packet \(EtherType 0x0806\)"):
        read_capture(pcap((tagged(ARP, *tags),)), "x")


@given(
    order=st.sampled_from("<>"),
    tags=st.lists(st.sampled_from((0x8100, 0x88A8, 0x9100)), max_size=3),
    written=st.sampled_from(WRITTEN),
    chosen=st.lists(st.sampled_from(MIX), min_size=1, max_size=9),
)
def test_frames_are_the_same_whatever_the_file_has_around_them(
    order: str, tags: list[int], written: tuple[Callable[..., bytes], dict[str, Any], bool], chosen: list[bytes]
) -> None:
    write, options, has_fcs = written
    frames = tuple(tagged(frame.ljust(60, b"\0"), *tags) for frame in chosen)
    found = read_capture(write(with_fcs(frames) if has_fcs else frames, order=order, **options), "x")
    assert found.frames == tuple(frame.ljust(60, b"\0") for frame in chosen)


def test_a_frame_of_tags_alone_is_refused_at_once() -> None:
    tags = tagged(b"\x02" * 12, *(0x8100,) * 2250)
    with pytest.raises(ConfigError, match="x: packet 1 has 12 bytes, too few for an IP packet"):
        read_capture(pcap((tags,) * 1800), "x")


ARP = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(46)
SHORT = ipv4(17, udp(b"x" * 40))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x is no packet capture: neither pcap nor pcapng"),
        (pcap(MIX)[:-1], r"x is truncated: 3,\d+ bytes, and what begins at 3,\d+ has 111"),
        (pcap(()), "x has no packets"),
        (pcap(MIX, link_type=113), r"x: link type 113 \(Linux cooked\), not Ethernet \(1\)"),
        (pcapng(MIX, link_type=101), r"x: link type 101 \(raw IP\), not Ethernet"),
        (pcap((SHORT,), lengths=(1514,)), "x: packet 1 has 82 of its 1514 bytes; capture whole packets"),
        (pcap((*MIX, ARP)), r"x: packet 8 is no IP packet \(EtherType 0x0806\); keep packets of one ver"),
        (pcap((*MIX, MIX6[0])), "x: packet 8 is IPv6, those before are not"),
        (pcap((MIX[0][:30],)), "x: packet 1 has 30 bytes, too few for an IP packet"),
        (pcap((MIX[0][:-1],)), "x: packet 1 has 57 bytes behind the Ethernet header, its IP header says 58"),
        (pcap((ipv4(17, udp(b"x" * 9000)),)), r"x: packet 1 has 9,042 bytes, more than a jumbo frame \(9,014\)"),
        (pcap((SHORT + bytes(9000),), lengths=(82,)), r"x: packet 1 has 9,082 bytes, more than a jumbo frame"),
        (pcap((SHORT,) * (MAX_CAPTURED_PACKETS + 1)), "x: more than 8,192 packets"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_in_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}") as found:
        read_capture(data, "x")
    assert len(str(found.value)) < LONGEST_REASON


def asked(folder: Path, content: bytes, name: str = "Web Trace-1.pcap") -> Frame:
    file = folder / name
    file.write_bytes(content)
    return frame(f"pcap:{file}")


def test_a_frame_has_the_sizes_of_the_capture_and_digits_of_its_digest(tmp_path: Path) -> None:
    found = asked(tmp_path, pcap(MIX))
    assert found.capture is not None and found.name == f"pcap-web_trace_1-{found.capture.sha256[:8]}"
    assert [(part.frame_bytes, part.weight) for part in found.parts] == [
        (64, 2), (76, 1), (115, 1), (547, 1), (1059, 1), (1518, 1)
    ]  # fmt: skip
    assert (found.capture.packets, found.mean_bytes) == (7, pytest.approx((2 * 64 + 76 + 115 + 547 + 1059 + 1518) / 7))
    assert frame(found.asked) == found
    assert Frame.model_validate_json(found.model_dump_json()) == found
    assert asked(tmp_path, pcap(MIX6), "six.pcap").ip_version == 6


def test_a_capture_is_sent_as_it_was_planned_with_its_own_flows_and_version_of_ip(tmp_path: Path) -> None:
    found = asked(tmp_path, pcap(MIX))
    assert found.capture is not None and capture_content(found.capture) == pcap(MIX)
    Path(found.capture.file).write_bytes(pcap(MIX[:-1]))
    with pytest.raises(ConfigError, match="has changed since the test was planned"):
        capture_content(found.capture)
    four, six = found, asked(tmp_path, pcap(MIX6), "six.pcap")
    assert with_ipv6(six) == six
    with pytest.raises(ConfigError, match="is a capture of IPv4; leave IP_VERSION out"):
        with_ipv6(four)
    with pytest.raises(ConfigError, match="a capture has its own flows, no 1,000; leave FLOWS out"):
        with_flows(four, 1000)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("web trace (1).pcap", "web_trace_1"),
        ("Übung Ärger.pcap", "ubung_arger"),
        ("Cafe\u0301.pcapng", "cafe"),  # as macOS writes accents
        ("трафик 2.pcap", "трафик_2"),
        ("WEB.PCAPNG.GZ", "web"),
    ],
)
def test_a_frame_is_named_after_any_file(tmp_path: Path, name: str, stem: str) -> None:
    (tmp_path / "ein Ordner").mkdir()
    content = pcap(MIX)
    found = asked(tmp_path, gzip.compress(content) if name.lower().endswith(".gz") else content, f"ein Ordner/{name}")
    assert found.name == f"pcap-{stem}-{hashlib.sha256(content).hexdigest()[:8]}"
    assert found.capture is not None and capture_content(found.capture) == content


def test_a_packed_capture_is_bounded(tmp_path: Path) -> None:
    many = pcap((ipv4(17, udp(bytes(1472))),) * 8192)  # of much higher ratio than results
    assert asked(tmp_path, gzip.compress(many), "many.pcap.gz").capture is not None
    for content, reason in (
        (gzip.compress(bytes(MAX_CAPTURE_BYTES + 1), 1), "refused: .* unpack to more than 16,777,216"),
        (gzip.compress(many)[:-9], "the packed file ends too early"),
        (b"\x1f\x8bdamaged!", "the packed file is damaged"),
    ):
        with pytest.raises(ConfigError, match=f"x.pcap.gz: {reason}"):
            asked(tmp_path, content, "x.pcap.gz")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none.pcap", "none.pcap: cannot be read: No such file"),
        ("/dev/zero", "/dev/zero: cannot be read: not a regular file"),
        *(
            (name, "a path has letters, digits, blanks and any of")
            for name in ("a,b", "$(x)", "${x}", "a\\b", "a\nb", "")
        ),
    ],
)
def test_a_file_that_cannot_be_read_or_whose_path_robot_would_read_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        frame(f"pcap:{name}")
