"""Functions that read what others wrote, called with bytes: thousands of inputs per second.

`test_fuzz_functions.py` feeds them mutated examples.
"""

import gzip
import io
import json
import shutil
import zipfile
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from csit_utils.analysis.bisection import BisectionQuestion
from csit_utils.bisection.run import BisectionJournal, BisectionProgress, BisectionRun
from csit_utils.bisection.spec import BisectionSpec, GitRange, Revision, revisions_of, share_of
from csit_utils.commands.runs.bisect import as_object, render_bisection
from csit_utils.dataset.foreign.csit import read_row
from csit_utils.dataset.items import Recorded
from csit_utils.dataset.load import read_json
from csit_utils.report.units import seconds
from csit_utils.studies.density.analysis.other_goals import goal_of, other_goals
from csit_utils.studies.density.answer_text import OtherGoalView
from resources.libraries.python.dialogue import JsonLines, error_of, record_of
from resources.libraries.python.drivers.functions.wireguard.driver import ends_of, make_keys
from resources.libraries.python.drivers.functions.wireguard.driver import settings as wireguard_settings
from resources.libraries.python.drivers.generators.iperf3.driver import report
from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.generators.otg.driver import OtgClient
from resources.libraries.python.drivers.generators.otg.flows import figures, sent_flows, trial_result
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.measurements.qualification import Qualification, QualificationKey, QualifiedPoint
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.access import Powercap
from resources.libraries.python.model.testbed.cpu import expand, parse_lscpu
from resources.libraries.python.recording.journal import (
    CellQuarantined,
    RunCutShort,
    RunEnded,
    RunResumed,
    TestBroken,
    TestFinished,
    TestStarted,
)
from resources.libraries.python.recording.qualifications import file_of, stored
from resources.libraries.python.recording.records import NotUnpacked, unpack
from resources.libraries.python.recording.run_journal import has_ended, header_of, past_of
from resources.libraries.python.recording.step_journal import Heading, StepJournal
from resources.libraries.python.search.energy import node_powers
from resources.libraries.python.studies.chains.planning import policy
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.density.planning.selection import parse_selection
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.studies.outage.run import OutageTest
from resources.libraries.python.studies.sizing.run import ServiceSizing
from resources.libraries.python.studies.stateful.run import StatefulTest
from resources.libraries.python.studies.sweep.analysis.tables import read_statistics
from resources.libraries.python.studies.sweep.planning import parse_bursts, parse_rates
from resources.libraries.python.studies.sweep.run import ServiceSweep
from resources.libraries.python.testbed.connection.machine import CompletedProgram, Connection
from resources.libraries.python.testbed.node.energy import power_of, read_meter
from resources.libraries.python.testbed.node.node_query import MARK
from resources.libraries.python.testbed.node.scripts import energy, leases
from resources.libraries.python.testbed.node.scripts.energy import watts_of
from tests.fuzz.capture_inputs import CAPTURE_PIECES, CAPTURES, PACKED, captured_load, packed_capture
from tests.fuzz.oracle import ATTEMPTS, refused
from tests.loaded import load
from tests.unit.csit_utils.foreign_files import EXAMPLES, csit, csit_mrr, csit_ndrpdr, flat
from tests.unit.csit_utils.stateful_cells import cell
from tests.unit.drivers.generators.iperf3.iperf3_reports import HERE as IPERF3
from tests.unit.drivers.generators.iperf3.iperf3_reports import result, trial, written
from tests.unit.drivers.generators.otg.otg_configurations import FLOWS as OTG_FLOWS
from tests.unit.packers import PACKERS
from tests.unit.recording.journals import AT, header

PROJECT = Path(__file__).resolve().parents[2]
SPECS = PROJECT / "tests" / "characterization" / "specs"
SERVER = written("udp_server")
OTG_TRIAL = Trial(load_pps=1e4, duration_s=0.5, frame=frame("64B"), probe_pps=100.0)
OTG_SENT = sent_flows(OTG_FLOWS, OTG_TRIAL, latency=True, sender="controller 1")
ZONE_FILES = {b"n": "name", b"m": "max_energy_range_uj"}
"""By initial letter; others are the counter."""
RECORDED = PROJECT / "tests" / "fuzz" / "recorded"


