"""The line of the console when a test has ended."""

import io
import sys

import pytest

from resources.libraries.python.model.result import Result
from resources.libraries.python.studies.density.progress import ConsoleProgress
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.test_soak_output import soaked


def line_of(monkeypatch: pytest.MonkeyPatch, record: Result) -> str:
    """The last line."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "__stdout__", out)
    progress = ConsoleProgress()
    progress.suite("Suite", 1)
    progress.test(record.asked, simulated=False)
    progress.done(record)
    return out.getvalue().splitlines()[-1]


def test_a_soak_is_told_with_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "SOAK 200 kpps [unstable]" in line_of(monkeypatch, soaked())
    assert "SOAK" not in line_of(monkeypatch, result(histograms=False))
