"""What holds the rooms together: the pins, the pages, the help."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pydantic import BaseModel
from typer.testing import CliRunner

from csit_utils.bisection.spec import BisectionSpec
from csit_utils.cli import COMMANDS, make_app
from csit_utils.commands.results.explain import variables_page
from resources.libraries.python.model.bounds import ASKED
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.chains.model.spec import ChainFile
from resources.libraries.python.studies.interference.model import InterferenceSpec
from resources.libraries.python.studies.outage.model import OutageSpec
from resources.libraries.python.studies.stateful.model import StatefulSpec
from resources.libraries.python.testbed.connection.authentication import HostsOfPasswords

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "jenkins").glob("*.md")])
REQUIREMENTS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-redfish.txt",
    "requirements-spark.txt",
    "constraints.txt",
)


def lines(name: str) -> Iterator[str]:
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "-")):
            yield line


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_pin_is_exact_and_once(name: str) -> None:
    rows = [
        re.match(r'([\w.-]+)(?:\[\w+\])?==[\w.]+(; python_version >= "[\d.]+")?(\s+# \w.*)?$', line)
        for line in lines(name)
    ]
    assert all(rows)
    names = [re.sub(r"[-_.]+", "-", row[1]).lower() for row in rows if row]
    assert len(set(names)) == len(names)
    if name != "constraints.txt":
        assert all("  # " in line or " # " in line for line in lines(name)), "a pin says why it is there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_whole_tables_and_name_commands_and_files_that_exist(page: Path) -> None:
    """A row that is wrapped or joined is no row of its table any more."""
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"\./csit (\w+)", text)) <= {*COMMANDS, "bench", "docs", "setup", "test"}
    for file in re.findall(r"(?:topologies|tests/density)/[\w.-]+\.(?:yaml|robot)\b", text):
        assert (ROOT / file).exists() or page.name in FOLLOWED, file
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [re.sub(r"`[^`]*`", "", row) for row in table.splitlines()]
        assert all(row.endswith("|") for row in rows), table
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, table


OWN = sorted({*COMMANDS} - {"robot"})
"""Commands that do not pass their options on."""


@cache
def command_of(name: str) -> typer.core.TyperCommand:
    group = typer.main.get_command(make_app([name]))
    assert isinstance(group, typer.core.TyperGroup)
    found = group.commands[name]
    assert isinstance(found, typer.core.TyperCommand)
    return found


@cache
def options_of(command: str) -> frozenset[str]:
    parameters = command_of(command).params
    return frozenset(option for each in parameters for option in (*each.opts, *each.secondary_opts)) | {"--help"}


def test_pages_and_help_name_options_that_exist() -> None:
    texts = {str(page): page.read_text(encoding="utf-8") for page in PAGES}
    texts |= {command: command_of(command).help or "" for command in OWN}
    found = set()
    for source, text in texts.items():
        for command, words in re.findall(r"\./csit ([a-z]+)\b([^`\n|)>&;#]*)", re.sub(r"\\\n\s*", " ", text)):
            if command in OWN:
                named = set(re.findall(r"(?<!\S)--?[a-z][\w-]*", re.sub(r"'[^']*'", "", words)))
                assert named <= options_of(command), (source, command)
                found |= named
    assert len(found) > 50


@pytest.mark.parametrize("command", OWN)
def test_help_has_no_types_of_python_fits_80_columns_and_has_whole_examples(command: str) -> None:
    done = CliRunner().invoke(make_app([command]), [command, "--help"], env={"COLUMNS": "80"}, prog_name="./csit")
    usage, *lines = done.stdout.splitlines()
    assert not re.search(r"<(str|int|float|Path|text|number|path|list\[|[a-z]+ range)|\[\[|default: \(", done.stdout)
    assert re.fullmatch(r"Usage: \./csit \S+ \[OPTIONS\](( [A-Z]+(\.\.\.)?)| \[[A-Z]+(\.\.\.)?\])*", usage)
    assert str(ROOT) not in done.stdout and max(map(len, [usage, *lines])) <= 80
    blocks = (command_of(command).help or "").split("\b\n")[1:]
    examples = [line.strip() for block in blocks for line in block.split("\n\n")[0].splitlines()]
    assert [line for line in examples if line.startswith("./csit ") or f"./csit {command}" in line], "no example"
    assert [line for line in examples if line not in done.stdout] == []


def test_help_is_that_of_the_entry_script_and_lists_every_command_once() -> None:
    shown = CliRunner().invoke(make_app([]), ["-h"], prog_name="./csit").output
    script = subprocess.run([ROOT / "csit", "-h"], capture_output=True, text=True, check=True).stdout
    assert shown == script
    groups = re.findall(r"^(\w+).*:\n((?:  .*\n)+)", shown, re.MULTILINE)
    listed = [
        name for title, rows in groups if title != "Develop" for name in re.findall(r"^  (\w+)", rows, re.MULTILINE)
    ]
    assert sorted(listed) == sorted(COMMANDS)


def test_examples_of_variables_can_be_pasted_into_a_shell() -> None:
    lines = [f"printf '%s\\n' {variables_page(name).splitlines()[0]}" for name in VARIABLES]
    pasted = subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout
    assert pasted.split() == [word for each in VARIABLES.values() for word in ("-v", f"{each.name}:{each.example}")]


FOLLOWED = {"add-a-driver.md", "add-a-metric.md", "add-a-study.md"}
"""Pages that make or edit the files they name; tests of their own follow them to the letter."""
OTHERS: dict[str, type[BaseModel]] = {
    "vnfs": ChainFile, "contenders": InterferenceSpec, "events": OutageSpec, "tear_downs": StatefulSpec,
    "install": BisectionSpec, "env:LAB_PASSWORD": HostsOfPasswords,
}  # fmt: skip
"""Files that are no topologies, by a key that only they have."""
_SPECS = "tests/characterization/specs"
FRAGMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "world": ("topologies/available/lab-2n-otg.yaml", ()),
    "nodes": ("topologies/local.yaml", ()),
    "TG": ("topologies/available/lab-2n-kernel.yaml", ("nodes",)),
    "simulation": ("topologies/sim.yaml", ()),
    "vswitch": ("topologies/available/lab-2n-vpp.yaml", ("nodes", "DUT1")),
    "energy": ("topologies/available/lab-2n-kernel.yaml", ("nodes", "DUT1")),
    "access": ("topologies/available/lab-2n-kernel.yaml", ("nodes", "DUT1")),
    "load_pps": (f"{_SPECS}/interference/pairs.yaml", ()),
    "faults": (f"{_SPECS}/chains/four-vnfs.yaml", ()),
}
"""Parts of files, by a key that they have: a file that becomes another one with them, and the place there."""


def completed(data: dict[str, Any]) -> dict[str, Any]:
    """Return an example as a whole file: itself, or the file that it changes."""
    found = next((FRAGMENTS[key] for key in FRAGMENTS if key in data), None)
    if {"metadata", *OTHERS} & data.keys() or found is None:
        return data
    name, place = found
    for key in reversed(place):
        data = {key: data}
    return merged(yaml.safe_load((ROOT / name).read_text(encoding="utf-8")), data)


def merged(file: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a file with the keys of a part of it in the place of its own."""
    return file | {
        key: merged(file[key], value) if isinstance(value, dict) and isinstance(file.get(key), dict) else value
        for key, value in part.items()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_pages_can_be_read(page: Path) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for language, body in blocks:
        if language == "yaml" and page.name not in FOLLOWED:
            data = completed(yaml.safe_load(body))
            model = next((model for key, model in OTHERS.items() if key in data), Topology)
            model.model_validate(data, context=ASKED)
        elif language == "python":
            imports = [node for node in ast.parse(body).body if isinstance(node, ast.Import | ast.ImportFrom)]
            if page.name not in FOLLOWED:
                exec(ast.unparse(ast.Module(list(imports), [])), {})  # noqa: S102 - of our own pages
        elif language == "sh":
            subprocess.run(["sh", "-n"], input=body, text=True, check=True)


def test_decision_records_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "adr"
    listed = re.findall(
        r"^(\d+)\. .*\]\(([\w-]+\.md)\)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [int(number) for number, _ in listed] == list(range(1, len(listed) + 1))
    records = sorted(folder.glob("[0-9]*.md"))
    assert {record.name for record in records} == {name for _, name in listed}
    for record in records:
        assert (f"{int(record.name[:4])}", record.name) in listed
        titles = re.findall(r"^## (\w+)", record.read_text(encoding="utf-8"), re.MULTILINE)
        assert titles == ["Why", "Decision", "Consequences"], record.name


_LONGEST_ENTRY = 450
"""Of the change log, in characters without targets of links: one or two sentences, or a list."""
_MAX_ENTRIES = 20
"""Under a topic: of more a reader does not find the one that matters; fold them, or make a topic of some."""


def test_the_change_log_has_few_and_short_entries_under_each_topic() -> None:
    text = re.sub(r"\]\([^)]*\)", "]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    for topic in text.split("\n#### ")[1:]:
        entries = re.findall(r"^- (.*(?:\n  .*)*)", topic, re.MULTILINE)
        assert 1 <= len(entries) <= _MAX_ENTRIES, topic.splitlines()[0]
        assert [entry for entry in entries if len(" ".join(entry.split())) > _LONGEST_ENTRY] == []
