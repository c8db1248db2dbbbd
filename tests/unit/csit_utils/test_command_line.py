"""Command lines of runs that are resumed: the journal has none of their secrets."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from csit_utils.commands.runs import command_line
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.redaction import redacted


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
