"""FD.io CSIT's results: of one test, `*.info.json`, model 1.x, and Parquet tables of many.

Definitions are those of the model's schema (FD.io CSIT, resources/model_schema/test_case.schema.yaml, and before 2023
docs/model): rates are aggregates of both directions, NDR allows no loss, PDR 0.5 %, a soak 1e-7 on average, and what
the generator did not send counts as lost. Up to model 1.4 the bounds are offered loads. Since 1.5 there is only a
lower bound: the rate forwarded at a load of whose trials half may lose more. Distance of bounds and length of trials
are not in the file, but in the keywords of the same release (performance_utils.robot): 0.5 %
apart, and trials of 1 s, before 1.5 of 30 s.

A row of a table of csit.infra.etl (`trending`, `iterative_*`, `coverage_*`) is one test: the fields of its
`*.info.json`, nested ones by names joined with underscores. Tables of 2021 have other names for four of them.
`trending` has no tags, and older tables no hosts: the cell follows from the name of the test, and the testbed from that
of the job.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field

from csit_utils.dataset.foreign.parts import (
    UNKNOWN_TESTBED,
    Amount,
    ForeignLatency,
    ForeignPart,
    anchor_of,
    derived,
    frame_of,
    goal_columns,
    latency_row,
    read_part,
    single_frame,
    utc,
)
from csit_utils.dataset.foreign.place import Place, vswitch_columns
from csit_utils.dataset.goal_words import FORWARDED, ONE_WAY, GoalWords, mrr_words, remark_columns
from csit_utils.dataset.items import ImportedTest, Problem, ReadError, Status
from csit_utils.dataset.rows import LatencyRow, TestRow, frame_text
from csit_utils.dataset.store.bounded_files import opened_table
from resources.libraries.python.model.request.cell import Dimensions, Frame, ServiceType
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.recording.marker import plain_message

_CELL = re.compile(r"-(\d{1,3})(ch|pl)-\d{1,4}(?:mif|vh)-(\d{1,4})(dcr|vm)(\d{1,2})t(?:-|$)")
_VSWITCH = re.compile(r"(?:^|-)(\d{1,2}c)-")


def place_of(tags: Sequence[str]) -> tuple[dict[str, Any], Place | None]:
    """Return the cell from the tags of a test, also as columns of `TestRow`; None for tests without NFs.

    `{r}R{c}C` is row and column, VM or DOCKER with CHAIN, PIPELINE or PIPE the service type, `{n}C` the data cores
    of the vSwitch, and `{n}VM{t}T` or `{n}DCR{t}T` the data threads of an NF: two threads are a core, unless `{t}T{n}C`
    is present, which means one thread per core.
    """
    known = {tag.upper() for tag in tags}
    service = _service_type(known)
    dimensions = Dimensions.of_tags(known)
    switch = _matched(known, r"(\d{1,2})C")
    vs_dtc = int(switch[1]) if switch else None
    if service is None or dimensions is None or not all(dimensions):
        return vswitch_columns(vs_dtc), None
    place = Place(service, dimensions, _nf_size(known), vs_dtc)
    return place.columns, place


def tags_of_name(name: str) -> list[str]:
    """Return the tags that CSIT gives a density test of this name; none for other tests."""
    found = _CELL.search(name)
    if found is None:
        return []
    instances, kind, nfs, host, threads = found.groups()
    if not int(instances) or int(nfs) % int(instances):
        return []
    switch = _VSWITCH.search(name)
    return [
        f"{int(instances)}R{int(nfs) // int(instances)}C",
        "CHAIN" if kind == "ch" else "PIPELINE",
        "VM" if host == "vm" else "DOCKER",
        f"{nfs}{host.upper()}{threads}T",
        *([switch[1].upper()] if switch else []),
    ]


def _service_type(tags: set[str]) -> ServiceType | None:
    if tags & {"PIPELINE", "PIPE"}:
        return ServiceType.CSP if "DOCKER" in tags else None
    if "CHAIN" not in tags:
        return None
    return ServiceType.VSC if "VM" in tags else ServiceType.CSC if "DOCKER" in tags else None


def _nf_size(tags: set[str]) -> NfSize | None:
    threads = _matched(tags, r"\d{1,4}(?:VM|DCR)(\d{1,2})T")
    layout = _matched(tags, r"(\d{1,3})T(\d{1,3})C")
    if threads is None or (layout is not None and int(layout[1]) != 2 * int(layout[2])):
        return None
    count = int(threads[1])
    if count % 2 == 0:
        return NfSize.of(count / 2) if count else None
    return NfSize.HALF if count == 1 else None


def _matched(tags: set[str], pattern: str) -> re.Match[str] | None:
    """The tag of this form; None without one, or with several different ones."""
    found = [match for tag in tags if (match := re.fullmatch(pattern, tag))]
    return found[0] if len(found) == 1 else None


class RateWithUnit(ForeignPart):
    """A number with its unit."""

    value: Amount = None
    unit: str | None = None


class RateOnly(ForeignPart):
    """A rate; bandwidths beside it follow from it."""

    rate: RateWithUnit


class RateBounds(ForeignPart):
    """Of a searched rate."""

    lower: RateOnly
    upper: RateOnly | None = None


class Trials(ForeignPart):
    """Receive rates of the trials of MRR."""

    values: tuple[Amount, ...] = Field((), min_length=1)
    avg: Amount = None
    stdev: Amount = None
    unit: str | None = None


class MrrResult(ForeignPart):
    """MRR."""

    rate: Trials


class Latencies(ForeignPart):
    """In one direction, by percent of PDR."""

    pdr_0: ForeignLatency | None = None
    pdr_10: ForeignLatency | None = None
    pdr_50: ForeignLatency | None = None
    pdr_90: ForeignLatency | None = None


class CsitFigures(ForeignPart):
    """The figures, by what was measured."""

    receive_rate: MrrResult | None = None
    ndr: RateBounds | None = None
    pdr: RateBounds | None = None
    critical_rate: RateBounds | None = None
    latency_forward: Latencies | None = None
    latency_reverse: Latencies | None = None


class Test(ForeignPart):
    """The whole file."""

    __test__ = False  # not a pytest class

    version: str
    test_id: str = Field(min_length=3)
    test_name_long: str | None
    test_name_short: str | None = None
    test_type: str | None
    start_time: str | None
    end_time: str | None
    passed: Annotated[bool, Field(strict=True)] | None
    message: str | None = None
    tags: tuple[str | None, ...] = ()
    hosts: tuple[str | None, ...] = ()
    dut_type: str | None = None
    dut_version: str | None = None
    tg_type: str | None = None
    tg_version: str | None = None
    result: CsitFigures | None = None
    """None in tests that ended before they had measured anything."""


ORIGIN = "fdio-csit"
IMIX = ((64, 7), (570, 4), (1518, 1))
"""IMIX_v4_1: sizes in bytes, and weights."""
_LOSS_RATIOS = {"NDR": 0.0, "PDR": 0.005, "SOAK": 1e-7}
_ESTIMATE = "bayesian estimate"
_COUNTED = re.compile(r"\d+(ch|pl|mif|vh|(dcr|vm)\d+t)")
"""Parts of a suite's name with numbers of chains, pipelines, interfaces and NFs."""
_IDLE_PPS = 9000.0
"""Per direction: load of latency trials without other traffic, the least one of any latency trial."""


