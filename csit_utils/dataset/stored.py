"""Contents of a dataset on disk: rows are read as a whole, records one at a time on demand."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

from csit_utils.dataset import characterized, columns
from csit_utils.dataset.flatten import hop_rows, instance_rows, latency_rows, thread_rows
from csit_utils.dataset.items import (
    Characterized,
    Dataset,
    Foreign,
    Item,
    Problem,
    ReadError,
    Recorded,
    Refusal,
    Status,
    Unrecorded,
)
from csit_utils.dataset.layout import DETAILS, TESTS, Import, Layout, Part, environment
from csit_utils.dataset.records import parse_density
from csit_utils.dataset.refused import from_dataset
from csit_utils.dataset.rows import HopRow, InstanceRow, LatencyRow, TestRow, ThreadRow
from resources.libraries.python.model.evidence import Itemized, Located
from resources.libraries.python.model.goal import GoalResult
from resources.libraries.python.model.result import Environment, LatencyAtLoad, ReceiveRate, Verdict
from resources.libraries.python.model.trial import TrialResult
from resources.libraries.python.recording.earlier_versions import with_renamed_rates
from resources.libraries.python.recording.packed import NotUnpacked, unpack
from resources.libraries.python.studies.density.model.record import DensityRecord

_Row = TypeVar("_Row")
_TYPES: dict[str, TypeAdapter[Any]] = {
    "verdict": TypeAdapter(Verdict),
    "ndr": TypeAdapter(GoalResult | None),
    "pdr": TypeAdapter(GoalResult | None),
    "soak": TypeAdapter(GoalResult | None),
    "mrr": TypeAdapter(ReceiveRate | None),
    "orr": TypeAdapter(ReceiveRate | None),
    "latency": TypeAdapter(tuple[LatencyAtLoad, ...]),
    "itemized": TypeAdapter(tuple[Itemized, ...]),
    "located": TypeAdapter(Located | None),
    "trials": TypeAdapter(tuple[TrialResult, ...]),
}
"""Keys of a record that rows of latency, instances, hops and threads need."""
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Stored:
    """Implementation of `contents.Contents`.

    Args:
        layout: The dataset.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    @cached_property
    def _imports(self) -> Sequence[Import]:
        return self._layout.imports()

    @cached_property
    def _found(self) -> tuple[Sequence[TestRow], Mapping[str, Part]]:
        """Rows, and the parts with their details. A test imported from different files counts once."""
        rows: dict[str, TestRow] = {}
        parts: dict[str, Part] = {}
        for each in self._imports:
            for part in each.parts:
                table = pq.read_table(self._layout.path(TESTS, part), partitioning=None, use_threads=False)
                for row in columns.rows_of_table(table):
                    if row.anchor not in rows:
                        rows[row.anchor], parts[row.anchor] = row, part
        # Stable sort: tests of a file without times keep their order.
        ordered = sorted(rows.values(), key=lambda row: (not row.recorded, row.started_at or "", row.run))
        return ordered, parts

    @property
    def tests(self) -> Sequence[TestRow]:
        """One row per test by time, those without a record last."""
        return self._found[0]

    @cached_property
    def refused(self) -> Sequence[Refusal]:
        """Cells that do not fit on their testbed."""
        return [one for each in self._imports for one in from_dataset(each.source, each.refused)]

    @cached_property
    def problems(self) -> Sequence[Problem]:
        """Inputs that could not be read in full when they were imported."""
        return [Problem(each.source, text) for each in self._imports for text in each.problems]

    @cached_property
    def environments(self) -> Mapping[str, Environment]:
        """Environments by digest."""
        every = {digest: raw for each in self._imports for digest, raw in each.environments.items()}
        return {digest: environment(raw) for digest, raw in every.items()}

    @cached_property
    def characterizations(self) -> Sequence[Characterized]:
        """Records of other studies by time.

        Raises:
            ReadError: A record is damaged.
        """
        files = (self._layout.characterizations(each) for each in self._imports if each.characterizations)
        found = {item.anchor: item for path in files for item in characterized.read(path)}
        return sorted(found.values(), key=lambda item: item.record.started_at)

    def instances(self, anchors: Collection[str] | None = None) -> Iterator[InstanceRow]:
        """Throughput by instance and direction."""
        return self._rows(instance_rows, ("itemized", "trials", "ndr", "pdr", "soak", "mrr", "orr"), anchors)

    def latency(self, anchors: Collection[str] | None = None) -> Iterator[LatencyRow]:
        """Latency by load, instance and direction; without anchors the histograms are left out."""
        for row in self._rows(latency_rows, ("latency",), anchors):
            yield row if anchors is not None else replace(row, histogram=None)
        for _, _, kind, text in self._details(anchors):
            if kind == columns.ROWS:
                for one in msgspec.json.decode(text, type=_Rows).latency:
                    yield one if anchors is not None else replace(one, histogram=None)

    def hops(self, anchors: Collection[str] | None = None) -> Iterator[HopRow]:
        """Losses by hop."""
        return self._rows(hop_rows, ("located",), anchors)

    def threads(self, anchors: Collection[str] | None = None) -> Iterator[ThreadRow]:
        """Time of data threads."""
        return self._rows(thread_rows, ("located",), anchors)

    def record(self, anchor: str) -> Recorded:
        """Return the record of one test.

        Raises:
            KeyError: No such test, or it has no record.
            ReadError: Its record is damaged.
        """
        for _, row, kind, text in self._details([anchor]):
            if kind == columns.RECORD:
                return self._recorded(row, text)
        raise KeyError(anchor)

    def items(self) -> Iterator[Item]:
        """Yield all items with whole records."""
        yield from self.refused
        yield from self.problems
        yield from self.characterizations
        bare = dict(self._by_anchor)
        for _, row, kind, text in self._details(None):
            del bare[row.anchor]
            if kind == columns.RECORD:
                yield self._recorded(row, text)
            else:
                yield Foreign(row, msgspec.json.decode(text, type=_Rows).latency)
        for row in bare.values():
            tags = tuple(row.tags.split())
            status = Status(row.status)
            yield Unrecorded(row.test_id, row.test_name, tags, row.source, status, row.message, row.started_at)

    def _recorded(self, row: TestRow, text: str) -> Recorded:
        result, digest = parse_density(text, f"{self._layout.folder}: test '{row.test_id}'")
        return Recorded(result, row.source, Status(row.status), row.message, digest)

    def _rows(
        self, rows: Callable[[Dataset], Iterable[_Row]], keys: tuple[str, ...], anchors: Collection[str] | None
    ) -> Iterator[_Row]:
        for _, row, kind, text in self._details(anchors):
            if kind == columns.RECORD:
                partial = _Partial(_partial(text, row, keys), row.anchor)
                yield from rows(Dataset(recorded=[partial]))  # type: ignore[list-item] # has what rows are made of

    def _details(self, anchors: Collection[str] | None) -> Iterator[tuple[Part, TestRow, str, str]]:
        """Part, row, kind and text of the details of tests."""
        _, parts = self._found
        wanted: dict[Part, set[str]] = {}
        for anchor in parts if anchors is None else anchors:
            if anchor in parts:
                wanted.setdefault(parts[anchor], set()).add(anchor)
        for part, names in wanted.items():
            file = pq.ParquetFile(self._layout.path(DETAILS, part))
            for group in range(file.num_row_groups):
                here = file.read_row_group(group, columns=["anchor"]).column("anchor").to_pylist()
                if names.isdisjoint(here):
                    continue
                table = file.read_row_group(group, columns=["kind", "record"])
                kinds, records = table.column("kind"), table.column("record")
                for at, anchor in enumerate(here):
                    if anchor in names:
                        names.discard(anchor)
                        yield part, self._by_anchor[anchor], kinds[at].as_py(), records[at].as_py()

    @cached_property
    def _by_anchor(self) -> Mapping[str, TestRow]:
        return {row.anchor: row for row in self.tests}


