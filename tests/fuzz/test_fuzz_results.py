"""Damaged results, archives, datasets, tables and files of other tools: read as far as whole, or one sentence."""

import gzip
import json
import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.paths import PROJECT
from tests.fuzz.damage import damaged, mutated
from tests.fuzz.oracle import run

XML = ("<", ">", '"', "</test>", "<test>", "<![CDATA[", "]]>", "&amp;", "&#0;", "&x;", "<!ENTITY a 'b'>", "\x1b[2J")
JSON = (*'{}[],:"', "CSIT-RESULT {", "null", "\\ud800", "1e999", "NaN", '"packed":"', '"version":')
RECORDS = PROJECT / "tests" / "fuzz" / "recorded"
CASES: dict[str, tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "output.xml": (XML + JSON, (("show",), ("outcome",), ("answer", "--rate", "100kpps"))),
    "journal.jsonl": ((*JSON, "\n"), (("outcome",),)),
}
"""Texts of a run: pieces of their language, and commands that read them."""


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_damaged_texts(name: str, results: Path, tmp_path: Path, data: st.DataObject) -> None:
    pieces, commands = CASES[name]
    whole = (results / "run" / name).read_text(encoding="utf-8")
    file = shutil.copytree(results / "run", tmp_path / "run", dirs_exist_ok=True) / name
    file.write_text(data.draw(damaged(whole, pieces)), encoding="utf-8", errors="replace")
    command, *options = data.draw(st.sampled_from(commands))
    run(name, command, str(file.parent if command == "outcome" else file), *options)


@pytest.mark.parametrize("count", ["nf_nodes", "nf_chains", "offered_pps", "frames"])
@pytest.mark.parametrize("study", ["density", "sweep", "sizing", "chains", "interference", "bursts"])
@pytest.mark.parametrize("command", ["show", "report"])
def test_counts_that_no_system_has(tmp_path: Path, study: str, count: str, command: str) -> None:
    """A count in a record is a number of turns in some loop of its reader."""

    def changed(part: object) -> object:
        match part:
            case dict():
                return {key: 10**12 if key == count and each else changed(each) for key, each in part.items()}
            case list():
                return [changed(each) for each in part]
        return part

    file = tmp_path / "record.json"
    file.write_text(json.dumps(changed(json.loads(gzip.decompress((RECORDS / f"{study}.json.gz").read_bytes())))))
    run("records", command, str(file), *(("-o", str(tmp_path / "report")) if command == "report" else ()))


@pytest.mark.parametrize("change", [{"study": "swe`p"}, {"study": [1]}, {"schema_version": 1, "study": None}])
def test_records_of_no_study(tmp_path: Path, change: dict[str, object]) -> None:
    file = tmp_path / "record.json"
    record = json.loads(gzip.decompress((RECORDS / "sweep.json.gz").read_bytes()))
    file.write_text(json.dumps(record | change))
    assert run("records", "show", str(file)).status


@given(data=st.data())
def test_stored_datasets(results: Path, tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "history"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(results / "history", folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    victim = data.draw(st.sampled_from(files))
    match data.draw(st.sampled_from(["damage", "empty", "remove", "swap", "folder"])):
        case "damage":
            chance = Random(data.draw(st.integers(0, 1 << 64)))
            victim.write_bytes(mutated(chance, victim.read_bytes(), (b"PAR1", b"ARROW1", b"\xff" * 8)))
        case "empty":
            victim.write_bytes(b"")
        case "remove":
            victim.unlink()
        case "swap":
            victim.write_bytes(data.draw(st.sampled_from(files)).read_bytes())
        case "folder":
            victim.unlink()
            victim.mkdir()
    command = data.draw(st.sampled_from([("show",), ("answer", "--rate", "100kpps")]))
    run("dataset", *command, str(folder))
