"""Damaged topologies, specifications, selections and policies: a plan, or one sentence."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils import cli
from csit_utils.cli import COMMANDS, make_app
from tests.fuzz.conftest import PROJECT
from tests.fuzz.damage import NUMBERS, damaged
from tests.fuzz.oracle import run
from tests.unit.planning.labs import TWO_NODES

YAML = ("&a ", "*a", "<<: *a", "- ", *"[]{}|>\t\n#'\"%", ": ", "? ", "!!int ", "!!binary ", "---")
JSON = (*'[]{},:"\\\n', "null", "true", "\\ud800", "1e9999", "/*")
POLICY = (*'><()*?,"{\\', "and", "or", "not", "only", "before", "firewall", "nat")
LSCPU = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu % 8},0,0\n" for cpu in range(16))
CPU_ROWS = (*",-\n#\u0663", "# cpu,node,core,online", "0,0,0,0\n")
LAB = str(PROJECT / "topologies" / "available" / "lab-2n-kernel.yaml")
SPECS = "tests/characterization/specs"


def text_of(path: str) -> str:
    return (PROJECT / path).read_text(encoding="utf-8")


CASES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    **{
        name: (text_of(f"topologies/{name}"), YAML, ("plan", "FILE", "--cells", "1x1,2x2", "--types", "CSC"))
        for name in ("sim.yaml", "local.yaml", "available/lab-2n-vpp.yaml")
    },
    "lscpu.txt": (LSCPU, CPU_ROWS, ("plan", LAB, "--cells", "1x1", "--types", "CSC", "--cpus", "DUT1=FILE")),
    "csit.yaml": (TWO_NODES, YAML, ("convert", "FILE")),
    "chains": (text_of(f"{SPECS}/chains/four-vnfs.yaml"), YAML + POLICY, ("chains", "FILE")),
    "interference": (text_of(f"{SPECS}/interference/pairs.yaml"), YAML, ("interference", "FILE")),
    "outage": (text_of(f"{SPECS}/outage/routers.yaml"), YAML, ("outage", "FILE")),
    "stateful": (text_of(f"{SPECS}/stateful/firewall.yaml"), YAML, ("stateful", "FILE")),
    "deployment.json": (text_of(f"{SPECS}/clearwater/deployment.json"), JSON, ("size", "FILE", "FOLDER/workload.json")),
    "workload.json": (text_of(f"{SPECS}/clearwater/workload.json"), JSON, ("size", "FOLDER/deployment.json", "FILE")),
}  # fmt: skip
"""What is damaged, by name of the file or command: the text, pieces of its language, the command."""


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_files_that_users_write(name: str, tmp_path: Path, data: st.DataObject) -> None:
    text, pieces, command = CASES[name]
    folder = shutil.copytree(PROJECT / SPECS / "clearwater", tmp_path / "spec", dirs_exist_ok=True)
    file = folder / Path(name).name
    file.write_text(data.draw(damaged(text, pieces)), encoding="utf-8", errors="replace")
    run(name, *(word.replace("FILE", str(file)).replace("FOLDER", str(folder)) for word in command))


@pytest.mark.parametrize(
    "cells", ["1x1000000", "{1-4096}x{1-4096}", "1-999999999x1", ",".join(["1x1"] * 50_000), "1x" + "9" * 5000]
)
def test_selections_of_too_many_cells(cells: str) -> None:
    run("selection", "plan", str(PROJECT / "topologies" / "sim.yaml"), "--cells", cells)


WORDS = st.one_of(
    st.sampled_from(["--format", "json", "--cells", "--types", "--quiet", "-o", "--rate", "--p99", "-", "--", "="]),
    st.sampled_from(["", "\x1b[31m", "é" * 300, *NUMBERS]),
    st.text(max_size=30),
)
OFFLINE = ("plan", "size", "chains", "interference", "outage", "stateful", "report", "show", "import", "export",
           "answer", "compare", "trend", "gate", "profile", "suspects", "place", "explain", "convert",
           "outcome", "regoal", "bisect", "why")  # fmt: skip


@settings(max_examples=5 * settings().max_examples)
@given(st.sampled_from(COMMANDS), st.data())
def test_parsers_of_all_commands(command: str, data: st.DataObject) -> None:
    """Words, among them the options of the command: parsed, or refused. Nothing is run."""
    parsers: Any = typer.main.get_command(make_app([command]))
    parser = parsers.commands[command]
    words = data.draw(st.lists(st.one_of(WORDS, st.sampled_from(options_of(parser))), max_size=6))
    with patch.object(parser, "callback", lambda *_, **__: None), patch.object(cli, "make_app", lambda _: parsers):
        run("command-line parsers", command, *(word.replace("\x00", "") for word in words))


def options_of(parser: Any) -> list[str]:
    return ["--help", *(option for each in parser.params for option in each.opts)]


@settings(max_examples=5 * settings().max_examples)
@given(st.sampled_from(OFFLINE), st.lists(WORDS, max_size=5))
def test_command_lines(command: str, words: list[str]) -> None:
    run("command line", command, *(word.replace("\x00", "") for word in words))
