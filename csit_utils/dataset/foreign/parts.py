"""Shared parts of readers of other tools' results: bounded numbers, figures of a row, latency.

Readers are strict about structure and lenient about values: an invalid value becomes unknown, with a remark, and costs
no other one.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from math import isnan
from typing import Annotated, Any, TypeVar

from hdrh.histogram import HdrHistogram
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from csit_utils.analysis.latency import Histogram, histogram_of, merge, percentiles, rescaled
from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import EVERY_INSTANCE, LatencyRow
from resources.libraries.python.model.bounds import MAX_ERRORS, dotted, quoted
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.result import l1_bps, l2_bps

_LONGEST_NS = 60 * 10**9
_NS_PER_US = 1000
_MAX = 10**15
"""Upper bound of counts, which fits into the columns of a table."""

_MAX_NAMED = 3
"""Invalid values that a remark names."""
_LONGEST_VALUE = 40
_EXPECTED = {"model_type": "an object", "dict_type": "an object", "tuple_type": "a list"}
_OF_STRUCTURE = {*_EXPECTED, "missing", "too_short"}
"""Errors of pydantic that are not about a single value."""
UNKNOWN_TESTBED = "unknown testbed"
_NOT_MEASURED = ("n/a", -1)
"""What tools write for latencies that they have not measured."""

Amount = Annotated[float, Field(ge=0, le=1e13, allow_inf_nan=False, strict=True)] | None
"""A rate, a time or a share; the upper bound is above any measurement, and keeps products finite."""
Count = Annotated[int, Field(ge=0, le=_MAX, strict=True)] | None


def _measured(value: object) -> object:
    return None if value in _NOT_MEASURED or (isinstance(value, float) and isnan(value)) else value


Usec = Annotated[Amount, BeforeValidator(_measured)]
"""A latency in microseconds."""


class ForeignPart(BaseModel):
    """A part of a file of another tool. Unknown keys are ignored; fields that permit None may be invalid in a file."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ForeignLatency(ForeignPart):
    """Latency at a load in microseconds, by the names of FD.io CSIT, and of NFVbench in total and by chain."""

    min_us: Usec = Field(None, validation_alias=AliasChoices("min", "min_delay_usec", "lat_min_usec"))
    mean_us: Usec = Field(None, validation_alias=AliasChoices("avg", "avg_delay_usec", "lat_avg_usec"))
    max_us: Usec = Field(None, validation_alias=AliasChoices("max", "max_delay_usec", "lat_max_usec"))
    hdrh: str | None = None


PartT = TypeVar("PartT", bound=ForeignPart)


def read_part(kind: type[PartT], data: object, remarks: list[str], where: str = "") -> PartT:
    """Validate a part of a file; invalid values of fields that permit None become None, and other nulls are left out.

    `remarks`: gets a sentence about invalid values.
    `where`: place of the part in the file, with which an error begins.

    Raises:
        ReadError: Its structure is another one, or a value that every test has is invalid.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        if error.error_count() > MAX_ERRORS:
            raise ReadError(f"{where}{error.error_count():,} invalid values") from error
        faults = error.errors(include_url=False, include_context=False)
    invalid = [each for each in faults if each["type"] not in _OF_STRUCTURE or each["input"] is None]
    data = deepcopy(data)
    for each in reversed(invalid):  # of a list the last first
        with suppress(LookupError, TypeError, ValueError):  # a key, not a value
            *path, last = each["loc"]
            place: Any = data
            for key in path:
                place = place[key]
            if each["input"] is None:  # where another type has to be, null is as good as nothing
                del place[last]
            else:
                place[last] = None
    try:
        found = kind.model_validate(data)
    except ValidationError as error:
        at = error.errors(include_url=False, include_context=False)[0]
        fault = _fault(next((each for each in faults if each["loc"] == at["loc"]), at))
        raise ReadError(f"{where}{fault}") from error
    named = ", ".join(f"{dotted(each['loc'])} ({_value(each['input'])})" for each in invalid[:_MAX_NAMED])
    more = f" and {len(invalid) - _MAX_NAMED} more" if len(invalid) > _MAX_NAMED else ""
    remarks.append(f"invalid and left out: {named}{more}")
    return found


def _fault(found: ErrorDetails) -> str:
    """What is wrong with the structure of a file."""
    where = dotted(found["loc"]) or "the result"
    match found["type"]:
        case "missing":
            return f"{where} is missing"
        case "too_short":
            return f"{where} is empty"
        case kind if kind in _EXPECTED:
            return f"{where}: expected {_EXPECTED[kind]}, found {_value(found['input'])}"
        case _:
            return f"{where}: '{_value(found['input'])}' is invalid"


def _value(found: object) -> str:
    if isinstance(found, dict | list):
        return "an object" if isinstance(found, dict) else "a list"
    return quoted(str(found), _LONGEST_VALUE)


def anchor_of(tool: str, data: object) -> str:
    """Return an id for links that depends only on the result."""
    return f"test-{tool}-{hashlib.sha256(repr(data).encode('utf-8', 'backslashreplace')).hexdigest()[:16]}"


def utc(text: str | None, remarks: list[str]) -> str | None:
    """Return an RFC 3339 time in the format of our records; None if invalid, with a remark."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="milliseconds") if text else None
    except (ValueError, OverflowError):
        remarks.append(no_time(text))
        return None


