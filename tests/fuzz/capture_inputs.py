"""Captures of every kind, and the functions that read them."""

import gzip
from hashlib import sha256
from pathlib import Path

import numpy as np

from resources.libraries.python.drivers.generators.builtin.capture_frames import CapturedLoad
from resources.libraries.python.drivers.generators.builtin.wire import FlowSpec
from resources.libraries.python.model.request.capture import read_capture
from resources.libraries.python.model.request.cell import CaptureFile
from resources.libraries.python.model.request.frames import capture_content
from tests.captures import MIX, MIX6, pcap, pcapng, tagged, with_fcs

CAPTURES = (
    pcap(MIX),
    pcap(MIX6, order=">"),
    pcap(with_fcs(tagged(each, 0x88A8, 0x8100) for each in MIX), link_type=0x24000001),
    pcapng(MIX),
    pcapng(with_fcs(MIX), fcs_bits=32, simple=True),
    pcapng(with_fcs(MIX), order=">", fcs_bits=0, flags=4 << 5),
)
CAPTURE_PIECES = (
    b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a", b"\x06\x00\x00\x00", b"\x45", b"\x86\xdd", b"\xff\xff", b"\x00",
    b"\x81\x00", b"\x88\xa8", b"\x0d\x00\x01\x00", b"\x02\x00\x04\x00",
)  # fmt: skip
"""Magic numbers, types of blocks, packets and tags, options."""
PACKED = gzip.compress(pcap(MIX))


def captured_load(content: bytes, _: Path) -> None:
    captured = CapturedLoad(read_capture(content, "load.pcap"))
    addresses = ("fd00:10:1::1", 254, "fd00:20:1::1") if captured.ipv6 else ("10.0.1.1", 2, "20.0.1.1")
    flow = FlowSpec("a", "b", "02:00:00:00:00:01", "02:00:00:00:00:02", *addresses)
    captured.write(flow, np.zeros(captured.data.shape, dtype=np.uint8))


def packed_capture(path: Path) -> None:
    capture_content(CaptureFile(file=str(path), sha256=sha256(pcap(MIX)).hexdigest(), packets=len(MIX)))
