"""Help of every command: usage and kinds of values in plain words, lines of 80 columns."""

import re
import subprocess

import pytest
from typer.testing import CliRunner

from csit_utils import cli
from csit_utils.commands.results.explain import variables_page
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.paths import PROJECT

COMMANDS = [command for command in cli.COMMANDS if command != "robot"]  # Robot Framework prints its own help


def help_of(command: str) -> str:
    shown = CliRunner().invoke(cli.make_app([command]), [command, "--help"], env={"COLUMNS": "80"}, prog_name="./csit")
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_no_types_of_python_and_fits_80_columns(command: str) -> None:
    text = help_of(command)
    assert not re.search(r"<(str|int|float|Path|text|number|path|list\[|[a-z]+ range)|\[\[", text)
    assert re.fullmatch(
        r"Usage: \./csit \S+ \[OPTIONS\](( [A-Z]+(\.\.\.)?)| \[[A-Z]+(\.\.\.)?\])*", text.splitlines()[0]
    )
    assert "default: (" not in text
    assert str(PROJECT) not in text
    assert max(map(len, text.splitlines())) <= 80


def test_help_is_that_of_the_entry_script_and_lists_every_command_once() -> None:
    shown = CliRunner().invoke(cli.make_app([]), ["-h"], prog_name="./csit").output
    script = subprocess.run([PROJECT / "csit", "-h"], capture_output=True, text=True, check=True).stdout
    assert shown == script
    groups = re.findall(r"^(\w+).*:\n((?:  .*\n)+)", shown, re.MULTILINE)
    listed = [
        name for title, rows in groups if title != "Develop" for name in re.findall(r"^  (\w+)", rows, re.MULTILINE)
    ]
    assert sorted(listed) == sorted(cli.COMMANDS)


def test_examples_of_variables_can_be_pasted_into_a_shell() -> None:
    lines = [f"printf '%s\\n' {variables_page(name).splitlines()[0]}" for name in VARIABLES]
    pasted = subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout
    assert pasted.split() == [word for each in VARIABLES.values() for word in ("-v", f"{each.name}:{each.example}")]
