"""Rows of tests for a dataset, from the part of a record that they need, and from Robot's data on tests without one.

What is read of a record follows from the columns: the types of heads have those of its fields that a column has a path
to, and nothing is unpacked.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any, BinaryIO, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel

from csit_utils.dataset.blocks import ScannedTest
from csit_utils.dataset.goal_words import remarked_head
from csit_utils.dataset.inputs import Source
from csit_utils.dataset.items import (
    ImportedTest,
    Item,
    Problem,
    ReadError,
    Recorded,
    Refusal,
    Status,
    Unrecorded,
    status_of,
)
from csit_utils.dataset.load import read_recorded
from csit_utils.dataset.robot_output import scanned
from csit_utils.dataset.rows import DEFAULTS, PLACES, TestRow
from csit_utils.dataset.store.bounded_files import RECORD_DETAIL, ROWS_DETAIL
from resources.libraries.python.model.base import refused_version
from resources.libraries.python.model.record import SCHEMA_VERSION
from resources.libraries.python.model.request.cell import Dimensions, ServiceType, TestType
from resources.libraries.python.model.result import Finding, MeasurementRequest, Verdict, VerdictKind, l1_bps, l2_bps
from resources.libraries.python.recording.marker import plain_message
from resources.libraries.python.recording.records import fault_of_times
from resources.libraries.python.recording.writer import pack
from resources.libraries.python.studies.density.model import Counted, DensityRecord

_ALSO_READ = (
    "schema_version",
    "passed",
    "skipped",
    "message",
    "counted.digest",
    "counted.vswitch_clocks",
    "energy.duts",
    *(
        f"{part}.{name}"
        for part, names in {
            "verdict.findings": ("kind", "numbers", "text"),
            "counted.costs": ("load", "part", "node", "packets", "packets_per_call", "cost", "unit", "error"),
            "counted.latency": ("label", "p50_ns", "p99_ns", "p999_ns"),
            "search.predicted": ("goal", "pps", "low_pps", "high_pps"),
            "energy.loads": ("label", "received_pps", "busy_cpus", "p99_ns"),
            "energy.loads.nodes": ("node", "watts", "error_w"),
        }.items()
        for name in names
    ),
)
"""Fields for columns that depend on several of them."""
_Struct = Any
"""A part of a record. Its type is made at runtime."""
_Tree = dict[str, "_Tree"]
"""Names of fields, each with the needed ones of its own."""


def _tree(paths: Iterable[str]) -> _Tree:
    tree: _Tree = {}
    for path in paths:
        branch = tree
        for name in path.split("."):
            branch = branch.setdefault(name, {})
    return tree


def _struct(of: type, names: _Tree, **more: object) -> type[msgspec.Struct]:
    """Make a type with some of the fields of a model or dataclass, and with further ones."""
    declared = of.model_fields if issubclass(of, BaseModel) else {}
    hints = get_type_hints(of)
    fields: list[Any] = list(more.items())
    for name, inner in names.items():
        hint = declared[name].annotation if name in declared else hints[name]
        fields.append((name, _decoded(hint, inner)))
        if name in declared and not declared[name].is_required():
            fields[-1] += (declared[name].get_default(call_default_factory=True),)
    return msgspec.defstruct(f"{of.__name__}Head", fields, frozen=True, gc=False, kw_only=True)


def _decoded(hint: object, inner: _Tree) -> object:
    """Type of a field as JSON has it: names of enumerations are text, and a number that is not finite is null."""
    if get_origin(hint) is tuple:
        return tuple[_decoded(get_args(hint)[0], inner), ...]  # type: ignore[misc]
    if get_args(hint) and get_origin(hint) not in (dict, Literal):
        return Union[tuple(_decoded(each, inner) for each in get_args(hint))]  # noqa: UP007 - made of found types
    if inner and isinstance(hint, type) and hint is not type(None):
        return _struct(hint, inner)
    if hint is float:
        return float | None
    return str if get_origin(hint) is Literal or (isinstance(hint, type) and issubclass(hint, StrEnum)) else hint


_TREE = _tree((*(at.path for at in PLACES.values()), *_ALSO_READ))
_ASKED = _TREE.pop("asked")
_COUNTED = _struct(Counted, _TREE.pop("counted"))
_Head: Any = _struct(DensityRecord, _TREE, asked=msgspec.Raw, counted=_COUNTED, packed=str)
"""A packed record; its `packed` is empty, as it was skipped."""
_PARTS: dict[str, Any] = {
    name: field.annotation
    for name, field in MeasurementRequest.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}
"""Types of the parts of a requested test, which are equal in many records: they are kept as text and read once."""
_RawRequest: Any = _struct(
    MeasurementRequest, {name: {} for name in _ASKED if name not in _PARTS}, **dict.fromkeys(_PARTS, msgspec.Raw)
)

_HEADS, _RAW = msgspec.json.Decoder(_Head), msgspec.json.Decoder(_RawRequest)
_PACKED, _END = b'"packed":"', b'"}'


def _optional_part(path: str) -> str:
    """Return the innermost part of a path that a record may lack, `search.prior` of `search.prior.test_id`."""
    of: Any = DensityRecord
    names, found = path.split("."), ""
    for at, name in enumerate(names[:-1], 1):
        field = of.model_fields.get(name)
        if field is None:
            break
        if type(None) in get_args(field.annotation):
            found = ".".join(names[:at])
        of = next(each for each in (*get_args(field.annotation), field.annotation) if isinstance(each, type))
    return found


def packed_head(text: bytes | str) -> _Struct:
    """Read a packed record; return a `Head`.

    Raises:
        ReadError: Not a packed record, or one of another schema version.
    """
    try:
        head = _HEADS.decode(_without_packed(text.encode() if isinstance(text, str) else text))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ReadError(str(error)) from error
    if head.schema_version != SCHEMA_VERSION:
        raise ReadError(f"the record has {refused_version(head.schema_version, SCHEMA_VERSION)}")
    if (fault := fault_of_times(head.started_at, head.finished_at)) is not None:
        raise ReadError(fault)
    return remarked_head(head)


def _without_packed(text: bytes) -> bytes:
    """A record with an empty packed string, which a decoder would scan byte by byte."""
    # Searching for one byte from the end runs at memory speed.
    begin = text.rfind(b'"', 0, -len(_END)) + 1
    is_last = text.endswith(_END) and text.endswith(_PACKED, 0, begin) and text.find(b"\\", begin) < 0
    return text[:begin] + _END if is_last else text


_NUMBERS = ("NDR", "PDR", "SOAK", "MRR", "ORR", "LATENCY")
_DERIVED = ("verdict", "l1_bps", "l2_bps", "pps_per_core")
_RATES = tuple(
    (name, f"{name}_{rate}", *(f"{name}_{of}" for of in _DERIVED))
    for name, rate in (
        ("ndr", "lower_pps"),
        ("pdr", "lower_pps"),
        ("soak", "lower_pps"),
        ("mrr", "pps"),
        ("orr", "pps"),
    )
)
"""Of each figure: its key in a record, and the columns of its rate and of what follows from that."""
_CACHED = 4096
"""Cached cells, frames and profiles, which are equal in thousands of tests."""
_OVERSUBSCRIBED = VerdictKind.OVERSUBSCRIBED.value
_Column = Sequence[Any]
"""Values of a column of several rows."""


class _Section(NamedTuple):
    """Columns of one part of a record, which is there or not as a whole."""

    part_of: Callable[[Any], Any]
    """From a `Head`; None if it is not there."""
    values: Callable[[Any], tuple[Any, ...]]
    columns: tuple[tuple[str, ...], ...]
    """Names of the columns that are made of each value."""


def _sections() -> Iterator[_Section]:
    """Group all columns but those of the requested test by the innermost optional part of their path."""
    found: dict[str, dict[str, list[str]]] = {}
    for column, at in PLACES.items():
        if column not in _OF_ASKED:
            part = _optional_part(at.path)
            found.setdefault(part, {}).setdefault(at.path[len(part) :].lstrip("."), []).append(column)
    for part, paths in found.items():
        # The name of a field twice makes a tuple of one value too.
        values = attrgetter(*paths, next(iter(paths)))
        yield _Section(_part_getter(part), values, (*map(tuple, paths.values()), ()))


def _part_getter(path: str) -> Callable[[Any], Any]:
    if not path:
        return lambda head: head
    outer, _, name = path.rpartition(".")
    if not outer:
        return attrgetter(name)
    outer_of, of = _part_getter(outer), attrgetter(name)
    return lambda head: of(part) if (part := outer_of(head)) is not None else None


_OF_ASKED = tuple(column for column, at in PLACES.items() if at.path.startswith("asked."))
_SECTIONS = tuple(_sections())


class _AskedColumns(NamedTuple):
    """Columns of the requested test, equal in many tests."""

    values: tuple[Any, ...]
    """Of `_OF_ASKED`."""
    data_cores: float
    anchor: str
    """Prefix of anchors; see `DensityRecord.anchor`."""
    l1_bits: float
    """L1 bits of one packet."""
    l2_bits: float


def _values(part: str, of: object) -> dict[str, Any]:
    """Return the columns of a part of the requested test."""
    found = {}
    for column, at in PLACES.items():
        if at.path == part or at.path.startswith(f"{part}."):
            value = attrgetter(at.path[len(part) + 1 :])(of) if at.path != part else of
            found[column] = value if at.convert is None else at.convert(value)
    return found


@lru_cache(_CACHED)
def _part(name: str, text: bytes) -> tuple[Any, Mapping[str, Any]]:
    """Return a part of the requested test, and its columns."""
    model = _PARTS[name].model_validate_json(text)
    return model, _values(f"asked.{name}", model)


@lru_cache(_CACHED)
def _asked(text: bytes) -> _AskedColumns:
    """Return the requested test.

    Raises:
        ReadError: A part is missing, or cell, frame or profile are invalid.
    """
    row: dict[str, Any] = {}
    models = {}
    try:
        asked = _RAW.decode(text)
        for name in _PARTS:
            models[name], values = _part(name, bytes(getattr(asked, name)))
            row |= values
        for name in asked.__struct_fields__:
            if name not in _PARTS:
                row |= _values(f"asked.{name}", getattr(asked, name))
        TestType(row["test_type"])  # a check
    except (ValueError, msgspec.DecodeError) as error:
        raise ReadError(f"asked: {error}") from error
    cell, frame = models["cell"], models["frame"]
    anchor = f"test-{cell.service_type}-{cell.locator}-{row['test_type']}-".lower()
    in_order = tuple(row[column] for column in _OF_ASKED)
    return _AskedColumns(in_order, row["data_cores"], anchor, l1_bps(1.0, frame), l2_bps(1.0, frame))


class HeadRow(msgspec.Struct, frozen=True, gc=False):
    """Row of a test with a record; `columns_of` makes its columns."""

    head: _Struct
    asked: _AskedColumns
    anchor: str
    testbed: str | None
    started_at: str | None
    status: str
    message: str


class Detail(msgspec.Struct, frozen=True, gc=False):
    """Data of a test beside its row."""

    digest: str
    """Digest of the record's JSON, or of the file of another tool."""
    kind: str
    text: str | bytes
    environment: str | None = None