class _Rows(msgspec.Struct):
    latency: tuple[LatencyRow, ...] = ()


@dataclass(frozen=True)
class _Partial:
    """A test with some keys of its record; its anchor is that of the row."""

    result: DensityRecord
    anchor: str


def _partial(text: str, row: TestRow, keys: tuple[str, ...]) -> DensityRecord:
    """Return a record with only these keys, its name and its verdict.

    Raises:
        ReadError: The record is damaged.
    """
    try:
        light = _KEYS.decode(text)
        heavy = _KEYS.decode(unpack(msgspec.json.decode(light["packed"], type=str)))
        every = {**light, **heavy}
        # Trials are the largest part; older records need them for itemized figures.
        left_out = {"trials"} if bytes(every.get("itemized", b"[]")) != b"[]" else set()
        wanted = ("schema_version", "simulated", "verdict", *keys)
        read = {key: bytes(every[key]) for key in wanted if key in every and key not in left_out}
        if bytes(light["schema_version"]).startswith(b'"1.'):
            renamed = with_renamed_rates({key: json.loads(part) for key, part in read.items()})
            read = {key: json.dumps(part).encode() for key, part in renamed.items()}
        found = {key: adapter.validate_json(read[key]) for key, adapter in _TYPES.items() if key in read}
    except (NotUnpacked, msgspec.DecodeError, ValidationError, KeyError) as error:
        raise ReadError(f"{row.source}: test '{row.test_id}': the record is damaged: {error}") from error
    return DensityRecord.model_construct(test_name=row.test_name, **found)
