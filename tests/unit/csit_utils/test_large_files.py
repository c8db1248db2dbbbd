"""Reports and tables of large files are made without validating every record, and say the same."""

import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from csit_utils.commands.results import inputs
from csit_utils.dataset.scan import ScannedTest
from csit_utils.dataset.store import batch
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.recording.writer import pack
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.unit.csit_utils.builders import does_not_fit, mrr_result, result
from tests.unit.csit_utils.datasets import invoked

_RESULTS = sorted(
    (result(ServiceType.CSC, 2, 1), mrr_result(ServiceType.CSP, 1, 2), does_not_fit(ServiceType.CSC, 8, 8)),
    key=lambda each: each.started_at,
)


def _written(path: Path, records: list[str], results: Sequence[DensityRecord] = _RESULTS) -> Path:
    tests = "".join(
        f'<test id="s1-t{number}" name="{each.test_name}"><kw name="Log"><msg>{RESULT_MARKER}{record}</msg></kw>'
        f'<status status="{"PASS" if each.passed else "FAIL"}">{each.message}</status></test>'
        for number, (each, record) in enumerate(zip(results, records, strict=True), 1)
    )
    path.write_text(f'<robot><suite id="s1" name="Density">{tests}<status status="FAIL"/></suite></robot>')
    return path


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _refuse(test: ScannedTest, *_: object) -> NoReturn:
    raise AssertionError(f"the record of {test.name} was validated")


def _csit(*words: object) -> tuple[int, str]:
    ended = invoked(*words)
    return ended.exit_code, ended.output


def test_pages_of_large_files_are_those_of_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of record files stay apart."""
    (tmp_path / "run").mkdir()
    _written(tmp_path / "run" / "output.xml", list(map(pack, _RESULTS)))
    for chains in (4, 8):
        record = result(ServiceType.CSP, chains, 1, histograms=False)
        (tmp_path / "run" / f"{chains}.json").write_text(record.model_dump_json())
    assert _csit("report", tmp_path / "run", "-o", tmp_path / "small")[0] == 0
    monkeypatch.setattr(inputs, "LARGE_BYTES", 0)
    assert _csit("report", tmp_path / "run", "-o", tmp_path / "large")[0] == 0
    assert _tree(tmp_path / "large") == _tree(tmp_path / "small")


@pytest.mark.parametrize(
    "command", ["compare {0} {0}", "gate {0} {0}", "trend {0} --all", "trend {0} --new-with {0}", "show {0} --why"]
)
def test_judgements_of_large_files_are_those_of_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    argv = command.format(_written(tmp_path / "output.xml", list(map(pack, _RESULTS)))).split()
    small = _csit(*argv)
    assert small[1]
    monkeypatch.setattr(inputs, "LARGE_BYTES", 0)
    monkeypatch.setattr(batch, "recorded_test", _refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert _csit(*argv) == small
    gc.collect()  # of the error that ended the command
    assert list(tmp_path.iterdir()) == [tmp_path / "output.xml"], "temporary datasets are removed"


def test_folders_of_killed_reports_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, other = tmp_path / "csit-report-killed", tmp_path / "csit-report-elsewhere"
    (killed / "dataset").mkdir(parents=True)
    os.utime(killed, (0, 0))
    (tmp_path / "kept").mkdir()
    other.symlink_to(tmp_path / "kept")
    running = inputs.TemporaryLayout()
    assert not killed.exists()
    inputs.TemporaryLayout()
    assert running.folder.is_dir(), "its process runs"
    folder = running.folder
    del running
    assert not folder.exists()
    assert (tmp_path / "kept").is_dir()


def test_a_damaged_record_in_a_large_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = map(pack, _RESULTS)
    output = _written(tmp_path / "output.xml", [first.replace('"packed":"', '"packed":"AAAA'), *others])
    monkeypatch.setattr(inputs, "LARGE_BYTES", 0)
    status, said = _csit("report", output, "-o", tmp_path / "large")
    assert (status, said.count("its packed part")) == (1, 1)
    assert _RESULTS[0].test_name in said
    assert len(list((tmp_path / "large" / "tests").glob("*.html"))) == 2


@pytest.mark.parametrize("large", [0, 1 << 40])
def test_reading_shows_its_progress_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    for number, one in enumerate(_RESULTS):
        (tmp_path / str(number)).mkdir()
        _written(tmp_path / str(number) / "output.xml", [pack(one)], [one])
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(inputs, "LARGE_BYTES", large)
    for name in ("_QUIET_S", "_BETWEEN_S"):
        monkeypatch.setattr(inputs, name, 0.0)
    assert len(inputs.opened([tmp_path], quickly=True).contents().tests) == len(_RESULTS)
    first, *lines, last = terminal.getvalue().split("\r\x1b[K")
    assert first == last == "", "nothing is left of it"
    shares = [int(line.removesuffix(" s left").partition(" % of 3 files, about ")[0]) for line in lines]
    assert shares == sorted(shares) and {33, 100} <= set(shares)
