"""The part of a record that a row of a test needs, read from a packed record without unpacking, or from a whole one."""

import msgspec

from csit_utils.dataset.items import ReadError
from resources.libraries.python.model.cell import TestType
from resources.libraries.python.model.record import SCHEMA_VERSION
from resources.libraries.python.recording.earlier_versions import DENSITY_VERSIONS, was_lowered
from resources.libraries.python.studies.density.model.record import DensityRecord


class _Part(msgspec.Struct, frozen=True, gc=False):
    """Part of a record. Attributes are those of the model's type of the same name; others are ignored."""


class GoalHead(_Part, frozen=True):
    """Of a goal."""

    loss_ratio: float


class GoalResultHead(_Part, frozen=True):
    """Of a goal's result."""

    goal: GoalHead
    lower_pps: float | None
    upper_pps: float | None
    complete: bool
    lowest_tried_pps: float | None = None


class ReceiveRateHead(_Part, frozen=True):
    """Of an MRR or ORR."""

    offered_pps: float | None
    receive_rates_pps: tuple[float | None, ...]
    mean_pps: float | None
    stdev_pps: float | None


class PriorHead(_Part, frozen=True):
    """Of the prior of a search."""

    test_id: str
    started_at: str


class SearchHead(_Part, frozen=True):
    """Of a search."""

    algorithm: str
    trials: int
    aborted_trials: int
    elapsed_s: float | None
    prior: PriorHead | None = None
    prior_refuted: bool = False


class FindingHead(_Part, frozen=True):
    """Of a finding."""

    kind: str
    numbers: tuple[str, ...] = ()

    def about(self, number: str) -> bool:
        """Whether it is about a figure."""
        return not self.numbers or number in self.numbers


class VerdictHead(_Part, frozen=True):
    """Of a verdict."""

    kinds: tuple[str, ...]
    evidence: tuple[str, ...]
    findings: tuple[FindingHead, ...] = ()


class TimesHead(_Part, frozen=True):
    """Of deployment."""

    deploy_s: float | None
    remove_s: float | None = None


class Head(_Part, frozen=True):
    """Of a result."""

    test_id: str
    test_name: str
    tags: tuple[str, ...]
    started_at: str
    finished_at: str
    passed: bool
    message: str
    world: str
    simulated: bool
    testbed: str
    plan_digest: str | None
    drivers: dict[str, str]
    verdict: VerdictHead
    ndr: GoalResultHead | None = None
    pdr: GoalResultHead | None = None
    soak: GoalResultHead | None = None
    search: SearchHead | None = None
    mrr: ReceiveRateHead | None = None
    orr: ReceiveRateHead | None = None
    deployment: TimesHead | None = None
    broken: tuple[str, ...] = ()
    quarantined: str | None = None


class RawAsked(msgspec.Struct, frozen=True, gc=False):
    """The requested test as JSON parts, which are equal in many records."""

    test_type: TestType
    cell: msgspec.Raw
    frame: msgspec.Raw
    profile: msgspec.Raw


class CountedHead(_Part, frozen=True):
    """Of the counts of the packed part."""

    digest: str
    environment: str
    version: str
    revision: str | None
    planned: bool
    oversubscribed: bool
    real_cores: float | None
    trials: int
    trials_s: float
    loads: int


class PackedHead(Head, frozen=True, gc=False, kw_only=True):
    """Of a packed record, whose other keys are compressed."""

    schema_version: str
    asked: msgspec.Raw
    counted: CountedHead
    packed: str
    """Empty if it was skipped."""


_VERSIONS = {SCHEMA_VERSION, *DENSITY_VERSIONS}
_DECODER = msgspec.json.Decoder(PackedHead)
_ASKED = msgspec.json.Decoder(RawAsked)
_PACKED, _END = b'"packed":"', b'"}'


def packed_head(text: bytes | str) -> PackedHead:
    """Read a packed record.

    Raises:
        ReadError: Not a packed record of a supported version.
    """
    try:
        head = _DECODER.decode(_without_packed(text.encode() if isinstance(text, str) else text))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ReadError(str(error)) from error
    if head.schema_version not in _VERSIONS:
        raise ReadError(f"unsupported schema version {head.schema_version} of the record")
    return _by_their_name(head)


def _by_their_name(head: PackedHead) -> PackedHead:
    """Move a result that an older record calls MRR to its present name; see `earlier_versions`."""
    found = head.mrr
    if found is None or not was_lowered(
        head.schema_version, found.offered_pps or 0.0, found.mean_pps or 0.0, simulated=head.simulated
    ):
        return head
    findings = tuple(
        FindingHead(each.kind, tuple("ORR" if number == "MRR" else number for number in each.numbers))
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


def raw_asked(asked: bytes) -> RawAsked:
    """Read the requested test.

    Raises:
        ReadError: A part is missing.
    """
    try:
        return _ASKED.decode(asked)
    except msgspec.DecodeError as error:
        raise ReadError(f"asked: {error}") from error


def head_of(result: DensityRecord) -> Head:
    """Return the head of a whole record."""
    return msgspec.convert(result, Head, from_attributes=True)
