"""Robot writes no secrets: neither to its files nor to the console."""

import subprocess
import sys
from pathlib import Path

from resources.libraries.python.paths import PROJECT

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
