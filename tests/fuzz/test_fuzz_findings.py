"""Inputs that once ended in a hang, in gigabytes, in a traceback or in a lie: refused, or read as far as whole.

`FINDINGS` has the inputs, each within the bounds of the oracle: only errors of this project, 2 s, 300 MB, messages of
at most 600 characters.
"""

import gzip
import json
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from resources.libraries.python.recording.run_journal import has_ended, past_of
from resources.libraries.python.studies.density.planning.selection import parse_frames
from resources.libraries.python.testbed.node.node_query import MARK
from tests.captures import MIX, pcap
from tests.fuzz.conftest import PROJECT
from tests.fuzz.oracle import refused, run
from tests.fuzz.targets import RECORDED, SPECS, TARGETS
from tests.simulated.in_process import Ended
from tests.unit.model.yaml_bombs import MERGE_BOMB
from tests.unit.planning.labs import TWO_NODES

SIM = (PROJECT / "topologies" / "sim.yaml").read_text(encoding="utf-8")
CHAINS, PAIRS, ROUTERS = (
    (SPECS / name).read_text(encoding="utf-8")
    for name in ("chains/four-vnfs.yaml", "interference/pairs.yaml", "outage/routers.yaml")
)
BISECTION = """source: {versions: ["1", "2"]}
install: [apt-get, install, "vpp={revision}"]
topology: sim.yaml
cell: CSC 1x1 1c
"""
GIT = BISECTION.replace('{versions: ["1", "2"]}', '{git: ".", good: "v1", bad: "v2"}')
_FILE = "finding"
LONG_NUMBER, LONG_WORD = "9" * 5_000, "x" * 100_000


def topology(text: str) -> Callable[[Path], None]:
    return command("plan", "lab.yaml", text, "--cells", "1x1")


def command(name: str, file: str, content: str | bytes, *options: str, place: str = "") -> Callable[[Path], None]:
    """Run a command on a file, which it refuses in one sentence with the place, or the file's name."""

    def call(folder: Path) -> None:
        path = folder / file
        path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogatepass"))
        done = run(_FILE, name, str(path), *options)
        assert done.status in (1, 2), done
        assert (place or file) in done.stderr, done.stderr

    return call


def frames(_: Path) -> None:
    sizes, flows = ",".join(["64B"] * 10_000), ",".join(map(str, range(1, 10_001)))
    assert "at most 10,000" in refused(_FILE, lambda: parse_frames(sizes, flows))


def policy(text: str) -> Callable[[Path], None]:
    return command("chains", "spec.yaml", changed(CHAINS, policies=[text]), place="policies.0")


def changed(text: str, **values: object) -> str:
    return yaml.safe_dump({**yaml.safe_load(text), **values})


def record(change: Callable[[dict[str, Any]], None], study: str = "density") -> Callable[[Path], None]:
    data = json.loads(gzip.decompress((RECORDED / f"{study}.json.gz").read_bytes()))
    change(data)
    return command("show", "record.json", json.dumps(data))


