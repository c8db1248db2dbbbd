"""`export --uti`: files that FD.io CSIT's ETL finds and its dashboard takes apart, with CSIT's units."""

import functools
import gzip
import json
from pathlib import Path
from statistics import pstdev
from typing import Any

import jsonschema
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.analysis.latency import histogram_of, merge, percentiles, rescaled
from csit_utils.commands.results.export import export
from csit_utils.dataset.items import ImportedTest
from csit_utils.dataset.load import read_foreign
from csit_utils.report.uti import info_file
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType, TestType
from resources.libraries.python.model.request.goal import Goal, GoalResult
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.density.model import DensityRecord
from tests.unit.csit_utils import builders
from tests.unit.examples import share
from tests.unit.planning.labs import csit_lab


def closed(*optional: str, **properties: object) -> dict[str, object]:
    """An object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def number(unit: str) -> dict[str, object]:
    return closed(value={"type": "number", "minimum": 0}, unit={"const": unit})


RATE = closed("bandwidth", rate=number("pps"), bandwidth=number("bps"))
BOUNDS = closed("upper", lower=RATE, upper=RATE)
COUNT = {"type": "integer", "minimum": 0}
NUMBERS = closed(min=COUNT, avg=COUNT, max=COUNT | {"minimum": 1}, hdrh={"type": "string"}, unit={"const": "us"})
LATENCY = closed(**dict.fromkeys(("pdr_0", "pdr_10", "pdr_50", "pdr_90"), NUMBERS))
TEXT, TIME = {"type": "string"}, {"type": "string", "format": "date-time"}
RESULTS = [
    closed(type={"const": "unknown"}),
    closed(type={"const": "mrr"}, receive_rate={"type": "object", "required": ["rate"]}),
    closed(type={"const": "soak"}, critical_rate=BOUNDS),
    closed(
        "latency_forward", "latency_reverse", type={"const": "ndrpdr"}, ndr=BOUNDS, pdr=BOUNDS,
        latency_forward=LATENCY, latency_reverse=LATENCY,
    ),
]  # fmt: skip
NAMES = ("dut_type", "dut_version", "test_id", "test_name_long", "test_name_short", "tg_type", "tg_version")
TEXTS = {"type": "array", "items": TEXT}
TEST = closed(
    **dict.fromkeys(NAMES, TEXT | {"minLength": 1}), hosts=TEXTS | {"minItems": 1}, telemetry=TEXTS, tags=TEXTS,
    duration={"type": "number", "minimum": 0}, start_time=TIME, end_time=TIME, message=TEXT, test_documentation=TEXT,
    passed={"type": "boolean"}, test_type={"enum": ["mrr", "ndrpdr", "soak"]}, version={"const": "1.5.1"},
    result={"oneOf": RESULTS},
) | {
    "oneOf": [
        {"properties": {"passed": {"const": True}, "message": {"const": ""}}},
        {"properties": {"passed": {"const": False}, "message": {"minLength": 1}}},
    ],
}  # fmt: skip
"""What we understand CSIT's model 1.5.1 to ask of the types that are written; their file itself is not copied here."""
SOAK = Goal(name="SOAK", loss_ratio=1e-7)


def content(result: DensityRecord) -> dict[str, Any]:
    """What is written of a record, as it is read back; it keeps the model."""
    made = info_file(result)
    read: dict[str, Any] = json.loads(json.dumps(made.content))
    jsonschema.Draft202012Validator(TEST, format_checker=jsonschema.FormatChecker()).validate(read)
    return read


@functools.cache
def measured(histograms: bool = False) -> DensityRecord:
    """A record of two service instances; histograms take a while to make."""
    return builders.result(ServiceType.CSC, 2, 1, histograms=histograms)


def on_a_lab(**keys: Any) -> DensityRecord:
    """A record of two chains of one NF on a testbed as CSIT has them."""
    topology, cell = csit_lab(**keys), Cell(service_type=ServiceType.CSC, nf_chains=2, nf_nodes=1)
    nodes = {"TG": builders.ENVIRONMENT.model_copy(update={"hostname": "tg-1"})}
    changes = {
        "plan": make_plan(topology, cell, topology.dut.layout), "drivers": {"vswitch": "vpp", "generator": "trex"},
        "facts": {"vswitch": {"vswitch": "VPP 26.02"}, "generator": {"generator": "TRex 3.08"}},
        "environment": builders.ENVIRONMENT.model_copy(update={"nodes": nodes}), "simulated": False,
    }  # fmt: skip
    return measured().model_copy(update=changes)