_Row = tuple[HeadRow | TestRow, Detail | None]
Entry = _Row | Recorded | Refusal | Problem
"""An item of a file for a dataset."""
_NO_RECORD = "the test left no result record"


def rows_of_output(stream: BinaryIO, source: Source, *, validated: bool) -> Iterator[Entry]:
    """Yield the rows of the tests of an output of Robot Framework, and its other items.

    `validated`: whether details of records are validated too.

    Raises:
        ReadError: As `scanned`.
    """
    for test in scanned(stream, source):
        if not isinstance(test, ScannedTest):
            yield test
        elif test.record is None:
            yield _lost_row(test, source.name, test.message or _NO_RECORD)
        else:
            try:
                yield _row(test, test.record, source.name, validated=validated)
            except ReadError as error:
                yield _lost_row(test, source.name, str(error))
                yield Problem(source.name, str(error))


def _row(test: ScannedTest, text: str | bytes, source: str, *, validated: bool) -> Entry:
    """Return a test from its packed record; a plain record is read in full and packed.

    Raises:
        ReadError: Not a valid record.
    """
    where = f"{source}: test '{test.long_name}'"
    if validated:
        read_recorded(text, where, source)
    try:
        return packed_row(text, test.status, test.message)
    except ReadError:
        # A record of another study, a plain one, or an invalid one, whose error the full reader reports.
        item = read_recorded(text, where, source, test.status, test.message)
        return item_row(item, item.digest)


