"""The server of the Model Context Protocol, asked by the protocol's own client over pipes."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent

from resources.libraries.python.paths import PROJECT
from tests.simulated.in_process import topology_with

Question = tuple[str, dict[str, Any]]


def asked(dataset: Path, *questions: Question) -> list[CallToolResult]:
    async def converse() -> list[CallToolResult]:
        argv = ["-m", "csit_utils", "mcp", str(dataset)]
        server = StdioServerParameters(command=sys.executable, args=argv, cwd=PROJECT)
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return [await session.call_tool(name, arguments) for name, arguments in questions]

    return asyncio.run(converse())


def text(answer: CallToolResult) -> str:
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text


def test_answers_have_bounds_verdicts_and_definitions_and_unlike_pairs_are_refused(history: Path) -> None:
    how_many, changes, trends, cells, meaning, counted = asked(
        history,
        ("answer", {"rate": "100kpps"}),
        ("compare", {"a": "fdio-2019", "b": "label=first"}),
        ("trend", {"everything": True}),
        ("plan", {"topology": "sim.yaml", "service_type": "CSC", "cells": "1x1"}),
        ("explain", {"name": "PDR"}),
        ("query", {"sql": "SELECT count(*) AS tests FROM tests"}),
    )
    fits = json.loads(text(how_many))
    assert fits["rows"] and {"evidence", "verdicts", "simulated"} <= fits["rows"][0].keys()
    assert "0.5" in fits["definitions"]["PDR"]
    refused = json.loads(text(changes))
    assert not refused["rows"] and any("simulated" in why for why in refused["refused_as_unlike"][0]["remarks"])
    assert "change" not in refused["refused_as_unlike"][0], "no figure that could be quoted"
    followed = json.loads(text(trends))
    assert {"NDR", "PDR"} <= followed["definitions"].keys() & {row["metric"] for row in followed["rows"]}
    assert [row["fits"] for row in json.loads(text(cells))["rows"] if row["object"] == "cell"]
    assert "loss ratio" in text(meaning)
    assert json.loads(text(counted))["rows"][0]["tests"] > 0
    assert not any(answer.is_error for answer in (how_many, changes, trends, cells, meaning, counted))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (("compare", {"a": "/etc/passwd", "b": "label=first"}), "/etc/passwd"),
        (("compare", {"a": "label=../x", "b": "label=first"}), "label=../x"),
        (("plan", {"topology": "../README.md", "service_type": "CSC"}), "../README.md"),
        (("query", {"sql": "SELECT * FROM read_csv('/etc/passwd')"}), "/etc/passwd"),
        (("query", {"sql": "x" * 3_000}), "2,000"),
        (("answer", {"rate": "many"}), "many"),
    ],
)
def test_files_beside_the_dataset_and_bad_arguments_are_refused_in_a_sentence(
    history: Path, question: Question, said: str
) -> None:
    (answer,) = asked(history, question)
    assert answer.is_error
    assert said in text(answer) and "Traceback" not in text(answer)


def test_results_and_topologies_elsewhere_are_refused_although_commands_could_read_them(
    history: Path, density: Path, tmp_path: Path
) -> None:
    results, topology = density / "output.xml", topology_with(tmp_path / "own.yaml", seed=2)
    answers = asked(
        history,
        ("compare", {"a": str(results), "b": "label=first"}),
        ("why", {"a": str(results), "b": "label=first"}),
        ("plan", {"topology": str(topology), "service_type": "CSC"}),
    )
    assert [answer.is_error for answer in answers] == [True] * 3
    assert str(results) in text(answers[0]) and str(topology) in text(answers[2])
