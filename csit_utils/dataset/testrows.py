"""Rows of tests, from records, and from Robot's data on tests without one."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from csit_utils.dataset.columns import DEFAULTS
from csit_utils.dataset.heads import PARTS, Struct, head_of, optional_part, raw_asked
from csit_utils.dataset.items import ReadError, Recorded, Unrecorded
from csit_utils.dataset.rows import PLACES, TestRow
from resources.libraries.python.model.cell import ServiceType, TestType
from resources.libraries.python.model.result import Finding, Verdict, VerdictKind, l1_bps, l2_bps

_NUMBERS = ("NDR", "PDR", "SOAK", "MRR", "ORR", "LATENCY")
_RATES = tuple(
    (
        rate.split("_")[0].upper(),
        rate,
        *(f"{rate.split('_')[0]}_{of}" for of in ("verdict", "l1_bps", "l2_bps", "pps_per_core")),
    )
    for rate in ("ndr_lower_pps", "pdr_lower_pps", "soak_lower_pps", "mrr_pps", "orr_pps")
)
"""Of each figure: its name, and the columns of its rate and of what follows from that."""
_FIGURES = attrgetter("ndr", "pdr", "soak", "mrr", "orr")
_CACHED = 4096
"""Cached cells, frames and profiles, which are equal in thousands of tests."""
_OVERSUBSCRIBED = VerdictKind.OVERSUBSCRIBED.value
Values = Mapping[str, Any]
"""Some fields of a row."""


class _Section(NamedTuple):
    """Columns of one part of a record, which is there or not as a whole."""

    part_of: Callable[[Any], Any]
    """From a `Head`; None if it is not there."""
    columns: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    conversions: tuple[tuple[str, Callable[[Any], Any]], ...]


def _sections() -> Iterator[_Section]:
    """Group all columns but those of the requested test by the innermost optional part of their path."""
    found: dict[str, dict[str, str]] = {}
    for column, at in PLACES.items():
        if not at.path.startswith("asked."):
            part = optional_part(at.path)
            found.setdefault(part, {})[column] = at.path[len(part) :].lstrip(".")
    for part, paths in found.items():
        # The name of a field twice makes a tuple of one value too.
        values = attrgetter(*paths.values(), next(iter(paths.values())))
        conversions = tuple((column, convert) for column in paths if (convert := PLACES[column].convert) is not None)
        yield _Section(_part_getter(part), tuple(paths), values, conversions)


def _part_getter(path: str) -> Callable[[Any], Any]:
    if not path:
        return lambda head: head
    outer, _, name = path.rpartition(".")
    if not outer:
        return attrgetter(name)
    outer_of, of = _part_getter(outer), attrgetter(name)
    return lambda head: of(part) if (part := outer_of(head)) is not None else None


_SECTIONS = tuple(_sections())


class _AskedColumns(NamedTuple):
    """What rows say of the requested test, equal in many tests."""

    row: Values
    """A row without what follows from the rest of its record."""
    anchor: str
    """Prefix of anchors; see `Recorded.anchor`."""
    l1_bits: float
    """L1 bits of one packet."""
    l2_bits: float


def _values(part: str, of: object) -> Values:
    """Return the columns of a part of the requested test."""
    found = {}
    for column, at in PLACES.items():
        if at.path == part or at.path.startswith(f"{part}."):
            value = attrgetter(at.path[len(part) + 1 :])(of) if at.path != part else of
            found[column] = value if at.convert is None else at.convert(value)
    return found


@lru_cache(_CACHED)
def _part(name: str, text: bytes) -> tuple[Any, Values]:
    """Return a part of the requested test, and its columns."""
    model = PARTS[name].model_validate_json(text)
    return model, _values(f"asked.{name}", model)


@lru_cache(_CACHED)
def _asked(text: bytes) -> _AskedColumns:
    """Return the requested test.

    Raises:
        ReadError: Invalid cell, frame or profile.
    """
    asked = raw_asked(text)
    row: dict[str, Any] = {**DEFAULTS, "recorded": True}
    models = {}
    try:
        for name in PARTS:
            models[name], values = _part(name, bytes(getattr(asked, name)))
            row |= values
        for name in asked.__struct_fields__:
            if name not in PARTS:
                row |= _values(f"asked.{name}", getattr(asked, name))
        TestType(row["test_type"])  # a check
    except ValueError as error:
        raise ReadError(f"asked: {error}") from error
    cell, frame = models["cell"], models["frame"]
    anchor = f"test-{cell.service_type}-{cell.locator}-{row['test_type']}-".lower()
    return _AskedColumns(row, anchor, l1_bps(1.0, frame), l2_bps(1.0, frame))


def recorded_row(item: Recorded) -> TestRow:
    """Return the row of a test with its record."""
    values = row_values(head_of(item.result, item.digest))
    values |= {"source": item.source, "status": item.status, "message": item.message, "run": item.source}
    return TestRow(**values)


def row_values(head: Struct) -> dict[str, Any]:
    """Return all fields of a row from a `Head`.

    Raises:
        ReadError: The requested test is invalid.
    """
    asked = _asked(bytes(head.asked))
    row = dict(asked.row)
    for part_of, columns, values, conversions in _SECTIONS:
        if (part := part_of(head)) is not None:
            row.update(zip(columns, values(part), strict=False))
            for column, convert in conversions:
                if (value := row[column]) is not None:
                    row[column] = convert(value)
    row["anchor"] = asked.anchor + head.counted.digest[:8].lower()
    row["oversubscribed"] = row["oversubscribed"] or _OVERSUBSCRIBED in head.verdict.kinds
    if row["search_prior"] is None:
        row["search_prior_refuted"] = None
    about = _verdicts(head.verdict.kinds, head.verdict.findings)
    row["latency_verdict"] = about["LATENCY"] if head.counted.loads else ""
    data_cores = row["data_cores"]
    for found, (name, rate, verdict, l1, l2, per_core) in zip(_FIGURES(head), _RATES, strict=True):
        row[verdict] = about[name] if found is not None else ""
        if (rate_pps := row[rate]) is not None:
            row[l1] = rate_pps * asked.l1_bits
            row[l2] = rate_pps * asked.l2_bits
            row[per_core] = rate_pps / data_cores
    return row


@lru_cache(_CACHED)
def _verdicts(kinds: tuple[str, ...], findings: tuple[Any, ...]) -> Values:
    """Verdicts of each figure of a test, which are equal in many tests."""
    every = (Finding.model_construct(kind=each.kind, text="", numbers=each.numbers) for each in findings)
    verdict = Verdict.model_construct(kinds=kinds, evidence=(), findings=tuple(every))  # type: ignore[arg-type] # names
    return {number: " ".join(verdict.of(number)) for number in _NUMBERS}


def unrecorded_row(item: Unrecorded) -> TestRow:
    """Return the row of a test without a record, from its tags."""
    tags = {tag.upper() for tag in item.tags}
    locators = [match for tag in tags if (match := re.fullmatch(r"(\d+)R(\d+)C", tag))]
    sizes = [match[1].lower() for tag in tags if (match := re.fullmatch(r"NF_([\dC.+]+)", tag))]
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
        nf_chains=int(locators[0][1]) if locators else None,
        nf_nodes=int(locators[0][2]) if locators else None,
        nf_size=sizes[0] if sizes else None,
        vs_dtc=switches[0] if switches else None,
        frame=frames[0] if frames else None,
        planned=False if item.message.startswith("PlanError") else None,
    )
