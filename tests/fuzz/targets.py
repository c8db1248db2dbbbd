"""Functions that read what others wrote, called with bytes: thousands of inputs per second.

`test_fuzz_functions.py` feeds them mutated examples, `coverage_guided.py` inputs that atheris makes.
"""

import gzip
import io
import json
import zipfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from csit_utils.dataset.inputs import sources
from csit_utils.dataset.items import Problem
from csit_utils.dataset.load import items, read_json, read_source
from resources.libraries.python.dialogue import JsonLines, error_of
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.ranges import expand
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.recording import journal
from resources.libraries.python.recording.packed import NotUnpacked, unpack
from resources.libraries.python.studies.chains.model.load import load_chains
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.sweep.model.load_notation import parse_bursts, parse_rates
from resources.libraries.python.testbed.node.sent import leases
from tests.fuzz.oracle import refused
from tests.unit.csit_utils.foreign_files import csit_ndrpdr

PROJECT = Path(__file__).resolve().parents[2]
RECORDED = PROJECT / "tests" / "unit" / "recording" / "version_2_0"


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
    """Call a target within the bounds of the oracle."""
    refused(name, lambda: TARGETS[name].call(content, folder), str(folder))


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
    cells, sizes, vswitch, frames = (content.decode(errors="replace").split("\n") + [""] * 4)[:4]
    parse_selection(cells=cells, nf_sizes=sizes, vswitch=vswitch, frames=frames)


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


def _xml(content: bytes, _: Path) -> None:
    for each in items(io.BytesIO(content), "output.xml"):
        assert not isinstance(each, Problem) or len(each.text) < 2000


def _archive(path: Path) -> None:
    for each in sources(path):
        if not isinstance(each, Problem):
            deque(read_source(each), 0)


def _packed(content: bytes, _: Path) -> None:
    try:
        unpack(content)
    except NotUnpacked as error:
        raise CsitError(str(error)) from error


def _zipped(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/output.xml", content)
        archive.writestr("b/output.xml.gz", gzip.compress(content))
    return made.getvalue()


_OUTPUT = gzip.decompress((RECORDED / "density-output.xml.gz").read_bytes())
_RECORD = gzip.decompress((RECORDED / "density.json.gz").read_bytes())
_SWEEP = gzip.decompress((RECORDED / "sweep.json.gz").read_bytes())
_HEADER = json.dumps({
    "line": 2, "at": "2026-01-01T00:00:00Z", "event": "finished", "test": "t", "status": "PASS", "digest": "0",
    "record": "a.json",
}).encode()  # fmt: skip
_HELD = json.dumps({
    "holder": {
        "testbed": "lab", "owner": "ann@here", "pid": 1, "reason": "a test", "heartbeat": True, "digest": "00",
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
TARGETS = {
    "agent lines": Target(_lines, (_ANSWERS,), (*_JSON, b"\n"), 0.15),
    "notation": Target(_notation, (b"0-3,8", b"10kpps-100kpps:10", b"1..10", b"64@1ms"), _NOTATION, 0.17),
    "selection words": Target(_selection, (b"1x1,{1,2}x4\n1c,0.5c\n1,2\n64B,IMIX",), _NOTATION, 0.17),
    "reservation record": Target(_reservation, (_HELD,), _JSON, 0.12),
    "packed record": Target(_packed, tuple(_OUTPUT.split(b'"packed":"')[1:2]), (b"=", b"A" * 40, b"eJ"), 0.13),
    "journal lines": Target(
        _file(lambda path: deque(journal.read(path), 0), "journal.jsonl"), (_HEADER,), (*_JSON, b"\n"), 0.12
    ),
    "foreign results": Target(
        lambda content, _: deque(read_json(content, "a.json"), 0), (json.dumps(csit_ndrpdr()).encode(),), _JSON, 0.05
    ),
    "records": Target(
        lambda content, _: deque(read_json(content, "a.json"), 0), (_RECORD, _SWEEP), _JSON, 0.03
    ),
    "scanner": Target(_xml, (_OUTPUT,), _XML + _JSON, 0.03),
    "archives": Target(_file(_archive, "run.zip"), (_zipped(_OUTPUT),), (b"PK\x03\x04", b"PK\x01\x02", b"\xff"), 0.02),
    "topology files": Target(
        _file(lambda path: load_yaml(path, Topology), "sim.yaml"),
        ((PROJECT / "topologies" / "sim.yaml").read_bytes(),), _YAML, 0.004,
    ),
    "chain specifications": Target(
        _file(load_chains, "chains.yaml"),
        ((PROJECT / "tests/characterization/specs/chains/four-vnfs.yaml").read_bytes(),), _YAML, 0.006,
    ),
}  # fmt: skip
"""By the name under which inputs are counted."""
