"""Command lines of runs: what `--args` of a build may have, and the journal of a run has none of its secrets."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from csit_utils.cli import main
from csit_utils.commands.runs import command_line
from csit_utils.commands.runs.command_line import spread
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.redaction import redacted


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
        "tests/density 'open",
        "--listener os.system:id tests/density",
        "--argumentfile /etc/passwd",
        "-A /etc/passwd",
        "-V values.py tests/density",
        "-d /tmp/elsewhere tests/density",
        "--resume results/night",
        "--output /etc/passwd tests/density",
        "-v TOPOLOGY:other.yaml tests/density",
        "-v RESUME:/elsewhere tests/density",
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


def test_a_night_takes_no_suites_and_no_folders_and_other_commands_no_text() -> None:
    for text in ("tests/density", "--data /elsewhere", "-d /elsewhere", "--html page.html", "--hours 99"):
        with pytest.raises(ConfigError, match=r"^--args"):
            spread(["night", "--args", text, "lab.yaml"])
    with pytest.raises(ConfigError, match=r"^--args: an option of robot and night; remove it$"):
        spread(["report", "--args", "x"])


def test_the_journal_gets_no_secrets() -> None:
    variable = command_line.remembered("robot", ["-v", "TOKEN:of-this-test", "--include", "CSC", "tests/density"])
    known = json.loads(variable.removeprefix("COMMAND:"))
    assert known["arguments"] == ["-v", "TOKEN:***", "--include", "CSC", "tests/density"]
    assert redacted("it was of-this-test") == "it was ***"


def test_a_run_with_secrets_is_resumed_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    header = SimpleNamespace(command="robot", arguments=("-v", "TOKEN:***", "tests/density"), folder=str(tmp_path))
    monkeypatch.setattr(command_line, "header_of", lambda _: header)
    folder = tmp_path / "my run"
    with pytest.raises(ConfigError) as found:
        command_line.again(folder)
    assert str(found.value) == (
        f"{folder}: the journal has no secrets; repeat the command with a value for TOKEN: "
        f"./csit robot --resume '{folder}' -v 'TOKEN:***' tests/density"
    )
    given = ["-v", "TOKEN:x", "tests/density"]
    assert command_line.again(folder, given) == ["--variable", f"RESUME:{folder}", *given]
