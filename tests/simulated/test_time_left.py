"""Time left on the console: of all suites of a run, and none where time is simulated."""

import re
from pathlib import Path

import pytest

from csit_utils.commands.runs.robot import PlannedTimes
from resources.libraries.python.studies.shared import progress
from resources.libraries.python.studies.shared.progress import StudyProgress
from tests.simulated.in_process import DENSITY, QUIETLY, SIM, passed

SUITES = ("csc-ndrpdr", "csp-ndrpdr")


def console(folder: Path) -> str:
    """What two suites of one test each print, every state among it."""
    chosen = [("-v", f"{name}:{value}") for name, value in (("TOPOLOGY", SIM), ("CELLS", "1x1"), ("NF_SIZES", "1c"))]
    words = [word for pair in (*chosen, *(("--suite", suite) for suite in SUITES)) for word in pair]
    return passed("robot", "-d", folder, "--console", "quiet", *QUIETLY, *words, DENSITY).stdout


def test_each_suite_counts_the_suites_that_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = StudyProgress.begin

    def in_real_time(self: StudyProgress, name: str, *lines: object, simulated: bool, **more: float) -> None:
        assert simulated
        begin(self, name, *lines, simulated=False, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(StudyProgress, "begin", in_real_time)
    monkeypatch.setattr(PlannedTimes, "_test_s", lambda *_: 4000.0)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    said = console(tmp_path)
    assert said.startswith("2 tests, about 2 h 13 min\n")
    first = [re.findall(rf"{suite}: .*deploying; about (.*) left", said, re.IGNORECASE) for suite in SUITES]
    assert first[0] == ["2 h 13 min"]
    # As if the first test had taken half of what was planned, and less: it has taken no time.
    assert first[1] in (["33 min"], ["34 min"])