def journal(*lines: object) -> Callable[[Path], None]:
    """Read the journal of a run whose lines are JSON of another shape."""

    def call(folder: Path) -> None:
        (folder / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        for read in (past_of, has_ended):
            assert refused(_FILE, partial(read, folder), str(folder))

    return call


def refuse(done: Ended) -> None:
    assert done.status in (1, 2) and done.stderr, done


def word_in_a_tag(folder: Path) -> None:
    output = TARGETS["scanner"].examples[0]
    (folder / "output.xml").write_bytes(output.replace(b"<test ", b"<test " + LONG_WORD.encode() + b" ", 1))
    assert run(_FILE, "show", str(folder / "output.xml")).status == 0


def half_of_an_output(folder: Path) -> None:
    content = TARGETS["scanner"].examples[0]
    (folder / "output.xml").write_bytes(content[: content.index(b"<test ") + 200])
    done = run(_FILE, "regoal", str(folder / "output.xml"))
    assert done.status == 2 and len(done.stderr.splitlines()) == 2, done


def said_to(target: str, content: bytes) -> Callable[[Path], None]:
    """A function refuses what a program has said, in a sentence."""

    def call(folder: Path) -> None:
        assert refused(_FILE, lambda: TARGETS[target].call(content, folder))

    return call


def observed(revision: str, value: str, seconds: str) -> Callable[[Path], None]:
    """A bisection does not continue after a step that it cannot have written."""
    heading = TARGETS["steps of a bisection"].examples[0].splitlines(keepends=True)[0].decode()
    step = f'{{"step": "observed", "revision": "{revision}", "values": [{value}], "seconds": {seconds}}}'
    return said_to("steps of a bisection", f"{heading}{step}\n".encode())


def zone(energy: str) -> Callable[[Path], None]:
    """An energy counter of the kernel that is not one is no counter."""

    def call(folder: Path) -> None:
        tree = f"0 name package-0\n0 energy_uj {energy}\n0 max_energy_range_uj 262143328850"
        assert refused(_FILE, lambda: TARGETS["zones of powercap"].call(tree.encode(), folder)) == ""

    return call


def two_headers(folder: Path) -> None:
    (folder / "journal.jsonl").write_bytes(TARGETS["journals of runs"].examples[0].splitlines(keepends=True)[0] * 2)
    assert refused(_FILE, lambda: past_of(folder), str(folder))


def end_of_line_in_a_name(folder: Path) -> None:
    """The name of a file in an archive does not look like another message."""
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("a\nError: all is well\n/output.xml", "<robot><suite name='s'>")
    done = run(_FILE, "show", str(folder / "a.zip"))
    assert done.status == 2 and len(done.stderr.splitlines()) == 1, done


def thousands_of_damaged_files(folder: Path) -> None:
    """What an archive lacks is printed file by file only for the first ones."""
    content = TARGETS["scanner"].examples[0][:6_000]
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for number in range(200):
            archive.writestr(f"{number}/output.xml", content)
    for command in (("show",), ("trend",), ("import", "-o", str(folder / "history"))):
        done = run(_FILE, command[0], str(folder / "a.zip"), *command[1:])
        assert done.status and len(done.stderr.splitlines()) < 60, done


def steps_of_another_form(folder: Path) -> None:
    (folder / "spec.yaml").write_text(BISECTION, encoding="utf-8")
    for content in ("", "{}", "[{}]", "[" * 100_000):
        (folder / "steps.json").write_text(content, encoding="utf-8")
        done = run(_FILE, "bisect", str(folder / "spec.yaml"), "--list", "--step", str(folder / "steps.json"))
        assert done.status == 2 and len(done.stderr.splitlines()) == 1 and "steps.json: " in done.stderr, done


def output_that_is_a_device(folder: Path) -> None:
    for device, status in (("null", 0), ("full", 1)):
        (page := folder / device).symlink_to(f"/dev/{device}")
        done = run(_FILE, "plan", str(PROJECT / "topologies" / "sim.yaml"), "--cells", "1x1", "--html", str(page))
        assert done.status == status and page.is_symlink(), done
    assert "No space left on device" in done.stderr


def night_on_a_damaged_dataset(folder: Path) -> None:
    (folder / "output.xml").write_bytes(b"<robot><suite name='s'>")
    sim = str(PROJECT / "topologies" / "sim.yaml")
    done = run(_FILE, "night", sim, "--cells", "1x1", "--data", str(folder / "output.xml"))
    assert "truncated or damaged XML" in done.stderr, done


def stacks(stack: str) -> Callable[[Path], None]:
    node = {"node": "DUT1", "event": "cycles", "hz": 99, "cpus": [1], "sampled_s": 1, "samples": 5, "idle": 0}
    found = {"label": "PDR", "load_pps": 1, "received": 1, "trial_s": 1}
    nodes = [{**node, "elsewhere": 0, "stacks": {stack: 5}}]
    return record(lambda data: data.update(stacks_sampled="PDR", stacks={**found, "nodes": nodes}))


def numbered_ports(folder: Path) -> None:
    (folder / "csit.yaml").write_text(TWO_NODES.replace("port5:", "4294967296:"), encoding="utf-8")
    done = run(_FILE, "convert", str(folder / "csit.yaml"))
    assert "4294967296" in done.stdout + done.stderr, done


meter, otg = partial(said_to, "readings of meters"), partial(said_to, "metrics of OTG servers")
METER, FLOWS = (TARGETS[name].examples[0] for name in ("readings of meters", "metrics of OTG servers"))
NAN_CLOCK = b'{"began_s": NaN, "ended_s": 1, "answers": {"energy": {"domains": []}}}'
FINDINGS: dict[str, Callable[[Path], None]] = {
    # Bounds of files, fields and loops
    "5,000 digits in a specification": command("chains", "spec.yaml", f"{CHAINS}\nx: {LONG_NUMBER}"),
    "5,000 digits in a record": record(lambda data: data.update(passed=LONG_NUMBER)),
    "10^9 repetitions of outages": command("outage", "spec.yaml", changed(ROUTERS, repetitions=10**9)),
    "a policy of 100 kB": policy("firewall > " * 9_000 + "nat"),
    "a policy with a word of 100 kB": policy(f"firewall > {LONG_WORD}"),
    "an option of 100 kB": lambda _: refuse(run(_FILE, "explain", LONG_WORD)),
    "10,000 frames with 10,000 numbers of flows": frames,
    "256 kB of spaces before the first element": command("show", "output.xml", b" " * (1 << 18)),
    "a word of 100 kB in a start tag": word_in_a_tag,
    "NaN for a number": command("interference", "spec.yaml", changed(PAIRS, load_pps=float("nan"))),
    "a NUL character in a topology": topology(SIM.replace("world: sim", 'world: "s\\0im"')),
    "a NUL character in an argument": command("bisect", "spec.yaml", BISECTION.replace("vpp=", "vpp\\0="), "--list"),
    "a NUL character in the name of a commit": command("bisect", "spec.yaml", GIT.replace("v1", "v\\0"), "--list"),
    "infinity for a number": command("outage", "spec.yaml", changed(ROUTERS, after_s=float("inf"))),
    # Answers of programs and meters
    "a report of iperf3 that is a list": said_to("reports of iperf3", b'["error"]'),
    "a report of iperf3 of 100,000 brackets": said_to("reports of iperf3", b"[" * 100_000),
    "a report of iperf3 without figures": said_to("reports of iperf3", b'{"end": {}, "intervals": 3}'),
    "an answer of a node of 100,000 brackets": meter(MARK.encode() + b"[" * 100_000),
    "an answer of a node without answers": meter(MARK.encode() + b'{"began_s": "now"}'),
    "a node whose clock is not a number": meter(MARK.encode() + NAN_CLOCK),
    "an energy counter that is not a number": meter(METER.replace(b"10.5", b"NaN")),
    "a power below 0": meter(METER.replace(b"10.5", b"-5")),
    "an energy counter of 400 digits": zone("9" * 400),
    "an energy counter without an end": zone(LONG_WORD),
    "a key of WireGuard with a NUL character": said_to("keys of wg", b"A" * 42 + b"\0="),
    "metrics of flows that are those of ports": otg(b'{"choice": "port_metrics"}'),
    "metrics of OTG with merge keys for gigabytes": otg(MERGE_BOMB.encode()),
    "metrics of OTG of 1,000,000 flows": otg(
        b'{"choice": "flow_metrics", "flow_metrics": [%b{}]}' % (b"{}," * 1_000_000)
    ),
    "metrics of OTG of 100,000 brackets": otg(b"[" * 100_000),
    "a latency of 300 digits": otg(FLOWS.replace(b"1000.0", b"9" * 400 + b".0")),
    "a packet that is longer in the capture than on the line": said_to(
        "captures", pcap((MIX[0] + bytes(1 << 22), *MIX[:1] * 3_000), lengths=(64,) * 3_001)
    ),
    # Archives
    "an end of line in the name of a file": end_of_line_in_a_name,
    "thousands of damaged files in an archive": thousands_of_damaged_files,
    "a number for the name of a port of CSIT": numbered_ports,
    # Damaged files of this project
    "half of an output": half_of_an_output,
    "steps of another form": steps_of_another_form,
    "an output that is a device": output_that_is_a_device,
    "a night on a damaged dataset": night_on_a_damaged_dataset,
    "a step of a bisection with a rate of 0": observed("1.0", "0", "1"),
    "a step of a bisection with an infinite rate": observed("1.0", "1e999", "1"),
    "a step of a bisection with a duration that is not a number": observed("1.0", "1.0", "NaN"),
    "a call stack of 12,000 functions": stacks(";" * 12_000),
    "an end of line in a call stack": stacks("nf-1-1;a 5\nb"),
    "a journal of numbers": journal(1, 2),
    "a journal whose header is a list": journal([{"line": 1, "event": "run"}]),
    "a journal of two headers": two_headers,
    "an unknown metric": record(lambda data: data["asked"].update(test_type="SPEED")),
    "half a character": record(lambda data: data.update(test_name="\ud800")),
    "a record without end of metadata": record(lambda data: data.update(tags={"a": "b"})),
    "a record with a version of 5,000 digits": record(lambda data: data.update(schema_version=LONG_NUMBER)),
    # The YAML loader
    "80,000 directives": topology("".join(f"%TAG !{each}! x\n" for each in range(80_000))),
    "terminal escapes in a file": topology(SIM.replace("world: sim", 'world: "\\e[2J\\e]0;title\\a"')),
}  # fmt: skip
"""By name: called with an empty folder."""


@pytest.mark.parametrize("name", FINDINGS)
def test_findings(name: str, tmp_path: Path) -> None:
    FINDINGS[name](tmp_path)


def _not_utf8(part: Path) -> None:
    is_parquet = part.suffix == ".parquet"
    table = pq.read_table(part, partitioning=None) if is_parquet else pa.ipc.open_file(part.read_bytes()).read_all()
    for at, column in enumerate(table.schema):
        if column.type == pa.string() and (column.name == "record" or "record" not in table.column_names):
            damaged = pa.array([b"\xb4" * 8] * table.num_rows, pa.binary())
            text = pa.StringArray.from_buffers(table.num_rows, *damaged.buffers()[1:])
            table = table.set_column(at, column, text)
    if is_parquet:
        pq.write_table(table, part)
        return
    with pa.ipc.new_file(str(part), table.schema) as file:
        file.write_table(table)


PARTS: dict[str, Callable[[Path], object]] = {
    "of another schema": lambda part: pq.write_table(pa.table({"colour": ["red"]}), part),
    "of texts that are not UTF-8": _not_utf8,
    "not Parquet": lambda part: part.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1"),
    "not Arrow": lambda part: part.write_bytes(b"ARROW1" + b"\xff" * 100 + b"ARROW1"),
}
"""Damage beside that of `test_stored_datasets`."""


@pytest.mark.parametrize("damage", PARTS)
def test_damaged_parts_of_datasets(results: Path, tmp_path: Path, damage: str) -> None:
    parts = (each for each in (results / "history").rglob("*.*") if each.suffix in (".parquet", ".arrow"))
    for number, part in enumerate(sorted(parts)):
        folder = tmp_path / str(number)
        shutil.copytree(results / "history", folder)
        victim = folder / part.relative_to(results / "history")
        PARTS[damage](victim)
        done = run(_FILE, "show", str(folder))
        assert done.status in (1, 2) and str(folder) in done.stderr, done
        run(_FILE, "answer", str(folder), "--rate", "100kpps")