def read_csit(data: dict[str, Any], source: str) -> Iterator[ImportedTest]:
    """Yield the test of one file.

    Raises:
        ReadError: Unknown version of the model, or not its structure.
    """
    version = re.fullmatch(r"1\.(\d{1,3})\.\d{1,3}", str(data["version"])[:20])
    if version is None:
        raise ReadError(f"model version {str(data['version'])[:20]!r} of CSIT is not supported, only 1.x")
    remarks: list[str] = []
    test = read_part(Test, data, remarks)
    found = test.result or CsitFigures()
    tags = tuple(tag for tag in test.tags if tag)
    name = test.test_name_long or test.test_id
    forwarded = int(version[1]) >= 5
    columns, place = place_of(tags)
    frame = _frame(name, tags)
    one_way = found.latency_forward is not None and found.latency_reverse is None
    anchor = anchor_of("csit", data)
    if test.passed is None:
        remarks.append("counts as failed: the file does not say whether it passed")
    elif test.passed and test.result is None:
        remarks.append("the file has no result")
    figures, goals = _figures(found, forwarded, frame, place.data_cores if place else None, remarks)
    figures |= remark_columns(figures, remarks)
    latency = tuple(_latency(found, name, anchor, one_way))
    row = TestRow(
        anchor=anchor,
        test_id=test.test_id,
        test_name=name,
        source=source,
        recorded=True,
        status=Status.PASS if test.passed else Status.FAIL,
        message=plain_message(test.message or ""),
        tags=" ".join(tags),
        origin=ORIGIN,
        run=_run(source, test.test_id),
        started_at=utc(test.start_time, remarks),
        finished_at=utc(test.end_time, remarks),
        world="lab",
        simulated=False,
        testbed="+".join(sorted(filter(None, test.hosts))) or UNKNOWN_TESTBED,
        drivers=", ".join(_drivers(test, tags, density=place is not None)),
        version=f"{test.dut_type or 'none'} {test.dut_version or ''}".strip(),
        revision=f"CSIT model {test.version}",
        goals="; ".join([*goals, *([ONE_WAY] if one_way else [])]),
        test_type=test.test_type.upper() if test.test_type else None,
        frame=frame_text(frame) if frame else None,
        frame_mean_bytes=frame.mean_bytes if frame else None,
        evidence="\n".join(remarks),
        **columns,
        **figures,
    )
    yield ImportedTest(row, latency)


