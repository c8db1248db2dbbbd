"""The frame sizes that tests can ask for: by name, from `resources/traffic_profiles/frames.yaml`, or any in bytes.

Each can go with a number of flows. Contents of the packets of a flow are in `resources/traffic_profiles/density.yaml`.
"""

import hashlib
import io
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.bounds import ASKED, MAX_CAPTURE_BYTES, quoted
from resources.libraries.python.model.load import content_of, load_yaml
from resources.libraries.python.model.request.capture import IP6, read_capture
from resources.libraries.python.model.request.cell import CAPTURE_PREFIX, MAX_FLOWS, CaptureFile, Frame, FramePart
from resources.libraries.python.paths import RESOURCES
from resources.libraries.python.unpacking import Budget, UnpackError, unpacked

FRAMES_FILE = RESOURCES / "traffic_profiles" / "frames.yaml"
SMALLEST, LARGEST = 64, 9018
"""Bytes of an Ethernet frame with FCS, jumbo frames included."""
_BYTES = re.compile(r"0*([1-9]\d{1,4})B")
_FLOWS = re.compile(r"(.*)-0*([1-9]\d{0,6})f", re.IGNORECASE)
_PATH_MARKS = " ./+@=()_-"
"""Besides letters and digits, in the path of a capture. Robot reads variables in it, and a comma ends it."""
_NO_WORD = re.compile(r"[\W_]+")
_LONGEST_STEM, _DIGITS = 24, 8
_PACKING = re.compile(r"\.(gz|xz|zst)$")
_IPV6 = re.compile(r"(.*)-ip6", re.IGNORECASE)
_FCS_BYTES = 4
SMALLEST_IPV6 = 82
"""Bytes of an IPv6 frame with FCS: headers of Ethernet, IPv6 and UDP, and what tells probes apart."""
PROFILE_FILE = RESOURCES / "traffic_profiles" / "density.yaml"

Byte = Annotated[int, Field(ge=0, le=255)]


class _FramesFile(Frozen):
    frames: dict[str, tuple[FramePart, ...]]


@cache
def _known() -> dict[str, Frame]:
    rows = load_yaml(FRAMES_FILE, _FramesFile).frames
    return {name: Frame(name=name, parts=parts) for name, parts in rows.items()}


def frame(name: str) -> Frame:
    """The frame size of that name; `1300B` is one of 1300 bytes, with FCS.

    `64B-1000f` is 64 bytes in 1000 flows, `128B-ip6` is IPv6. `pcap:FILE` has the packets of a capture.

    Raises:
        ConfigError: There is none, there are too many flows, or a capture cannot be used.
    """
    if name.lower().startswith(CAPTURE_PREFIX):
        return _of_capture(name[len(CAPTURE_PREFIX) :])
    if match := _FLOWS.fullmatch(name):
        return with_flows(frame(match[1]), int(match[2]))
    if match := _IPV6.fullmatch(name):
        return with_ipv6(frame(match[1]))
    known = {key.upper(): value for key, value in _known().items()}
    if name.upper() in known:
        return known[name.upper()]
    if size_bytes := _size_bytes(name):
        return Frame(name=f"{size_bytes}B", parts=(FramePart(frame_bytes=size_bytes),))
    meant = f"did you mean {size_bytes}B? " if (size_bytes := _size_bytes(f"{name}B")) else ""
    raise ConfigError(
        f"no frame size '{quoted(name)}'; {meant}{FRAMES_FILE.name} has {', '.join(_known())}, "
        f"and any from {SMALLEST}B to {LARGEST}B will do"
    )


def _size_bytes(name: str) -> int | None:
    size = _BYTES.fullmatch(name.upper())
    return int(size[1]) if size and SMALLEST <= int(size[1]) <= LARGEST else None


@cache
def _of_capture(file: str) -> Frame:
    """The packets of a capture, read once: what is sent is checked against the digest."""
    if not file or any(letter not in _PATH_MARKS and unicodedata.category(letter)[0] not in "LMN" for letter in file):
        raise ConfigError(f"capture '{quoted(file)}': a path has letters, digits, blanks and any of ./+@=()_- only")
    content = _content(file)
    frames = read_capture(content, file)
    digest = hashlib.sha256(content).hexdigest()
    sizes = Counter(len(each) + _FCS_BYTES for each in frames.frames)
    return Frame(
        name="-".join(filter(None, ("pcap", _stem(file), digest[:_DIGITS]))),
        parts=tuple(FramePart(frame_bytes=size, weight=weight) for size, weight in sorted(sizes.items())),
        ip_version=6 if frames.ip_version == IP6 else 4,
        capture=CaptureFile(file=file, sha256=digest, packets=len(frames.frames)),
    )


