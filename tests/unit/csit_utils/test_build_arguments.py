"""Arguments of a build in one text (`--args`): words as of a shell, tests and choices only."""

from pathlib import Path

import pytest

from csit_utils.cli import main
from csit_utils.commands.runs.command_line import spread
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.paths import PROJECT


@pytest.fixture(autouse=True)
def _in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


def test_a_text_is_split_once_and_comes_last() -> None:
    text = """-v CELLS:1x1,2x1 --include 'A AND B'\n-e "x $(id) `id`" -vLOSSES:1 --test *;* tests/density tests"""
    assert spread(["robot", "--args", text, "-d", "out; rm"]) == [
        "robot", "-d", "out; rm", "-v", "CELLS:1x1,2x1", "--include", "A AND B", "-e", "x $(id) `id`", "-v", "LOSSES:1",
        "--test", "*;*", "tests/density", "tests",
    ]  # fmt: skip
    night = spread(["night", "--args", "--types CSC --cells 1x1 -v NOISE_FLOOR:0", "lab.yaml", "--hours", "8"])
    assert night == ["night", "lab.yaml", "--hours", "8", "--types", "CSC", "--cells", "1x1", "-v", "NOISE_FLOOR:0"]


@pytest.mark.parametrize(
    "text",
    [
        "tests/density; touch stolen",
        "tests/density\ntouch stolen",
        "$(touch stolen)",
        "`touch stolen`",
        "tests/density && touch stolen",
        "tests/density 'open",
        "--listener os.system:id tests/density",
        "--prerunmodifier subprocess.Popen:id tests/density",
        "--argumentfile /etc/passwd",
        "-A /etc/passwd",
        "-V values.py tests/density",
        "-d /tmp/elsewhere tests/density",
        "--resume results/night",
        "--output /etc/passwd tests/density",
        "-v TOPOLOGY:other.yaml tests/density",
        "-v RESUME:/elsewhere tests/density",
        "-v QUALIFY:/elsewhere tests/density",
        "-v 'OUTPUT DIR:/elsewhere' tests/density",
        "-v OUTPUT_DIR:/elsewhere tests/density",
        "-v COMMAND:{} tests/density",
        "-v CELS:1x1 tests/density",
        "-v SET:contenders.0.program.start=id tests/characterization",
        r"-v 'SET:contenders.0={\"pro\x67ram\": {start: id}}' tests/characterization",
        "/etc/passwd",
        "../elsewhere.robot",
        "tests/../../elsewhere",
        "tests/nowhere",
        "tests/density -d /tmp/elsewhere",
    ],
)
def test_anything_else_is_refused_in_one_sentence(
    text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["csit", "robot", "--args", text, "--dryrun"])
    assert main() == 2
    shown = capfd.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == 1
    assert shown.err.startswith("--args")
    assert not Path("stolen").exists()


def test_a_night_takes_no_suites_and_no_folders() -> None:
    for text in ("tests/density", "--data /elsewhere", "-d /elsewhere", "--html page.html", "--hours 99"):
        with pytest.raises(ConfigError, match=r"^--args"):
            spread(["night", "--args", text, "lab.yaml"])


def test_other_commands_take_none() -> None:
    with pytest.raises(ConfigError, match=r"^--args: an option of robot and night; remove it$"):
        spread(["report", "--args", "x"])