def test_names_of_a_lab_are_those_that_the_dashboard_takes_apart() -> None:
    read = content(on_a_lab())
    area = "tests.vpp.perf.nfv_density.dcr_memif.chain"
    suite = "avf-eth-l2bd-2ch-4mif-2dcr2t-vppip4"
    assert read["test_id"] == f"{area}.2n-25ge2p1xxv710-{suite}-ndrpdr.64b-1c-{suite}-ndrpdr"
    assert (read["test_name_long"], read["test_name_short"]) == (f"xxv710-64b-2t1c-{suite}", suite)
    assert (read["dut_type"], read["dut_version"]) == ("vpp", "VPP 26.02")
    assert (read["tg_type"], read["tg_version"], read["hosts"]) == ("trex", "TRex 3.08", ["bench-1", "tg-1"])
    read = content(on_a_lab(model="Intel-E810CQ", driver="ice", vfs=0))
    assert ".2n-100ge2p1e810cq-eth-l2bd-2ch" in read["test_id"], "without CSIT's default driver"
    assert read["test_name_short"] == "eth-l2bd-2ch-4mif-2dcr2t-vppip4"


def test_rates_are_what_was_forwarded_and_latency_is_in_microseconds() -> None:
    record = measured(histograms=True)
    read = content(record)["result"]
    lower = read["ndr"]["lower"]
    assert lower["rate"]["value"] == record.ndr.throughput_pps
    assert lower["bandwidth"]["value"] == pytest.approx(lower["rate"]["value"] * 84 * 8)
    at = next(each for each in record.latency if each.label == "PDR50")
    flows = [flow for flow in at.flows if flow.direction == "forward"]
    written = read["latency_forward"]["pdr_50"]
    assert written["min"] == round(min(flow.min_ns or 0 for flow in flows) / 1000)
    assert written["max"] == round(max(flow.max_ns or 0 for flow in flows) / 1000)
    histogram = HdrHistogram.decode(written["hdrh"])
    assert histogram.get_total_count() == sum(flow.received for flow in flows)
    median_us = percentiles(merge(flow.histogram for flow in flows if flow.histogram)).p50_ns / 1000
    assert histogram.get_value_at_percentile(50) == pytest.approx(median_us, rel=0.01, abs=1)


def test_our_own_reader_of_csits_files_reads_the_same_figures() -> None:
    record, mrr = measured(), builders.mrr_result(ServiceType.CSP, 1, 2)
    (item,) = read_foreign(json.dumps(content(record)).encode(), "x.info.json")
    assert isinstance(item, ImportedTest), item
    assert item.row.pdr_lower_pps == record.pdr.throughput_pps
    assert (item.row.frame, item.row.started_at) == ("64B", record.started_at.replace("Z", ".000+00:00"))
    rate = content(mrr)["result"]["receive_rate"]["rate"]
    assert (rate["values"], rate["stdev"]) == (list(mrr.mrr.receive_rates_pps), pytest.approx(pstdev(rate["values"])))


def test_soak_has_both_bounds_and_what_csit_cannot_say_is_no_passed_test_of_it() -> None:
    found = GoalResult(goal=SOAK, lower_pps=1e6, upper_pps=1.1e6, throughput_pps=None, complete=True)
    record = measured().model_copy(update={"soak": found, "ndr": None, "pdr": None})
    read = content(record)
    assert (read["test_type"], read["test_id"].endswith("-soak")) == ("soak", True)
    assert read["result"]["critical_rate"]["upper"]["rate"] == {"value": 1.1e6, "unit": "pps"}
    profile = builders.PROFILE.model_copy(update={"goals": (SOAK,)})
    asked = record.asked.model_copy(update={"profile": profile})
    without = content(record.model_copy(update={"asked": asked, "soak": None}))
    assert (without["test_type"], without["passed"]) == ("soak", False)
    none = measured().ndr.model_copy(update={"lower_pps": None, "throughput_pps": None})
    read = content(measured().model_copy(update={"ndr": none}))
    assert (read["passed"], read["result"]) == (False, {"type": "unknown"})
    assert read["message"] == "NDR: no load was low enough"
    assert not content(builders.does_not_fit(ServiceType.CSC, 10, 10))["passed"]
    asked = measured().asked.model_copy(update={"test_type": TestType.LATENCY})
    assert info_file(measured().model_copy(update={"asked": asked})) is None
    record = builders.result(ServiceType.VSC, 1, 1, histograms=False).model_copy(update={"simulated": True})
    read = content(record)
    assert (read["hosts"], ".vm_vhost.chain.2n-simulated-" in read["test_id"]) == (["simulated"], True)


