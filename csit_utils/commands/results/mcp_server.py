"""`mcp`: a read-only server of the Model Context Protocol over a dataset, on standard input and output.

Each question is a command of this project in a process of its own, with its bounds on input, memory and time; the
answers are those of the command line, with the definitions that they rest on.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import Annotated, Any, Literal

import typer

from csit_utils.commands.results.explain import page_of
from csit_utils.commands.results.inputs import refuse_no_dataset
from csit_utils.dataset.reference import names
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.paths import PROJECT

_TIMEOUT_S = 120.0
_MAX_BYTES = 2**20
"""Of an answer: more than a model reads."""
_MAX_PRINTED_BYTES = 64 * 2**20
_MAX_TEXT = 2_000
_SELECTION = re.compile(r"[a-z]+=[^/\\\0,=]+(?:,[a-z]+=[^/\\\0,=]+)*")
"""Runs of the dataset, such as `label=v25.06,testbed=lab-1`: never a path."""
_INSTRUCTIONS = """\
Measured throughput and latency of network services (NFs in VMs and containers on a vSwitch), of one dataset, read-only.
Quote figures with their interval and unit (rates are packets per second, all instances and both directions together),
say what a verdict says limits them, and say "simulated" of rows whose simulated is true. A pair that is refused as
unlike must not be compared in other words either. `list_views` and `query` answer what no other tool does.
"""


def mcp(
    dataset: Annotated[Path, typer.Argument(help="Dataset of ./csit import.", metavar="DATASET")],
    topologies: Annotated[
        Path,
        typer.Option(
            help="Folder of the topology files that may be planned for.", metavar="FOLDER", show_default="topologies"
        ),
    ] = PROJECT / "topologies",
) -> None:
    """Serve a dataset to language models (MCP).

    Reads requests from standard input and answers on standard output, as clients of the protocol start their servers;
    no port is opened, nothing is written, and no file beside the dataset and the topologies is read.

    \b
    Examples:
    ./csit setup requirements-mcp
    claude mcp add density -- /path/to/csit mcp /path/to/history
    """  # noqa: D301 - \b keeps the lines of the examples apart
    try:
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an optional extra
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - as above
    except ImportError as error:
        raise Unsupported("the package mcp is not installed: ./csit setup requirements-mcp") from error
    refuse_no_dataset(dataset)
    if not topologies.is_dir():
        raise ConfigError(f"--topologies {topologies}: no such folder")
    questions = Questions(dataset.resolve(), topologies.resolve())
    server = MCPServer("csit", instructions=_INSTRUCTIONS, log_level="ERROR")
    for question in questions.every():
        server.tool()(_refusing_by(ToolError, question))
    server.run("stdio")


def _refusing_by(refusal: type[Exception], question: Callable[..., Any]) -> Callable[..., Any]:
    """Return a question whose errors are refusals with one sentence; without its traceback, which is the server's."""

    @wraps(question)
    def asked(**arguments: object) -> object:
        try:
            return question(**arguments)
        except CsitError as error:
            raise refusal(str(error)) from error

    return asked