def packed_row(text: str | bytes, status: Status | None = None, message: str = "") -> tuple[HeadRow, Detail]:
    """Return the row of a test with a packed record, and the record; status and message are its own if unknown.

    Raises:
        ReadError: Not a packed record, or one of another schema version, or the requested test is invalid.
    """
    head = packed_head(text)
    asked = _asked(bytes(head.asked))
    # It refers to the whole text, whose memory the next one can have.
    msgspec.structs.force_setattr(head, "asked", None)
    counted = head.counted
    anchor = asked.anchor + counted.digest[:8].lower()
    ended = status or status_of(head)
    row = HeadRow(head, asked, anchor, head.testbed, head.started_at, ended, message or plain_message(head.message))
    return row, Detail(counted.digest, RECORD_DETAIL, text, counted.environment)


def item_row(item: Item, digest: str) -> Entry:
    """Return the row of an item of a file with a digest."""
    match item:
        case Recorded(record=DensityRecord() as record):
            row, detail = packed_row(pack(record, digest=item.digest), item.status, item.message)
            return row, msgspec.structs.replace(detail, digest=digest)
        case ImportedTest():
            kept = msgspec.json.encode({"latency": item.latency, "trials": item.trials})
            return item.row, Detail(digest, ROWS_DETAIL, kept)
        case Unrecorded():
            return unrecorded_row(item), None
        case _:
            return item


