"""The part of a record that rows of tests need, read from a packed record without unpacking.

It follows from the columns: the types here have those fields of the record's types that a column has a path to.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.rows import PLACES
from resources.libraries.python.model.record import SCHEMA_VERSION
from resources.libraries.python.model.result import Asked
from resources.libraries.python.recording.earlier_versions import DENSITY_VERSIONS, was_lowered
from resources.libraries.python.recording.packed import Counted, light
from resources.libraries.python.studies.density.model.record import DensityRecord

_ALSO_READ = (
    "schema_version",
    "passed",
    "message",
    "verdict.findings.kind",
    "verdict.findings.numbers",
    "counted.digest",
    "counted.loads",
)
"""Fields for columns that depend on several of them."""
Struct = Any
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
Head: Any = _struct(DensityRecord, _TREE, asked=msgspec.Raw, counted=_COUNTED)
PackedHead: Any = msgspec.defstruct("PackedHead", [("packed", str)], bases=(Head,), frozen=True, gc=False, kw_only=True)
"""Its `packed` is empty if it was skipped."""
PARTS: dict[str, Any] = {
    name: field.annotation
    for name, field in Asked.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}
"""Types of the parts of a requested test, which are equal in many records: they are kept as text and read once."""
RawAsked: Any = _struct(Asked, {name: {} for name in _ASKED if name not in PARTS}, **dict.fromkeys(PARTS, msgspec.Raw))

_VERSIONS = {SCHEMA_VERSION, *DENSITY_VERSIONS}
_HEADS, _PACKED_HEADS, _RAW = (msgspec.json.Decoder(each) for each in (Head, PackedHead, RawAsked))
_PACKED, _END = b'"packed":"', b'"}'


def optional_part(path: str) -> str:
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


def packed_head(text: bytes | str) -> Struct:
    """Read a packed record; return a `PackedHead`.

    Raises:
        ReadError: Not a packed record of a supported version.
    """
    try:
        head = _PACKED_HEADS.decode(_without_packed(text.encode() if isinstance(text, str) else text))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ReadError(str(error)) from error
    if head.schema_version not in _VERSIONS:
        raise ReadError(f"unsupported schema version {head.schema_version} of the record")
    return _by_their_name(head)


def head_of(result: DensityRecord, digest: str) -> Struct:
    """Return the `Head` of a whole record with a digest."""
    return _HEADS.decode(light(result, digest))


def _by_their_name(head: Struct) -> Struct:
    """Move a result that an older record calls MRR to its present name; see `earlier_versions`."""
    found = head.mrr
    if found is None or not was_lowered(
        head.schema_version, found.offered_pps or 0.0, found.mean_pps or 0.0, simulated=head.simulated
    ):
        return head
    findings = tuple(
        msgspec.structs.replace(each, numbers=tuple("ORR" if number == "MRR" else number for number in each.numbers))
        for each in head.verdict.findings
    )
    verdict = msgspec.structs.replace(head.verdict, findings=findings)
    return msgspec.structs.replace(head, mrr=None, orr=found, verdict=verdict)


def _without_packed(text: bytes) -> bytes:
    """A record with an empty packed string, which a decoder would scan byte by byte."""
    # Searching for one byte from the end runs at memory speed.
    begin = text.rfind(b'"', 0, -len(_END)) + 1
    is_last = text.endswith(_END) and text.endswith(_PACKED, 0, begin) and text.find(b"\\", begin) < 0
    return text[:begin] + _END if is_last else text


def raw_asked(asked: bytes) -> Struct:
    """Read the requested test; return a `RawAsked`.

    Raises:
        ReadError: A part is missing.
    """
    try:
        return _RAW.decode(asked)
    except msgspec.DecodeError as error:
        raise ReadError(f"asked: {error}") from error
