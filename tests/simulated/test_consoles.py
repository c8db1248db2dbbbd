"""The console of a run: it may be gone, has no secrets, and says the time that all suites still take."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from csit_utils.commands.runs.robot import PlannedTimes
from csit_utils.dataset.items import Status
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.shared import progress
from resources.libraries.python.studies.shared.progress import StudyProgress
from tests.loaded import load
from tests.simulated.in_process import DENSITY, QUIETLY, SIM, passed
from tests.unit.unwritable import unwritable

SUITE = """\
*** Settings ***
Library    resources.libraries.python.studies.density.DensityLibrary
Library    resources.libraries.python.studies.shared.NodesLibrary
Metadata    Key    ${TOKEN}

*** Test Cases ***
First
    [Documentation]    %s
    [Tags]    tag-${TOKEN}
    Log    ${TOKEN}
    Log    a terminal\\x1b[2J    level=WARN
    ${PASSWORD} =    Evaluate    "pass" + "word-" + "9876"
    Log    it is ${PASSWORD}
    VAR    ${API_KEY}    plain-1234
    FOR    ${word}    IN    ${TOKEN}    ${API_KEY}
        Log    ${word}
    END
    Run Keyword And Ignore Error    Fail    it is ${TOKEN}
    Set Test Message    it is ${TOKEN}

Second
    Fail    it is %%{LAB_TOKEN} and ${TOKEN}
"""


def test_robot_writes_no_secrets(tmp_path: Path) -> None:
    suite = tmp_path / "suite.robot"
    suite.write_text(SUITE % "about the token", encoding="utf-8")
    argv = [sys.executable, "-m", "robot", "-L", "TRACE", "-d", str(tmp_path / "out"), "-v", "TOKEN:hunter2-<secret>"]
    done = subprocess.run(
        [*argv, str(suite)], cwd=PROJECT, capture_output=True, text=True, check=False, timeout=600,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT), "LAB_TOKEN": "of-the-environment"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert "output.xml" in written
    for name, text in {**written, "console": done.stdout + done.stderr}.items():
        assert not [each for each in ("hunter2", "word-9876", "plain-1234", "of-the-env") if each in text], name
    assert "it is *** and ***" in done.stdout and "\x1b[2J" not in done.stdout + done.stderr
    assert "a terminal\\x1b[2J" in done.stderr


CHOSEN = ("-v", f"TOPOLOGY:{SIM}", "-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "--log", "NONE", "--report", "NONE")


@pytest.mark.parametrize(
    ("program", "lack"),
    [
        (("csit_utils", "robot"), "full disk"),
        (("csit_utils", "robot"), "closed terminal"),
        (("robot",), "closed pipe"),
    ],
)
def test_a_run_without_its_console_is_recorded(tmp_path: Path, program: tuple[str, ...], lack: str) -> None:
    argv = [sys.executable, "-m", *program, *CHOSEN, "-d", str(tmp_path), str(DENSITY / "csc-mrr.robot")]
    with unwritable(lack) as stream:
        ended = subprocess.run(
            argv, stdout=stream, stderr=stream, env={**os.environ, "PYTHONPATH": str(DENSITY.parents[1])},
            timeout=600, check=False,
        )  # fmt: skip
    assert ended.returncode == 0
    (test,) = load([tmp_path / "output.xml"]).recorded
    assert (test.status, test.message) == (Status.PASS, "")


SUITES = ("csc-ndrpdr", "csp-ndrpdr")


def console(folder: Path) -> str:
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