def _content(file: str) -> bytes:
    """The content of a capture, unpacked where it is packed."""
    packed = content_of(Path(file), MAX_CAPTURE_BYTES)
    try:
        with unpacked(io.BytesIO(packed), Budget(len(packed), MAX_CAPTURE_BYTES)) as stream:
            return b"".join(iter(stream.read, b""))
    except UnpackError as error:
        raise ConfigError(f"{file}: {error}") from error


def _stem(file: str) -> str:
    """The part of a frame's name that is the file's: letters and digits, those of Latin without their accents."""
    plain = unicodedata.normalize("NFKD", Path(_PACKING.sub("", file.lower())).stem)
    letters = unicodedata.normalize("NFC", "".join(each for each in plain if not unicodedata.combining(each)))
    return _NO_WORD.sub("_", letters).strip("_")[:_LONGEST_STEM].strip("_")


def capture_content(capture: CaptureFile) -> bytes:
    """Read a capture again, to send its packets.

    Raises:
        ConfigError: It cannot be read, or is another one by now.
    """
    content = _content(capture.file)
    if hashlib.sha256(content).hexdigest() != capture.sha256:
        raise ConfigError(f"{capture.file} has changed since the test was planned")
    return content


def with_flows(sizes: Frame, flows: int) -> Frame:
    """Return the same sizes in so many flows.

    Raises:
        ConfigError: Not in [1, 1,000,000], or of a capture.
    """
    if sizes.capture is not None:
        raise ConfigError(f"{sizes.capture.file}: a capture has its own flows, no {flows:,}; leave FLOWS out")
    if not 1 <= flows <= MAX_FLOWS:
        raise ConfigError(f"{flows:,} flows; a service instance has 1 to {MAX_FLOWS:,} in each direction")
    return sizes.model_copy(update={"name": f"{sizes.name.removesuffix(f'-{sizes.flows}f')}-{flows}f", "flows": flows})


def with_ipv6(sizes: Frame) -> Frame:
    """Return the same sizes as IPv6 packets, in as many flows.

    Raises:
        ConfigError: A frame is too small, or of a capture of IPv4.
    """
    if sizes.capture is not None:
        if sizes.ip_version == IP6:
            return sizes
        raise ConfigError(f"{sizes.capture.file} is a capture of IPv4; leave IP_VERSION out")
    if (least := min(part.frame_bytes for part in sizes.parts)) < SMALLEST_IPV6:
        raise ConfigError(
            f"frames of {least} bytes in {sizes.size_name}: IPv6 frames have {SMALLEST_IPV6} bytes or more, with UDP "
            "and what tells latency probes apart"
        )
    flows = "" if sizes.flows is None else f"-{sizes.flows}f"
    return sizes.model_copy(update={"name": f"{sizes.size_name}-ip6{flows}", "ip_version": 6})


def _named(value: object, info: ValidationInfo) -> object:
    if isinstance(value, Frame) or info.context is not ASKED:
        return value  # records have all of a frame, and name no file
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError("expected a frame size, such as 512B or IMIX")
    try:
        return frame(str(value))
    except ConfigError as error:
        raise ValueError(str(error)) from error


FrameByName = Annotated[Frame, BeforeValidator(_named)]
"""A frame size; specifications have its name only: `64B`, `IMIX`."""


class LoadPackets(Frozen):
    """Packets that are the load."""

    protocol: Byte
    """Protocol number in the IPv4 header."""
    ttl: Annotated[int, Field(ge=1, le=255)]
    dscp: Annotated[int, Field(ge=0, le=63)]
    sources: Literal["increment", "random"]
    """The order in which a flow's source addresses are used."""
    udp_port: Annotated[int, Field(ge=1, le=65535)]
    """Destination port where the load is to be UDP datagrams or TCP segments."""


class ProbePackets(Frozen):
    """Packets whose latency is measured."""

    protocol: Literal[17]
    """UDP: latency is measured by what is in the payload."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Port number of source and destination."""
    ttl: Annotated[int, Field(ge=1, le=255)]
    dscp: Annotated[int, Field(ge=0, le=63)]


class TrafficProfile(Frozen):
    """Contents of the packets of every flow."""

    load: LoadPackets
    probes: ProbePackets


@cache
def traffic_profile() -> TrafficProfile:
    """The project's profile.

    Raises:
        ConfigError: The file is missing or wrong.
    """
    return load_yaml(PROFILE_FILE, TrafficProfile)
