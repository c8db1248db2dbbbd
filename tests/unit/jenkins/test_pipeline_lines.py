"""The pipelines as text: what they run can be run by hand, in the order that the page gives."""

import re
import subprocess
from pathlib import Path

import pytest

from csit_utils.cli import COMMANDS

ROOT = Path(__file__).parents[3]
JENKINS = ROOT / "jenkins"
PIPELINES = sorted(JENKINS.glob("*.Jenkinsfile"))
GROOVY = (JENKINS / "measure.groovy").read_text(encoding="utf-8")


def steps() -> list[tuple[str, str]]:
    """Stage and line of every `sh` of the pipeline, in the order of the file, which is that of a run."""
    found, stage = [], ""
    for name, line in re.findall(r"stage\('([^']*)'\)|\bsh (?:returnStatus: true, script: )?'([^']*)'", GROOVY):
        stage = name or stage
        if line:
            found.append((stage, line))
    return found


def table() -> list[tuple[str, str]]:
    """The rows of the page's table of lines."""
    rows = re.findall(
        r"^\| ([\w ]*) \| `([^`]*)` \|$", (JENKINS / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    found, stage = [], ""
    for name, line in rows:
        stage = name.strip() or stage
        found.append((stage, line))
    return found


def test_the_page_has_the_lines_of_the_pipeline_in_their_order() -> None:
    assert len(steps()) == len(re.findall(r"\bsh\b ", re.sub(r"//.*", "", GROOVY))) > 10
    assert table() == steps()


def test_every_line_is_shell_that_calls_what_there_is() -> None:
    for _, line in steps():
        subprocess.run(["sh", "-n"], input=line, text=True, check=True)
        assert set(re.findall(r"\./csit (\w+)", line)) <= {*COMMANDS, "setup"}, line
        for script in re.findall(r"\bjenkins/[\w-]+", line):
            assert (ROOT / script).is_file(), script
        # A value of the environment is one word of the shell: only the filter is words.
        assert re.findall(r'(?<!")(?<!":)(?<![\w/])\$(?!\w+[/"])\w+', line) in ([], ["$FILTER"]), line


@pytest.mark.parametrize(
    ("testbeds", "is_one"),
    [
        ("topologies/local.yaml", True),
        ("topologies/available/lab-2n-vpp.yaml topologies/sim.yaml", True),
        ("topologies/.yaml", False),
        ("topologies/a/.yaml", False),
        ("topologies/-a.yaml", False),
        ("-v topologies/a.yaml", False),
    ],
)
def test_a_testbed_has_a_name(testbeds: str, *, is_one: bool) -> None:
    """Without one its results would be the folder of all results, which is removed before a run."""
    form = re.search(r"TESTBEDS +: /(.*)/,", GROOVY)
    assert form is not None
    assert bool(re.fullmatch(form[1].replace(r"\/", "/"), testbeds)) is is_one


@pytest.mark.parametrize("pipeline", [*PIPELINES, JENKINS / "measure.groovy"], ids=lambda path: path.name)
def test_a_pipeline_puts_no_value_into_a_line_by_itself(pipeline: Path) -> None:
    text = re.sub(r"(?m)//.*$", "", pipeline.read_text(encoding="utf-8"))
    for step in re.findall(r"\bsh\b.{0,40}", text):
        assert re.match(r"sh (returnStatus: true, script: )?'(?!'')", step), step
    assert set(re.findall(r"\bload\b.*", text)) <= {"load 'jenkins/measure.groovy'"}