@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=2))
@settings(max_examples=share(30))
def test_no_name_leaves_the_folder(name: str, drivers: list[str]) -> None:
    record, frame = measured(), Frame(name=name, parts=(FramePart(frame_bytes=64),))
    changes = {
        "asked": record.asked.model_copy(update={"frame": frame}),
        "plan": record.plan.model_copy(update={"suite_id": name}),
        "drivers": dict(zip(["vswitch", "generator"], drivers, strict=False)),
    }
    made = info_file(record.model_copy(update=changes))
    assert all(part and "/" not in part and part not in {".", ".."} and "\0" not in part for part in made.path)


@given(st.lists(st.integers(0, 50_000_000_000), min_size=1, max_size=50))
def test_microseconds_keep_every_sample(values_ns: list[int]) -> None:
    nanoseconds = HdrHistogram(1, 60_000_000_000, 3)
    for value in values_ns:
        nanoseconds.record_value(value)
    made = rescaled(histogram_of(nanoseconds), lambda value: round(value / 1000), 60_000_000)
    assert made.get_total_count() == len(values_ns)
    assert made.get_max_value() == pytest.approx(max(values_ns) / 1000, rel=0.003, abs=1)


def exported(folder: Path, *records: DensityRecord, **options: Any) -> Path:
    """The folder of what is written of records."""
    paths = [folder / f"{number}.json" for number, _ in enumerate(records)]
    for path, record in zip(paths, records, strict=True):
        path.write_text(record.model_dump_json(), encoding="utf-8")
    usual = {"uti": True, "output": folder / "uti", "job": None, "build": 7, "compress": False}
    export(paths, **(usual | options))
    return folder / "uti"


def test_files_lie_as_csits_etl_looks_for_them(tmp_path: Path) -> None:
    records = (measured(), builders.mrr_result(ServiceType.CSC, 1, 1))
    out = exported(tmp_path, *records, job="csit-vpp-perf-{type}-daily-master-2n-lab", compress=True)
    for kind in ("mrr", "ndrpdr"):
        build = out / f"csit-vpp-perf-{kind}-daily-master-2n-lab" / "7" / "tests"
        (test,) = (path for path in build.rglob("*.info.json.gz") if path.name != "suite.info.json.gz")
        read = json.loads(gzip.decompress(test.read_bytes()))
        assert read["test_type"] == kind
        assert test.relative_to(build.parent).parts[:-1] == tuple(read["test_id"].split(".")[:-1])
        whole = json.loads(gzip.decompress((build / "suite.info.json.gz").read_bytes()))
        assert whole["suite_id"] == "tests"
        assert (whole["start_time"], whole["duration"]) == (read["start_time"], read["duration"])
    assert not list(out.rglob("*.part"))


@pytest.mark.parametrize(
    ("other", "options", "expected"),
    [
        ({}, {"uti": False}, "no output format given"), ({}, {"job": "nightly"}, "not a job name of CSIT's ETL"),
        ({}, {"job": "csit-vpp-perf-../../x"}, "not a job name of CSIT's ETL"),
        ({}, {"job": "csit-vpp-perf-mrr-daily-master-2n-lab"}, r"tests of mrr and ndrpdr in one job; write {type}"),
        ({"started_at": "2026-11-21T10:00:00Z"}, {}, "more than once"),
    ],
)  # fmt: skip
def test_refusals_are_sentences(tmp_path: Path, other: dict[str, str], options: dict[str, Any], expected: str) -> None:
    second = measured().model_copy(update=other) if other else builders.mrr_result(ServiceType.CSC, 1, 1)
    with pytest.raises(ConfigError, match=expected):
        exported(tmp_path, measured(), second, **options)