def _figures(
    result: CsitFigures, forwarded: bool, frame: Frame | None, cores: float | None, remarks: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Columns and definitions of goals."""
    columns: dict[str, Any] = {}
    goals: list[str] = []
    units: set[str] = set()
    for name, found in (("NDR", result.ndr), ("PDR", result.pdr), ("SOAK", result.critical_rate)):
        if found is None:
            continue
        estimated = name == "SOAK"
        words = GoalWords(
            name,
            _LOSS_RATIOS[name],
            exceed_ratio=0.5 if forwarded and not estimated else None,
            relative_width=None if estimated else 0.005,
            trial_s=None if estimated else 1.0 if forwarded else 30.0,
            given_as=_ESTIMATE if estimated else FORWARDED if forwarded else None,
        )
        goals.append(words.text)
        lower, upper = found.lower.rate, found.upper.rate if found.upper else None
        if lower.unit != "pps":
            units.add(lower.unit or "an unknown unit")
            continue
        if lower.value is None:
            continue
        above = upper.value if upper and upper.unit == "pps" else None
        bound = above if above is not None and above >= lower.value else None
        complete = None if bound is None else True
        columns |= goal_columns(name.lower(), _LOSS_RATIOS[name], lower.value, bound, complete, frame, cores)
    if result.receive_rate is not None:
        rate = result.receive_rate.rate
        trials = sum(value is not None for value in rate.values) or None
        goals += [] if trials is None else [mrr_words(trials, None)]
        if rate.unit == "pps":
            columns |= {"mrr_pps": rate.avg, "mrr_stdev_pps": rate.stdev, "mrr_trials": trials}
            columns |= derived("mrr", rate.avg, frame, cores)
        else:
            units.add(rate.unit or "an unknown unit")
    if units:
        remarks.append(f"rates in {', '.join(sorted(units))} are not packet rates and are left out")
    return columns, goals


def _latency(result: CsitFigures, name: str, anchor: str, one_way: bool) -> Iterator[LatencyRow]:
    if result.pdr is None or result.pdr.lower.rate.unit != "pps" or (pdr := result.pdr.lower.rate.value) is None:
        return
    idle = _IDLE_PPS * (1 if one_way else 2)
    for direction, found in (("forward", result.latency_forward), ("reverse", result.latency_reverse)):
        for percent in (0, 10, 50, 90):
            one: ForeignLatency | None = getattr(found, f"pdr_{percent}", None)
            if one is not None:
                yield latency_row(
                    one,
                    anchor=anchor,
                    test_name=name,
                    load=f"PDR{percent}",
                    load_pps=max(idle, pdr * percent / 100),
                    direction=direction,
                )


def _frame(name: str, tags: Sequence[str]) -> Frame | None:
    """Frame size from the test name, which starts with NIC and frame size, else from tags."""
    named = re.search(r"(?:^|-)(imix|\d{2,4}b)-", name.lower())
    words = [named[1]] if named else [tag.lower() for tag in tags]
    for word in words:
        if word == "imix":
            return frame_of("IMIX", IMIX)
        if re.fullmatch(r"\d{2,4}b", word):
            return single_frame(int(word[:-1]))
    return None


def _drivers(test: Test, tags: Sequence[str], *, density: bool) -> Iterator[str]:
    """Properties by which testbeds differ, besides hosts and sizes."""
    yield f"DUT {test.dut_type or 'none'}"
    if test.tg_type:
        yield f"generator {test.tg_type}"
    for prefix, word in (("NIC_", "NIC"), ("DRV_", "NIC driver")):
        for tag in tags:
            if tag.startswith(prefix):
                yield f"{word} {tag.removeprefix(prefix)}"
    if density:
        parts = (test.test_name_short or "").lower().split("-")
        yield f"path {'-'.join(part for part in parts if not _COUNTED.fullmatch(part))}"


def _run(source: str, test_id: str) -> str:
    """The directory above CSIT's tree of suites, which has a directory for each part of a suite's name."""
    head = test_id.split(".", maxsplit=1)[0]
    path = source.replace("\\", "/")
    at = path.rfind(f"/{head}/")
    return path[:at] if at > 0 else path.rpartition("/")[0] or path


NEEDED = ("test_id", "version", "start_time")
"""Columns that all of these tables have, besides results."""
_RENAMED = {"status": "passed", "test_name": "test_name_long", "result_type": "test_type"}
_PLAIN = (
    *("test_id", "test_name_long", "test_name_short", "test_type", "version", "start_time", "end_time", "passed"),
    *("dut_type", "dut_version", "tg_type", "tg_version", "hosts", "tags", "message"),
)
_FIGURES = re.compile(
    r"result_(?:(receive_rate)_(rate)_(avg|stdev|unit|values)|(ndr|pdr|critical_rate)_(lower|upper)_(rate)_(unit|value)"
    r"|(latency_(?:forward|reverse))_(pdr_(?:0|10|50|90))_(avg|hdrh|max|min|unit))"
)
"""Columns of results that are read; bandwidths are computed instead, as for files."""
_READ = {*_PLAIN, *_RENAMED, "job", "build"}
_RUNS = {"job", "build", "start_time", "duration"}
_TOGETHER = 256
"""Rows that become Python's at once."""
_MAX_FAULTS = 10
"""Rows with a problem of their own."""
_TESTBED = re.compile(r"-(\d+n\d?-\w+)$")


def read_table(content: bytes, source: str) -> Iterator[ImportedTest | Problem]:
    """Yield the tests of a Parquet file, and a problem for each of the first rows that are none.

    Raises:
        ReadError: The file is damaged, or no such table.
    """
    number = faults = 0
    with opened_table(content, _is_read) as file:
        if _RUNS.issuperset(file.schema.names):
            return  # `stats`: runs without their tests
        if not is_table(file.schema.names):
            raise ReadError(f"no table of FD.io CSIT's results: those have {', '.join(NEEDED)} and result_ columns")
        for row in (row for group in range(file.count) for row in _rows(file.read(group))):
            number += 1
            try:
                yield from read_row(row, f"{source} row {number}")
            except ReadError as error:
                faults += 1
                if faults <= _MAX_FAULTS:
                    yield Problem(source, f"{source}: row {number}: {error}")
    if faults > _MAX_FAULTS:
        yield Problem(source, f"{source}: {faults:,} of {number:,} rows are no results of tests")


def _is_read(column: str) -> bool:
    return column in _READ or _FIGURES.fullmatch(column) is not None


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows of a group. Times are texts, so that one that is out of range costs only itself."""
    times = [column.name for column in table.schema if pa.types.is_timestamp(column.type)]
    for name in times:
        at, column = table.schema.names.index(name), table[name]
        utc = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))  # values with a zone are in UTC too
        table = table.set_column(at, name, utc.cast(pa.string()))
    for batch in table.to_batches(_TOGETHER):
        try:
            rows = batch.to_pylist()
        except (ValueError, OverflowError) as error:
            raise ReadError(f"a value that no result has: {error}") from error
        for row in rows:
            yield row | {name: f"{row[name]}+00:00" for name in times if row[name] is not None}


def is_table(columns: Collection[str]) -> bool:
    """Whether a Parquet file with these columns is such a table."""
    return set(columns).issuperset(NEEDED) and any(map(_FIGURES.fullmatch, columns))


def read_row(row: Mapping[str, Any], source: str) -> Iterator[ImportedTest]:
    """Yield the test of a row, read as its file would be.

    `row`: values by column, times as texts.
    `source`: the table, and where in it the row is.

    Raises:
        ReadError: Unknown version of the model, or not its structure.
    """
    # Null and NaN, which pandas writes for it, are unknown.
    row = {name: value for name, value in row.items() if value is not None and value == value}  # noqa: PLR0124 - NaN
    named = {_RENAMED.get(name, name): value for name, value in row.items()}
    data: dict[str, Any] = {name: named.get(name) for name in _PLAIN}
    data["hosts"] = data["hosts"] or [_testbed(named)]
    # The id ends in the name of the test, without the NIC.
    data["test_name_long"] = data["test_name_long"] or str(data["test_id"]).rpartition(".")[2]
    data["tags"] = data["tags"] or tags_of_name(str(data["test_name_long"]).lower())
    result: dict[str, Any] = {}
    for column, value in row.items():
        found = _FIGURES.fullmatch(column)
        if found is not None:
            *path, last = (part for part in found.groups() if part)
            place = result
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value
    data["result"] = result or None
    run = " ".join(str(row[name]) for name in ("job", "build") if name in row)
    for item in read_csit(data, source):
        yield replace(item, row=replace(item.row, run=run or item.row.run))


def _testbed(row: Mapping[str, Any]) -> str | None:
    """Return the testbed that the name of a job ends in, such as 2n-skx."""
    found = _TESTBED.search(str(row.get("job") or ""))
    return found[1] if found else None