def no_time(text: str | None) -> str:
    """Remark on a time that is none."""
    return f"invalid and left out: the time '{_value(text)}'"


def frame_of(name: str, parts: Iterable[tuple[int, int]]) -> Frame:
    """A frame by its sizes in bytes and their weights."""
    return Frame(name=name, parts=tuple(FramePart(frame_bytes=size, weight=weight) for size, weight in parts))


def single_frame(size: int) -> Frame | None:
    """Return a frame of one size; None for an invalid Ethernet frame size."""
    return frame_of(f"{size}B", [(size, 1)]) if 64 <= size <= 9018 else None


def goal_columns(  # noqa: PLR0917 - as the columns stand in a row
    name: str,
    loss_ratio: float,
    lower_pps: float | None,
    upper_pps: float | None,
    complete: bool | None,
    frame: Frame | None,
    cores: float | None,
) -> dict[str, Any]:
    """Columns of `TestRow` for one goal."""
    return {
        f"{name}_loss_ratio": loss_ratio,
        f"{name}_lower_pps": lower_pps,
        f"{name}_upper_pps": upper_pps,
        f"{name}_complete": complete,
        **derived(name, lower_pps, frame, cores),
    }


def derived(name: str, rate_pps: float | None, frame: Frame | None, cores: float | None) -> dict[str, float]:
    """Bandwidths and rate per core, as far as frame and cores are known."""
    found: dict[str, float] = {}
    if rate_pps is not None and frame is not None:
        found |= {f"{name}_l1_bps": l1_bps(rate_pps, frame), f"{name}_l2_bps": l2_bps(rate_pps, frame)}
    if rate_pps is not None and cores:
        found[f"{name}_pps_per_core"] = rate_pps / cores
    return found


def latency_row(
    found: ForeignLatency,
    *,
    anchor: str,
    test_name: str,
    load: str,
    load_pps: float,
    direction: str,
    instance: int = EVERY_INSTANCE,
) -> LatencyRow:
    """Return latency at a load. Percentiles come from the histogram, and are unknown without one."""
    histogram = merge([found.hdrh]) if found.hdrh else None
    scaled = _nanoseconds(histogram) if histogram is not None else None
    at = percentiles(histogram_of(scaled)) if scaled is not None else None
    return LatencyRow(
        anchor=anchor,
        test_name=test_name,
        load=load,
        load_pps=load_pps,
        instance=instance,
        direction=direction,
        sent=None,
        received=at.count if at else None,
        min_ns=_ns(found.min_us) if found.min_us is not None else at.min_ns if at else None,
        mean_ns=found.mean_us * _NS_PER_US if found.mean_us is not None else None,
        p50_ns=at.p50_ns if at else None,
        p90_ns=at.p90_ns if at else None,
        p99_ns=at.p99_ns if at else None,
        p999_ns=at.p999_ns if at else None,
        max_ns=_ns(found.max_us) if found.max_us is not None else at.max_ns if at else None,
        histogram=scaled.encode().decode() if scaled is not None else None,
    )


def _ns(value_us: float) -> int:
    return round(value_us * _NS_PER_US)


def _nanoseconds(histogram: Histogram) -> HdrHistogram | None:
    """A histogram converted from microseconds; None if a value or count is out of range."""
    if not 0 < histogram.total < _MAX:
        return None
    return rescaled(histogram, lambda value_us: value_us * _NS_PER_US, _LONGEST_NS)