def _lost_row(test: ScannedTest, source: str, message: str) -> _Row:
    """Row of a test without a readable record, which failed even if Robot says that it passed: its figures are lost."""
    status = Status.SKIP if test.status is Status.SKIP else Status.FAIL
    lost = Unrecorded(test.long_name, test.name, test.tags, source, status, message, test.started_at)
    return unrecorded_row(lost), None


def columns_of(rows: Sequence[HeadRow]) -> dict[str, _Column]:
    """Return the columns of rows, without those that have the default of `TestRow` in all of them."""
    heads = [row.head for row in rows]
    found: dict[str, _Column] = {
        "anchor": [row.anchor for row in rows],
        "recorded": (True,) * len(rows),
        "status": [row.status for row in rows],
        "message": [row.message for row in rows],
        **dict(zip(_OF_ASKED, zip(*[row.asked.values for row in rows], strict=True), strict=True)),
    }
    for part_of, values, columns in _SECTIONS:
        parts = [part_of(head) for head in heads]
        if parts.count(None) < len(parts):
            absent = (None,) * len(columns)
            every = zip(*[absent if part is None else values(part) for part in parts], strict=True)
            for names, column in zip(columns, every, strict=True):
                if column.count(None) == len(rows):
                    found |= {name: column for name in names if DEFAULTS.get(name) is not None}
                else:
                    found |= {name: _converted(name, column) for name in names}
    found["oversubscribed"] = [
        planned or _OVERSUBSCRIBED in words
        for planned, words in zip(found["oversubscribed"], found["verdicts"], strict=True)
    ]
    if "search_prior_refuted" in found:
        priors = found.get("search_prior", (None,) * len(rows))
        found["search_prior_refuted"] = [
            None if prior is None else refuted
            for prior, refuted in zip(priors, found["search_prior_refuted"], strict=True)
        ]
    asked = [row.asked for row in rows]
    verdicts = [_verdicts(tuple([(each.kind, each.numbers) for each in head.verdict.findings])) for head in heads]
    found["latency_verdict"] = [
        about["LATENCY"] if head.counted.latency else "" for about, head in zip(verdicts, heads, strict=True)
    ]
    for name, rate, verdict, l1, l2, per_core in _RATES:
        figures = [*map(attrgetter(name), heads)]
        if figures.count(None) == len(rows):
            continue
        number = name.upper()
        found[verdict] = [
            "" if figure is None else about[number] for figure, about in zip(figures, verdicts, strict=True)
        ]
        if (rates := found.get(rate)) is not None:
            found[l1] = [pps and pps * of.l1_bits for pps, of in zip(rates, asked, strict=True)]
            found[l2] = [pps and pps * of.l2_bits for pps, of in zip(rates, asked, strict=True)]
            found[per_core] = [pps and pps / of.data_cores for pps, of in zip(rates, asked, strict=True)]
    return found


def _converted(column: str, values: _Column) -> _Column:
    convert = PLACES[column].convert
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


@lru_cache(_CACHED)
def _verdicts(findings: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, str]:
    """Verdicts of each figure of a test, by the kinds of its findings and their numbers: equal in many tests."""
    every = (Finding.model_construct(kind=kind, text="", numbers=numbers) for kind, numbers in findings)  # type: ignore[arg-type] # names
    verdict = Verdict.model_construct(findings=tuple(every))
    return {number: " ".join(verdict.of(number)) for number in _NUMBERS}


def unrecorded_row(item: Unrecorded) -> TestRow:
    """Return the row of a test without a record, from its tags."""
    tags = {tag.upper() for tag in item.tags}
    cell = Dimensions.of_tags(tags)
    sizes = [match[1].lower() for tag in tags if (match := re.fullmatch(r"NF_((?:[\dC.+]|-SHARED)+)", tag))]
    switches = [int(match[1]) for tag in tags if (match := re.fullmatch(r"(\d)C", tag))]
    frames = [tag for tag in tags if re.fullmatch(r"\d{2,4}B|IMIX.*", tag)]
    return TestRow(
        anchor=item.anchor,
        test_id=item.test_id,
        test_name=item.name,
        source=item.source,
        recorded=False,
        status=item.status,
        message=item.message,
        tags=" ".join(item.tags),
        run=item.source,
        started_at=item.started_at,
        test_type=next((kind.value for kind in TestType if kind in tags), None),
        service_type=next((kind.value for kind in ServiceType if kind in tags), None),
        nf_chains=cell.instances if cell else None,
        nf_nodes=cell.nfs if cell else None,
        nf_size=sizes[0] if sizes else None,
        vs_dtc=switches[0] if switches else None,
        frame=frames[0] if frames else None,
    )