class Questions:
    """The questions that a client may ask, each a tool of the protocol."""

    def __init__(self, dataset: Path, topologies: Path) -> None:
        self._dataset = str(dataset)
        self._topologies = topologies

    def every(self) -> tuple[Callable[..., Any], ...]:
        """The questions, each with its parameters and a description in its docstring."""
        return self.plan, self.answer, self.compare, self.trend, self.why, self.explain, self.list_views, self.query

    def plan(self, topology: str, service_type: Literal["VSC", "CSC", "CSP"], cells: str = "1x1") -> dict[str, Any]:
        """Which cells fit a testbed, with their cores, and the reason for those that do not.

        topology is the name of a file such as sim.yaml; cells such as 2x4 or {1,2,4}x{1,2}: instances x NFs of each.
        """
        file = (self._topologies / topology).resolve()
        if not file.is_relative_to(self._topologies) or not file.is_file():
            there = ", ".join(sorted(path.name for path in self._topologies.glob("*.yaml"))[:50])
            raise ConfigError(f"no topology {_short(topology)}; there are {there or 'none'}")
        found = _rows("plan", f"--types={service_type}", f"--cells={cells}", "--format=json", "--", str(file))
        dropped = ("cores", "queues", "balance")
        return _answer([{key: row[key] for key in row if key not in dropped} for row in found])

    def answer(self, rate: str, p99: str = "", goal: Literal["NDR", "PDR"] | None = None) -> dict[str, Any]:
        """How many service instances fit at a rate per instance such as 500kpps, and a p99 latency such as 100us.

        Numbers of instances that a test has measured; the verdict says what limits the next one. Without a goal it is
        PDR, or NDR where no test has a PDR.
        """
        bounds = [f"--{name}={value}" for name, value in (("p99", p99), ("goal", goal)) if value]
        rows = _rows("answer", f"--rate={rate}", *bounds, "--format=json", "--", self._dataset)
        return _answer(rows, *{row["goal"] for row in rows})

    def compare(self, a: str, b: str) -> dict[str, Any]:
        """Changes of b against a, with their 95 % interval and significance.

        a and b select runs by KEY=VALUE[,...] with keys run, label, testbed, night, version, revision, profile,
        service, frame or origin; or name published figures, such as fdio-2019. Unlike figures are refused.
        """
        for side in (a, b):
            _check_selection(side)
        rows = _rows("compare", "--format=json", f"--data={self._dataset}", "--", a, b)
        unlike = [row for row in rows if row["outcome"] == "unlike"]
        refused = [
            {key: row[key] for key in ("service_type", "nf_chains", "nf_nodes", "frame", "metric", "remarks")}
            for row in unlike
        ]
        alike = [row for row in rows if row["outcome"] != "unlike"]
        return _answer(alike, *{row["metric"] for row in alike}) | {"refused_as_unlike": refused}

    def trend(self, everything: bool = False) -> dict[str, Any]:
        """Regressions and progressions over the runs of each cell: steps, two bands, drift, each at a stated chance.

        everything: also cells without a change.
        """
        rows = _rows("trend", "--format=json", *(["--all"] if everything else []), "--", self._dataset)
        return _answer(rows, *{row["metric"] for row in rows})

    def why(self, a: str, b: str, cell: str = "") -> dict[str, Any]:
        """Functions of vSwitch and NFs that take more or less CPU time in runs b than in a; both as for compare."""
        for side in (a, b):
            _check_selection(side)
        only = [f"--cell={cell}"] if cell else []
        return _answer(_rows("why", "--format=json", f"--data={self._dataset}", *only, "--", a, b))

    def explain(self, name: str) -> str:
        """Definition, unit, method and pitfalls of a metric such as PDR, or of a variable of the suites."""
        return _run("explain", "--", name)

    def list_views(self) -> str:
        """Views and columns of the dataset that query knows, with their units."""
        return _run("query", "--", self._dataset)

    def query(self, sql: str) -> dict[str, Any]:
        """Rows of one SELECT statement of DuckDB over the views of the dataset."""
        return _answer(_rows("query", "--format=json", "--", self._dataset, sql))


def _check_selection(text: str) -> None:
    if text not in names() and not _SELECTION.fullmatch(text):
        raise ConfigError(f"{_short(text)}: neither KEY=VALUE[,...] nor published figures: {', '.join(names())}")


def _short(text: str) -> str:
    return repr(text[:_MAX_TEXT])


def _answer(rows: Sequence[dict[str, Any]], *metrics: str) -> dict[str, Any]:
    """Rows as far as there is room for them, how many there are, and the definitions of their metrics."""
    from csit_utils.studies.registry import explanations  # noqa: PLC0415 - numpy costs time of every --help

    sizes = accumulate(len(json.dumps(row)) for row in rows)
    kept = [row for row, size in zip(rows, sizes, strict=True) if size <= _MAX_BYTES]
    known = explanations() if metrics else {}
    definitions = {name: page_of(known[name.lower()]) for name in sorted(metrics) if name.lower() in known}
    return {"rows": kept, "rows_in_all": len(rows), "definitions": definitions}


def _rows(*words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _run(*words).splitlines() if line.startswith("{")]


def _run(*words: str) -> str:
    """Return what a command prints.

    Raises:
        ConfigError: It refuses, with its own sentence, or prints too much.
    """
    if any(len(word) > _MAX_TEXT for word in words):
        raise ConfigError(f"an argument has more than {_MAX_TEXT:,} characters")
    argv = (sys.executable, "-m", "csit_utils", *words)
    with (
        TemporaryFile() as errors,
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - a pipe, as asked for
        deadline = Timer(_TIMEOUT_S, process.kill)
        deadline.start()
        try:
            printed = process.stdout.read(_MAX_PRINTED_BYTES + 1)
        finally:
            late = not deadline.is_alive()
            deadline.cancel()
            if late or len(printed) > _MAX_PRINTED_BYTES:
                process.kill()
        if late or len(printed) > _MAX_PRINTED_BYTES:
            most = f"{_TIMEOUT_S:g} s" if late else f"{_MAX_PRINTED_BYTES >> 20} MB"
            raise ConfigError(f"{words[0]} takes more than {most}; ask for less")
        status = process.wait()
        errors.seek(0)
        why = errors.read(_MAX_TEXT).decode(errors="replace").strip()
    if status not in (0, 1) or (status and not printed):
        raise ConfigError(why or f"{words[0]} failed with {status}")
    return printed.decode(errors="replace")
