"""Tables and sentences of commands: a terminal is wide enough and loses nothing, a pipe gets them whole."""

import io
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils import cli
from csit_utils.commands.tables import TableForm, TableLine, fitted, print_table
from csit_utils.commands.testbeds.doctor import print_findings
from resources.libraries.python.model.findings import ok, problem, warning
from resources.libraries.python.model.measurements.stacks import described
from resources.libraries.python.paths import PROJECT
from tests.unit.csit_utils.builders import CSC, result
from tests.unit.csit_utils.characterization_records import one_of_each
from tests.unit.csit_utils.measured_extras import sampled
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.study_records import chain_studied, interfered

_WIDTH = 80
_PROSE = "4x1 gives its worst instance 1.31 Mpps (instance 1 reverse) at PDR load 5.26 Mpps, p99 80 us at PDR50"


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]], *left: str, width: int = _WIDTH) -> list[str]:
    return [text for text, _ in fitted(heads, [TableLine(row, {}) for row in rows], left, width)]


def test_tables_that_fit_are_lines_also_in_a_pipe_and_prose_follows_below(capsys: pytest.CaptureFixture[str]) -> None:
    assert table(("cell", "NDR"), [("CSC 1x1", "6.44 Mpps"), ("CSC 10x1", "980 kpps")], "cell") == [
        "cell            NDR",
        "CSC 1x1   6.44 Mpps",
        "CSC 10x1   980 kpps",
    ]
    lines = table(
        ("service", "evidence", "next"), [("CSC", _PROSE, "5x1 was not measured " * 3)], "service", "evidence"
    )
    assert max(map(len, lines)) <= _WIDTH
    assert any(line.startswith("    evidence: 4x1 gives its worst instance 1.31 Mpps") for line in lines)
    print_table(
        ("cell", "evidence"), [TableLine(("CSC\t1x1", "lost\nat NF"), {}, below=("all of it",))], TableForm.TABLE
    )
    assert capsys.readouterr().out == "cell\tevidence\nCSC 1x1\tlost at NF\n\tall of it\n"


_WORDS = [f"{'abcxyz0189' * 2}"[at : at + size] for size in range(1, 19) for at in (0, 1, 2)]
"""Of all lengths: to draw each character takes most of the time of an example."""


@pytest.mark.slow
@given(st.data(), st.integers(40, 120))
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(data: st.DataObject, width: int) -> None:
    count = data.draw(st.integers(1, 9))
    word = st.sampled_from(_WORDS)
    cell = st.lists(word, max_size=14).map(" ".join)
    heads = tuple(f"{data.draw(word)[:9]} {number}" for number in range(count))
    rows = data.draw(st.lists(st.tuples(*[cell] * count), max_size=4))
    left = data.draw(st.sets(st.sampled_from(heads)))
    lines = table(heads, rows, *left, width=width)
    words = {text for row in rows for each in row for text in each.split()}
    assert words <= set(" ".join(lines).split())
    numbers = [each for row in rows for head, each in zip(heads, row, strict=True) if head not in left]
    if all(len(each) <= width - 26 for each in numbers):
        assert max(map(len, lines), default=0) <= width