@dataclass(frozen=True)
class Target:
    """A function, with examples of its input."""

    call: Callable[[bytes, Path], object]
    """Takes an input and a folder; raises only errors of this project."""
    examples: tuple[bytes, ...]
    pieces: tuple[bytes, ...]
    """Tokens of its language."""
    share: float
    """Of the inputs of a run: slow ones get fewer."""


def tried(name: str, content: bytes, folder: Path) -> None:
    refused(name, lambda: TARGETS[name].call(content, folder), str(folder), attempts=ATTEMPTS)


def _file(read: Callable[[Path], object], name: str) -> Callable[[bytes, Path], object]:
    def call(content: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(content)
        return read(path)

    return call


def _lines(content: bytes, _: Path) -> None:
    lines = JsonLines()
    cut = 1 + len(content) % 97
    for at in range(0, len(content), cut):
        for record in lines.feed(content[at : at + cut]):
            str(error_of(record.get("error"), "worker"))


def _selection(content: bytes, _: Path) -> None:
    cells, sizes, vswitch, frames, flows, ip = (content.decode(errors="replace").split("\n") + [""] * 6)[:6]
    parse_selection(cells=cells, nf_sizes=sizes, vswitch=vswitch, frames=frames, flows=flows, ip_versions=ip)


def _iperf3(content: bytes, _: Path) -> None:
    try:
        client = report(content.decode(errors="replace"))
    except ValueError as error:
        raise CsitError(str(error)) from error
    result(trial(), client, SERVER)


class _Node:
    """A connection to a node whose program has said something."""

    name = "DUT1"

    def __init__(self, said: str) -> None:
        self._said = said

    def run(self, _argv: list[str], **_: object) -> CompletedProgram:
        return CompletedProgram(0, self._said, "")


def _meter(content: bytes, _: Path) -> None:
    said = content.decode(errors="replace")
    node_powers(read_meter("DUT1", Powercap(meter="powercap"), 1.0, cast("Connection", _Node(said))).series)


def _text(parse: Callable[[str], object], wrong: type[Exception]) -> Callable[[bytes, Path], object]:
    def call(content: bytes, _: Path) -> object:
        try:
            return parse(content.decode(errors="replace"))
        except wrong as error:
            raise CsitError(str(error)) from error

    return call


def _redfish(content: bytes, _: Path) -> None:
    document = record_of(content)
    for link in ("EnvironmentMetrics", "Power"):
        assert isfinite(power_of(link, document) or 0.0)


def _powercap(content: bytes, folder: Path) -> None:
    """Zones of the kernel's powercap class: a line for each file, its path and its text."""
    shutil.rmtree(tree := folder / "powercap", ignore_errors=True)
    for number, line in enumerate(content.split(b"\n")[:16]):
        zone, _, rest = line.partition(b" ")
        name, _, text = rest.partition(b" ")
        at = tree / f"intel-rapl:{zone.decode() if zone in (b'0', b'0:0', b'1') else number}"
        at.mkdir(parents=True, exist_ok=True)
        (at / ZONE_FILES.get(name[:1], "energy_uj")).write_bytes(text)
    said = energy.answer({"duration_s": 0.0, "powercap": str(tree)})
    answer = {"began_s": 1e9, "ended_s": 1e9, "answers": {"energy": said}}
    with suppress(Unsupported):  # too few readings
        _meter(MARK.encode() + json.dumps(answer).encode(), folder)


def _wireguard(content: bytes, _: Path) -> None:
    with patch("resources.libraries.python.drivers.host.programs.program_output._talked", return_value=(content, b"")):
        keys = make_keys("true")
    assert "\0" not in "".join(wireguard_settings(ends_of("nf-1-1")[0], keys.public))


def _goal(content: bytes, _: Path) -> None:
    asked = goal_of(content.decode(errors="replace"))
    for found in other_goals(_trials(), [asked]):
        OtherGoalView(found)


@cache
def _trials() -> tuple[TrialResult, ...]:
    (item,) = read_json(_RECORD, "a.json")
    assert isinstance(item, Recorded)
    return item.record.trials


def _bisection(path: Path) -> None:
    spec = load_yaml(path, BisectionSpec)
    share_of(spec.change)
    if not isinstance(spec.source, GitRange):  # git is asked about the others
        revisions_of(spec.source, path.parent)


def _bisected(content: bytes, folder: Path) -> None:
    revisions = [Revision(name=f"1.{number}", label=f"1.{number}") for number in range(6)]
    (folder / BisectionJournal.FILE).write_bytes(content)
    with BisectionJournal(folder / BisectionJournal.FILE, "0") as journal:
        question, told = BisectionQuestion(len(revisions), most=5), list[BisectionProgress]()
        run = BisectionRun(revisions, question, journal, lambda _: None, lambda: (1e6,), report=told.append)
        result = run.run()
        render_bisection(result, revisions, "MRR", simulated=True)
        json.dumps(as_object(result, revisions))
        for each in told:
            seconds(each.left_s)


def _metrics(content: bytes, _: Path) -> None:
    """What an OTG server says of its flows, as snappi reads it."""
    client = OtgClient(Otg(location="http://127.0.0.1:1"))
    said = content.decode(errors="replace")
    answer = import_module("snappi").MetricsResponse
    with patch.object(vars(client)["_api"], "get_metrics", lambda _: answer().deserialize(said)):
        rows = client.flow_metrics()
    trial_result(OTG_TRIAL, OTG_FLOWS, OTG_SENT, figures(rows, OTG_SENT), started_at=AT, total_duration_s=0.5)


def _qualification(content: bytes, folder: Path) -> None:
    file_of(QUALIFIED.key, folder).write_bytes(content)
    stored(QUALIFIED.key, folder)


def _reservation(content: bytes, folder: Path) -> None:
    (folder / "reservation.json").write_bytes(content)
    if "failed" in (said := leases.answer({"do": "status", "directory": str(folder)})):
        raise CsitError(said["failed"])


def _notation(content: bytes, _: Path) -> None:
    text = content.decode(errors="replace")
    for parse in (expand, parse_rates, parse_bursts):
        try:
            parse(text)
        except (ConfigError, ValueError) as error:
            assert len(str(error)) <= 600


def _output(content: bytes, folder: Path) -> None:
    path = folder / "output.xml"
    path.write_bytes(content)
    assert all(len(each.text) < 2000 for each in load([path]).problems)


def _archive(path: Path) -> None:
    load([path])


def _packed(content: bytes, _: Path) -> None:
    try:
        unpack(content)
    except NotUnpacked as error:
        raise CsitError(str(error)) from error


def _policy(content: bytes, _: Path) -> None:
    policy(content.decode(errors="replace"), ("firewall", "nat", "router", "ids"), "policies.0")


def _run_journal(path: Path) -> None:
    for read in (past_of, header_of, has_ended):
        read(path.parent)


def _steps(kind: type[StepJournal[Any]]) -> Callable[[bytes, Path], object]:
    def call(content: bytes, folder: Path) -> None:
        (folder / kind.FILE).write_bytes(content)
        with kind(folder / kind.FILE, "0") as steps:
            deque(steps.rows, 0)

    return call


def steps_of(kind: type[StepJournal[Any]], *rows: object) -> bytes:
    heading = Heading(journal=kind.KIND, digest="0").model_dump()
    return b"".join(json.dumps(each).encode() + b"\n" for each in (heading, *rows))


def _recorded(study: str) -> Any:
    return json.loads(gzip.decompress((RECORDED / f"{study}.json.gz").read_bytes()))


def _zipped(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for ending, pack in {"": bytes, **PACKERS}.items():
            archive.writestr(f"a/output.xml{ending}", pack(content))
    return made.getvalue()


_OUTPUT = gzip.decompress((RECORDED / "density-output.xml.gz").read_bytes())
_PACKED = [part.split(b'"')[0] for part in _OUTPUT.split(b'"packed":"')[1:2]]
_RECORD = gzip.decompress((RECORDED / "density.json.gz").read_bytes())
_LOGGED = json.dumps(f"CSIT-RESULT {_RECORD.decode()}").encode()
_OUTPUT_JSON = b'{"generator":"Robot 7","suite":{"tests":[{"body":[{"message":%b}],"name":"a"}],"name":"b"}}' % _LOGGED
_SWEEP = gzip.decompress((RECORDED / "sweep.json.gz").read_bytes())
_HELD = json.dumps({
    "holder": {
        "testbed": "lab", "owner": "ann@here", "pid": 1, "process": None, "reason": "a test", "heartbeat": True,
        "digest": "00",
        "since": "2026-01-01T00:00:00Z", "renewed": "2026-01-01T00:00:00Z", "boot_id": "one",
        "lease_s": 100.0, "until_since_boot_s": 1e6, "until_calendar_s": 2e9,
    },
    "before": {"digest": None, "how": "released", "by": "bob@here", "at": "2026-01-01T00:00:00Z"},
}).encode()  # fmt: skip
_ANSWERS = (
    b'{"beat":true}\n{"id":1,"value":{"p1":{"rx_packets":1}}}\n{"id":1,"error":{"class":"NotReady","after_s":3}}\n'
)
_JSON = tuple(
    b'{ } [ ] , : " null true \\ud800 1e999 NaN -1 99999999999999999999 [[[[[[[[ "packed":" "version": \xff'.split()
)
_XML = (b"<", b">", b"</test>", b"<test>", b"<![CDATA[", b"&#0;", b"&x;", b"CSIT-RESULT {", b'"', b"<msg>", b"\x00")
_YAML = (b"&a ", b"*a", b"<<: *a", b"- ", b"[", b"{", b": ", b"!!int ", b"2001-99-99", b".nan", b"\t", b"\n", b"---")
_NOTATION = (b"1x1", b"{1-4096}", b"x", b",", b"-", b"{", b"}", b"c", b"9" * 40, b"NaN", b"1e9", b"\n", b"pps", b":")
_POLICY = (*b"> < ( ) (((( & | firewall nat not \xff".split(), b" ", b"a" * 400)
_CSV = (b",", b";", b"\n", b'"', b"=1+1", b"rate_pps", b"\r", b"\x00", b"\xff", b"1e999")
_LSCPU = (
    b"# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n2,2,0,,,2,2,2,1\n",
    b"# CPU,CORE,SOCKET,NODE,MAXMHZ\n0,0,0,0,5600.0000\n1,0,0,0,5600.0000\n2,1,0,0,4300.0000\n3,-,-,-,-\n",
)
STATISTICS = b"input_pps,output_pps,input_gbps,output_gbps,delay_s,nat_cpu_percent\n" + b"".join(
    b"%d,%d,%g,%g,0.0001,%d\n" % (rate, min(rate, 50_000), rate / 2e6, min(rate, 50_000) / 2e6, min(100, rate / 500))
    for rate in range(10_000, 100_000, 10_000)
)
_RUN = b"".join(
    each.model_dump_json().encode() + b"\n"
    for each in (
        header(),
        TestStarted(line=2, at=AT, test="t", attempt=1),
        TestBroken(line=3, at=AT, test="t", attempt=1, reason="vSwitch died"),
        TestFinished(line=4, at=AT, test="t", status="PASS", digest="0", record="a.json"),
        RunResumed(line=5, at=AT, boot_id=None, environment=header().environment),
        CellQuarantined(line=6, at=AT, test="u", status="FAIL", digest="1", record="b.json", cell="1x1", reason="died"),
        RunCutShort(line=7, at=AT, reason="disk full", tests=("t",), cells=("1x1",)),
        RunEnded(line=8, at=AT),
    )
)
_POINT = {"flows": 1, "loss_free_pps": 1e6, "highest_pps": 2e6, "offered_pps": 2e6, "received_pps": 1.9e6}
QUALIFIED = Qualification(
    key=QualificationKey(generator="builtin", version="1", nic="veth", machine="m", kernel="6.1", cpus=1),
    measured_at=AT,
    trial_s=1.0,
    points=(QualifiedPoint(frame=frame("64B"), rate_error=0.01, floor_ns=1000.0, **_POINT),),
)
_DOMAIN = {"domain": "package-0", "counts": True, "quantity": "energy", "resolution": 6e-5, "interval_s": 0.001}
_SAMPLES = {"wraps_at_j": 262143.3, "samples": [[1e9, 10.5], [1e9 + 1, 20.25]]}
_READ = {"began_s": 1e9, "ended_s": 1e9, "answers": {"energy": {"domains": [{**_DOMAIN, **_SAMPLES}]}}}
_DCMI = b"    Instantaneous power reading:      96 Watts\n    Power reading state is:           activated\n"
_IMPACT = {
    **{"instance": 1, "sent": 1000, "lost": 10, "lost_before": 0, "outage_s": 0.1, "gap_s": 0.1, "recovery_s": 0.1},
    **{when: {"mean_ns": 1e5, "worst_ns": 200_000} for when in ("before", "during", "after")},
    "first_packet_s": 0.1,
}
_TRIAL = {"number": 0, "repetition": 0, "event": "kill of nat", "event_s": 0.01, "done": "killed", "impacts": [_IMPACT]}
_CONTENDERS = _recorded("interference")["interference"]["spec"]["contenders"]
_LOAD = {"loads_pps": [1e5], "network_pps": {}, "absent": [], "contenders": _CONTENDERS}


def _step(row: object, name: str = "a", plan: str | None = "0") -> dict[str, object]:
    return {"line": "step", "at": AT, "step": name, **({"plan": plan} if plan else {}), "row": row}


STEPS: dict[type[StepJournal[Any]], tuple[object, ...]] = {
    ServiceSizing.journal(): tuple(
        _step(each, each["name"], plan=None) for each in _recorded("sizing")["sizing"]["sizes"][:2]
    ),
    ServiceSweep.journal(): (
        {"line": "load", "at": AT, "load": _recorded("sweep")["sweep"]["spec"]},
        _step({"samples": _recorded("sweep")["sweep"]["samples"][:2]}, plan=None),
    ),
    ChainStudyTest.journal(): tuple(
        _step({"chain": run["chain"], "runs": [run]}) for run in _recorded("chains")["chain_study"]["runs"][:2]
    ),
    InterferenceTest.journal(): (
        {"line": "load", "at": AT, "load": _LOAD},
        *map(_step, _recorded("interference")["interference"]["measurements"][:3]),
    ),
    BisectionJournal: (
        *({"step": "observed", "revision": f"1.{end}", "values": [9e5 + end], "seconds": 2.5} for end in (0, 5) * 2),
        {"step": "skipped", "revision": "1.3", "reason": "make ended with 2"},
    ),
    StatefulTest.journal(): (_step(cell(2).model_dump(mode="json"), "2x1", plan=None),),
    OutageTest.journal(): (
        {"line": "load", "at": AT, "load": {"rate_pps": 1e5, "ndr_pps": None}},
        _step(_TRIAL),
    ),
}
"""Rows of each study's journal."""


def _json(*records: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(each).encode() for each in records)


_BISECTION = """
source: {versions: [1.0.0, 1.1.0, 1.2.0]}
install: [apt-get, install, 'vpp={revision}']
topology: sim.yaml
cell: CSC 1x1 1c
metric: forwarded
load_pps: 100000
change: 2%
"""
_COMMANDS = """
source: {good_command_line: quiet isolcpus=1-3 mitigations=off, bad_command_line: quiet nohz_full=1-3}
install: [./boot, '{revision}']
topology: sim.yaml
cell: CSC 1x1 1c
"""
_ZONES = b"\n".join(
    zone + line
    for zone in (b"0 ", b"0:0 ")
    for line in (b"name package-0", b"energy_uj 1234567", b"max_energy_range_uj 262143328850")
)
_LATENCY = {"minimum_ns": 1e3, "average_ns": 2e3, "maximum_ns": 3e3}
_SENT = {"transmit": "stopped", "frames_tx": 50, "frames_rx": 49, "latency": _LATENCY}
_FLOW_METRICS = {"choice": "flow_metrics", "flow_metrics": [{"name": each.name, **_SENT} for each in OTG_SENT]}
TARGETS = {
    "agent lines": Target(_lines, (_ANSWERS,), (*_JSON, b"\n"), 0.12),
    "notation": Target(_notation, (b"0-3,8", b"10kpps-100kpps:10", b"1..10", b"64@1ms"), _NOTATION, 0.13),
    "selection words": Target(
        _selection, (b"1x1,{1,2}x4\n1c,0.5c\n1,2\n128B,512B\nauto,1000\n4,6",), _NOTATION, 0.13
    ),
    "reservation record": Target(_reservation, (_HELD,), _JSON, 0.09),
    "packed record": Target(_packed, tuple(_PACKED), (b"=", b"A" * 40, b"eJ"), 0.1),
    "journals of runs": Target(_file(_run_journal, "journal.jsonl"), (_RUN,), (*_JSON, b"\n"), 0.05),
    **{
        f"journal of a {kind.KIND}": Target(_steps(kind), (steps_of(kind, *rows),), (*_JSON, b"\n"), 0.01)
        for kind, rows in STEPS.items()
    },
    "foreign results": Target(
        lambda content, _: deque(read_json(content, "a.json"), 0),
        _json(*EXAMPLES), (*_JSON, b"-0.0001", b"0", b"false", b'"n/a"'), 0.05,
    ),
    "rows of CSIT's tables": Target(
        lambda content, _: deque(read_row(record_of(content), "a.parquet row 1"), 0),
        _json(flat(csit(csit_ndrpdr() | csit_mrr()))), (*_JSON, b"-1", b"0", b"NaN"), 0.03,
    ),
    "lscpu": Target(_text(parse_lscpu, ValueError), _LSCPU, (*_CSV, b"-1", b"#", b"9" * 40), 0.05),
    "steps of a bisection": Target(
        _bisected, (steps_of(BisectionJournal, *STEPS[BisectionJournal]),), (*_JSON, b"\n", b"-1", b"1e-300"), 0.01
    ),
    "bisections": Target(_file(_bisection, "bisection.yaml"), (_BISECTION.encode(), _COMMANDS.encode()), _YAML, 0.02),
    "goals": Target(
        _goal, (b"rfc2544", b"loss=1e-4,trial=10,sum=60,exceed=0.5,width=0.01"),
        (*_NOTATION, b"=", b"trial=", b"sum=", b"5e-324", b"0"), 0.05,
    ),
    "zones of powercap": Target(_powercap, (_ZONES,), (b"\n", b" ", b"9" * 400, b"-", b"\xff", b"package-0"), 0.01),
    "keys of wg": Target(_wireguard, (b"A" * 43 + b"=\n",), (b"\x00", b"\n", b"=", b"-", b"--", b"\xff"), 0.05),
    "metrics of OTG servers": Target(_metrics, _json(_FLOW_METRICS), _JSON, 0.02),
    "reports of iperf3": Target(
        _iperf3, tuple((IPERF3 / f"udp_{end}.json").read_bytes() for end in ("client", "server")), _JSON, 0.02
    ),
    "readings of meters": Target(_meter, (MARK.encode() + json.dumps(_READ).encode(),), _JSON, 0.02),
    "answers over Redfish": Target(
        _redfish, _json({"PowerWatts": {"Reading": 187.5}}, {"PowerControl": [{"PowerConsumedWatts": 9}]}), _JSON, 0.02
    ),
    "answers of ipmitool": Target(_text(watts_of, RuntimeError), (_DCMI,), (b"Watts", b":", b"9" * 400), 0.02),
    "qualifications": Target(_qualification, (QUALIFIED.model_dump_json().encode(),), _JSON, 0.03),
    "statistics tables": Target(
        lambda content, _: read_statistics(content.decode(errors="replace"), "a.csv"), (STATISTICS,), _CSV, 0.05
    ),
    "policies of chains": Target(_policy, (b"firewall > nat & ids | router", b"(nat & ids) > router"), _POLICY, 0.08),
    "records": Target(
        lambda content, _: deque(read_json(content, "a.json"), 0), (_RECORD, _SWEEP), _JSON, 0.03
    ),
    "captures": Target(captured_load, CAPTURES, CAPTURE_PIECES, 0.03),
    "packed captures": Target(_file(packed_capture, "load.pcap.gz"), (PACKED,), (b"\x1f\x8b\x08",), 0.02),
    "scanner": Target(_output, (_OUTPUT, _OUTPUT_JSON), _XML + _JSON, 0.03),
    "archives": Target(
        _file(_archive, "run.zip"), (_zipped(_OUTPUT), *(pack(_OUTPUT) for pack in PACKERS.values())),
        (b"PK\x03\x04", b"PK\x01\x02", b"\xff", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"), 0.02,
    ),
}  # fmt: skip
"""By name."""
