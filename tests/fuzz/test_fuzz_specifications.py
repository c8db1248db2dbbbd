"""Damaged topologies, specifications, selections and policies: a plan, or one sentence."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from csit_utils import cli
from csit_utils.cli import COMMANDS, make_app
from resources.libraries.python.studies.density.model.selection import parse_selection
from tests.fuzz.conftest import PROJECT
from tests.fuzz.damage import NUMBERS, damaged
from tests.fuzz.oracle import refused, run, times
from tests.unit.planning.labs import TWO_NODES

SPECS = PROJECT / "tests" / "characterization" / "specs"
YAML = (
    "&a ",
    "*a",
    "<<: *a",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ": ",
    "? ",
    "!!int ",
    "!!binary ",
    "|",
    ">",
    "\t",
    "\n",
    "#",
    "---",
    "'",
    '"',
    "%",
)
JSON = ("[", "]", "{", "}", ",", ":", '"', "null", "true", "\\ud800", "\\", "1e9999", "/*", "\n")
POLICY = (">", "<", "(", ")", "and", "or", "not", "only", "before", "firewall", "nat", "*", "?", ",", '"', "{", "\\")


def text_of(*path: str) -> str:
    return Path(PROJECT, *path).read_text(encoding="utf-8")


TOPOLOGIES = [text_of("topologies", name) for name in ("sim.yaml", "local.yaml", "available/lab-2n-vpp.yaml")]
CHAINS = text_of("tests", "characterization", "specs", "chains", "four-vnfs.yaml")
INTERFERENCE = text_of("tests", "characterization", "specs", "interference", "pairs.yaml")
OUTAGE = text_of("tests", "characterization", "specs", "outage", "routers.yaml")
STATEFUL = text_of("tests", "characterization", "specs", "stateful", "firewall.yaml")
DEPLOYMENT, WORKLOAD = (
    text_of("tests", "characterization", "specs", "clearwater", name) for name in ("deployment.json", "workload.json")
)


@given(st.sampled_from(TOPOLOGIES).flatmap(lambda text: damaged(text, YAML)))
def test_topologies(tmp_path: Path, text: str) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")
    run("topology", "plan", str(file), "--cells", "1x1,2x2", "--types", "CSC")


LSCPU = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu % 8},0,0\n" for cpu in range(16))


@given(damaged(LSCPU, (",", "-", "\n", "#", "# cpu,node,core,online", "0,0,0,0\n", "\u0663")))
def test_cpus_of_nodes(tmp_path: Path, text: str) -> None:
    file = tmp_path / "lscpu.txt"
    file.write_text(text, encoding="utf-8", errors="replace")
    lab = PROJECT / "topologies" / "available" / "lab-2n-kernel.yaml"
    run("output of lscpu", "plan", str(lab), "--cells", "1x1", "--types", "CSC", "--cpus", f"DUT1={file}")


@given(damaged(TWO_NODES, YAML))
def test_topologies_of_csit(tmp_path: Path, text: str) -> None:
    file = tmp_path / "csit.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")
    run("topology of CSIT", "convert", str(file))


@given(damaged(CHAINS, YAML + POLICY))
def test_studies_of_chains(tmp_path: Path, text: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")
    run("chain study", "chains", str(file))


@given(damaged(INTERFERENCE, YAML))
def test_studies_of_interference(tmp_path: Path, text: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")
    run("interference study", "interference", str(file))


@given(damaged(OUTAGE, YAML))
def test_studies_of_outages(tmp_path: Path, text: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")
    run("outage study", "outage", str(file))


@given(damaged(STATEFUL, YAML))
def test_studies_of_stateful_density(tmp_path: Path, text: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")
    run("stateful study", "stateful", str(file))


@given(damaged(DEPLOYMENT, JSON), damaged(WORKLOAD, JSON), st.sampled_from(["deployment", "workload", "both"]))
def test_sizings(tmp_path: Path, deployment: str, workload: str, which: str) -> None:
    folder = tmp_path / "spec"
    shutil.copytree(SPECS / "clearwater", folder, dirs_exist_ok=True)
    if which != "workload":
        (folder / "deployment.json").write_text(deployment, encoding="utf-8", errors="replace")
    if which != "deployment":
        (folder / "workload.json").write_text(workload, encoding="utf-8", errors="replace")
    run("sizing", "size", str(folder / "deployment.json"), str(folder / "workload.json"))


PIECES = st.sampled_from(
    (*NUMBERS, "1x1", "{1-4096}", "x", ",", "-", "{", "}", "c", "0.5", "+", "IMIX", "64B", "1x1000000", "\x00", "٣")
)


@times(5)
@given(*[st.lists(PIECES, max_size=6).map("".join)] * 4)
def test_selections(cells: str, sizes: str, vswitch: str, frames: str) -> None:
    refused("selection", lambda: parse_selection(cells=cells, nf_sizes=sizes, vswitch=vswitch, frames=frames))


@pytest.mark.parametrize(
    "cells", ["1x1000000", "{1-4096}x{1-4096}", "1-999999999x1", ",".join(["1x1"] * 50_000), "1x" + "9" * 5000]
)
def test_selections_of_too_many_cells(cells: str) -> None:
    run("selection", "plan", str(PROJECT / "topologies" / "sim.yaml"), "--cells", cells)


WORDS = st.one_of(
    st.sampled_from(
        [
            "--json",
            "--cells",
            "--types",
            "--quiet",
            "-o",
            "--into",
            "--rate",
            "--p99",
            "-",
            "--",
            "=",
            "",
            "\x1b[31m",
            "é" * 300,
        ]
    ),
    st.sampled_from(NUMBERS),
    st.text(max_size=30),
)
OFFLINE = ("plan", "size", "chains", "interference", "outage", "stateful", "report", "show", "import", "export",
           "answer", "compare", "trend", "gate", "profile", "suspects", "place", "explain", "convert",
           "outcome", "regoal", "bisect", "why")  # fmt: skip


@times(5)
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


@times(5)
@given(st.sampled_from(OFFLINE), st.lists(WORDS, max_size=5))
def test_command_lines(command: str, words: list[str]) -> None:
    run("command line", command, *(word.replace("\x00", "") for word in words))
