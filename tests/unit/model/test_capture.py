"""Packet captures as loads: what is read, and what is refused in one sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest

from csit_utils.studies.registry import explanations
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LONGEST_REASON, MOST_CAPTURED_PACKETS
from resources.libraries.python.model.request.capture import read_capture
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.frames import capture_content, frame, with_flows, with_ipv6
from tests.captures import MIX, MIX6, ipv4, pcap, pcapng, udp

PADDED = tuple(each.ljust(60, b"\0") for each in MIX)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("write", [pcap, pcapng])
def test_packets_are_those_of_the_file_in_its_order(write: Callable[..., bytes], order: str) -> None:
    found = read_capture(write(MIX, order=order), "x.pcap")
    assert (found.frames, found.ip_version) == (PADDED, 4)
    assert found.sources == (0, 1, 0, 0, 2, 1, 0)
    six = read_capture(write(MIX6, order=order), "x.pcap")
    assert (six.ip_version, six.sources) == (6, (0, 1, 0))


ARP = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + bytes(46)
SHORT = ipv4(17, udp(b"x" * 40))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x is no packet capture: neither pcap nor pcapng"),
        (b"no capture", "x is no packet capture: neither pcap nor pcapng"),
        (pcap(MIX)[:20], "x is truncated: 20 bytes, and what begins at 0 has 24"),
        (pcap(MIX)[:-1], r"x is truncated: 3,\d+ bytes, and what begins at 3,\d+ has 111"),
        (pcapng(MIX)[:-1], r"x is truncated"),
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
        (pcap((SHORT,) * (MOST_CAPTURED_PACKETS + 1)), "x: more than 8,192 packets"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_in_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}") as found:
        read_capture(data, "x")
    assert len(str(found.value)) < LONGEST_REASON


def asked(folder: Path, content: bytes, name: str = "Web Trace-1.pcap") -> Frame:
    file = folder / name.replace(" ", "_")
    file.write_bytes(content)
    return frame(f"pcap:{file}")


def test_a_frame_has_the_sizes_of_the_capture_and_digits_of_its_digest(tmp_path: Path) -> None:
    found = asked(tmp_path, pcap(MIX))
    assert found.capture is not None
    assert found.name == f"pcap-web_trace_1-{found.capture.sha256[:8]}"
    assert [(part.frame_bytes, part.weight) for part in found.parts] == [
        (64, 2), (76, 1), (115, 1), (547, 1), (1059, 1), (1518, 1)
    ]  # fmt: skip
    assert (found.capture.packets, found.mean_bytes) == (7, pytest.approx((2 * 64 + 76 + 115 + 547 + 1059 + 1518) / 7))
    assert frame(found.asked) == found
    assert Frame.model_validate_json(found.model_dump_json()) == found
    assert asked(tmp_path, pcap(MIX6), "six.pcap").ip_version == 6


def test_a_capture_that_has_changed_since_is_not_sent(tmp_path: Path) -> None:
    found = asked(tmp_path, pcap(MIX))
    assert found.capture is not None
    assert capture_content(found.capture) == pcap(MIX)
    Path(found.capture.file).write_bytes(pcap(MIX[:-1]))
    with pytest.raises(ConfigError, match="has changed since the test was planned"):
        capture_content(found.capture)


def test_number_of_flows_and_version_of_ip_are_those_of_the_capture(tmp_path: Path) -> None:
    four, six = asked(tmp_path, pcap(MIX)), asked(tmp_path, pcap(MIX6), "six.pcap")
    assert with_ipv6(six) == six
    with pytest.raises(ConfigError, match="is a capture of IPv4; leave IP_VERSION out"):
        with_ipv6(four)
    with pytest.raises(ConfigError, match="a capture has its own flows, no 1,000; leave FLOWS out"):
        with_flows(four, 1000)


@pytest.mark.parametrize("name", ["pcap:", "pcap:a b.pcap", "pcap:a,b.pcap", "pcap:$(x).pcap"])
def test_a_path_is_of_plain_characters(name: str) -> None:
    with pytest.raises(ConfigError, match="a path has letters, digits and"):
        frame(name)


@pytest.mark.parametrize(("name", "reason"), [("none.pcap", "No such file"), ("/dev/zero", "not a regular file")])
def test_a_file_that_cannot_be_read_is_named(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: cannot be read: {reason}"):
        frame(f"pcap:{name}")


def test_the_explanation_of_captures_has_the_source_of_their_formats() -> None:
    text = explanations()["capture"].how
    assert "draft-ietf-opsawg-pcap)" in text and "draft-ietf-opsawg-pcapng)" in text