_SIM = str(PROJECT / "topologies" / "sim.yaml")
_LAB = str(PROJECT / "topologies" / "available" / "lab-2n-vpp.yaml")
_COMMANDS = (
    *("show {studies} {before}", "show {studies} {before} --why", "suspects {studies} --why", "place {studies}"),
    *("trend {studies} --all", "compare {before} {after}", "gate {before} {after}", "why {before} {after} --all"),
    *("regoal {before}", "answer {before} --rate 100kpps --p99 1ms", "explain pdr", "profile {points}"),
    "profile small={points} large={points} --rate 0.1 --loss 1",
    "profile --chain a={points},b={points} --path {points} --rate 0.1",
    *(f"plan {_SIM} --cells 1x1,10x10", f"plan {_SIM} --cell CSC_2x2_1c", f"doctor {_SIM}", f"status {_SIM}"),
    f"plan {_LAB} --cpus DUT1={{cpus}} --cell CSC_2x2_1c",
    f"qualify {_SIM} --frames 64B --flows 2 --brief",
    f"night {_SIM} --hours 1 --cells 1x1,2x1 --data {{before}}",
    *("chains chains/four-vnfs.yaml", "interference interference/pairs.yaml", "stateful stateful/nat.yaml"),
    *("outage outage/routers.yaml", "outage outage/routers.yaml --list", "bisect {bisection} --list"),
    "size clearwater/deployment.json clearwater/workload.json",
)
"""With `_` for a space in a word."""
_MESSAGES = (
    *(f"cleanup {_SIM}", f"prepare {_SIM} --dry-run", f"reserve {_SIM} --reason test", f"release {_SIM}"),
    *("emulate status --name none", "import {studies} {before} -o history", "export {before} {studies} --uti -o uti"),
    *("report {before} -o page.html", "outcome {before}", "convert {points} -o lab.yaml", "schema none"),
    "show {before}/no/such/folder/of/results/that/anyone/ever/measured/on/this/machine/output.xml",
    f"plan {_SIM} --cells 1x1,2x2,3x3x3,4x4,5x5",
)
"""Those that print sentences, and errors."""
_OTHERS = {
    "local": "a run with real packets; its console is that of robot, and it ends with show",
    "robot": "see below",
    "acknowledge": "see test_acknowledge.py",
    "mcp": "speaks to a program",
    "twin": "two runs, see tests/simulated/test_twin.py",
    "query": "columns of a statement, see test_query_command.py",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Records of all studies, density tests of two nights with call stacks, a sweep's points and a bisection."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "studies").mkdir()
    for number, record in enumerate([*one_of_each(), chain_studied(), interfered()]):
        (folder / "studies" / f"{number}.json").write_text(record.model_dump_json(), encoding="utf-8")
    for name, night, polls in (("before", 20, 100), ("after", 21, 500)):
        stacks = sampled({"nf-1-1;poll;filter_of_a_long_name_that_no_column_has_room_for": polls, "vswitch;poll": 500})
        results = [
            result(
                CSC, chains, stacks=stacks, stacks_sampled=described(stacks),
                started_at=f"2026-11-{night}T11:01:00Z",
            )
            for chains in (1, 2)
        ]  # fmt: skip
        write_output_xml(folder / f"{name}.xml", results)
    rows = [f"{rate},{min(rate, 50000)},{rate * 1e-5},{min(rate, 50000) * 1e-5},{min(100, rate / 500)},0.1"
            for rate in range(5000, 100_000, 5000)]  # fmt: skip
    head = "input_pps,output_pps,input_gbps,output_gbps,firewall_cpu_percent,delay_ms"
    (folder / "points.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    (folder / "bisection.yaml").write_text(
        f"source: {{versions: [v1, {'v' * 90}, v3]}}\ninstall: ['true', '{{revision}}']\ntopology: {_SIM}\n"
        "cell: CSC 1x1 1c\nmetric: MRR\nchange: 2%\n",
        encoding="utf-8",
    )
    cpus = [f"{cpu},{cpu % 32},0,0" for cpu in range(64)]  # as `lscpu -p` prints them
    (folder / "cpus.txt").write_text("\n".join(["# CPU,Core,Socket,Node", *cpus]) + "\n", encoding="utf-8")
    names = ("cpus.txt", "studies", "before.xml", "after.xml", "points.csv", "bisection.yaml")
    return {name.partition(".")[0]: str(folder / name) for name in names}


def printed(
    command: str, inputs: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    arguments = [word.format(**inputs).replace("CSC_2x2_1c", "CSC 2x2 1c") for word in command.split()]
    monkeypatch.setattr(sys, "argv", ["csit", *arguments])
    with suppress(SystemExit):
        cli.main()
    out, err = capsys.readouterr()
    assert out or command in _MESSAGES, err
    assert out + err and "internal error" not in err
    return (out + err).splitlines()


def test_every_command_is_shown_on_a_terminal() -> None:
    assert {command.split()[0] for command in (*_COMMANDS, *_MESSAGES)} | set(_OTHERS) == set(cli.COMMANDS)


@pytest.mark.parametrize("command", [*_COMMANDS, *_MESSAGES])
def test_commands_fit_a_terminal_of_80_columns_and_are_whole_in_a_pipe(
    command: str,
    inputs: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(_WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    piped = printed(command, inputs, capsys, monkeypatch)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    shown = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in printed(command, inputs, capsys, monkeypatch)]
    assert [line for line in shown if len(line) > _WIDTH and " " in line.strip()] == []  # a word alone may be longer
    assert not any("\x1b" in line for line in piped)
    if any("\t" in line for line in piped):  # a table, of which a pipe gets every row in one line
        assert len(piped) <= len(shown)


_GROUP = "/sys/fs/cgroup/csit-density/" + "container-of-an-instance/" * 4

Shown = Callable[..., tuple[list[str], list[str]]]


class Console(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Lines of a command in a pipe, and on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(_WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")

    def lines(*arguments: str) -> tuple[list[str], list[str]]:
        texts = []
        for terminal in (False, True):
            console = Console(terminal=terminal)
            for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
                monkeypatch.setattr(sys, name, console)
            monkeypatch.setattr(sys, "argv", ["csit", *arguments])
            with suppress(SystemExit):
                cli.main()
            texts.append(console.getvalue().splitlines())
        return texts[0], texts[1]

    return lines


def test_commands_in_failures_of_robot_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    monkeypatch.chdir(tmp_path)
    command = f"ssh-keygen -R dut1 -f {_GROUP}known_hosts && ssh-keyscan -t ed25519 dut1 >>{_GROUP}known_hosts"
    said = f"DUT1 shows another host key than before; if the host was reinstalled: {command}"
    (tmp_path / "one.robot").write_text(f"*** Test Cases ***\nOne\n    Fail    {said}\n", encoding="utf-8")
    piped, terminal = shown("robot", "--output", "NONE", "--log", "NONE", "--report", "NONE", "one.robot")
    lines = [re.sub(r"\x1b\[\d+m", "", line) for line in terminal]
    assert said in piped and said in lines


def test_data_are_not_wrapped(shown: Shown) -> None:
    piped, terminal = shown("schema", "outage")
    assert piped == terminal
    piped, terminal = shown("plan", str(PROJECT / "topologies" / "sim.yaml"), "--cells", "1x1", "--format", "json")
    assert max(map(len, terminal)) > _WIDTH and len(piped) == len(terminal)


def test_in_a_pipe_a_finding_is_a_line_and_those_of_a_node_are_together(capsys: pytest.CaptureFixture[str]) -> None:
    found = [warning("nodes.TG.port1", "link", "is down", "ip link set eth1 up"), ok("nodes.TG", "system", "Debian")]
    print_findings([found[1], problem("nodes.DUT1.access", "reach", "no port 22", "start it"), found[0]])
    assert capsys.readouterr().out.splitlines() == [
        "ok      nodes.TG: system: Debian",
        "warning nodes.TG.port1: link: is down; ip link set eth1 up",
        "problem nodes.DUT1.access: reach: no port 22; start it",
    ]
