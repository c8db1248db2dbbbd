"""Tables and sentences of commands: a terminal is wide enough and loses nothing, a pipe gets them whole."""

import io
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from csit_utils import cli
from csit_utils.commands.tables import TableForm, TableLine, fitted, print_table
from csit_utils.commands.testbeds import cleanup
from csit_utils.commands.testbeds.doctor import print_findings
from resources.libraries.python.emulation.testbed import EmulatedTestbed, State
from resources.libraries.python.errors import ConfigError, HostRefused
from resources.libraries.python.model.findings import ok, problem, warning
from resources.libraries.python.model.measurements.stacks import described
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.testbed.maintenance import preparation
from resources.libraries.python.testbed.maintenance.cleanup import MachineLeftovers
from resources.libraries.python.testbed.maintenance.preparation import (
    Preparation,
    PreparationResult,
    Proposal,
    SettingChange,
)
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.facts import Leftovers, LeftProcess, Owner, PreparedSettings, StoredRuntime
from tests.unit.csit_utils.approved import wording
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.characterization_records import one_of_each
from tests.unit.csit_utils.measured_extras import sampled
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.study_records import chain_studied, interfered

_WIDTH = 80
_PROSE = "4x1 gives its worst instance 1.31 Mpps (instance 1 reverse) at PDR load 5.26 Mpps, p99 80 us at PDR50"


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]], *left: str, width: int = _WIDTH) -> list[str]:
    return [text for text, _ in fitted(heads, [TableLine(row, {}) for row in rows], left, width)]


def test_a_table_that_fits_is_one_line_per_row_and_prose_without_room_follows_below_its_row() -> None:
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


def test_a_pipe_gets_a_line_per_row_with_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        ("cell", "evidence"), [TableLine(("CSC\t1x1", "lost\nat NF"), {}, below=("all of it",))], TableForm.TABLE
    )
    assert capsys.readouterr().out == "cell\tevidence\nCSC 1x1\tlost at NF\n\tall of it\n"


_SPECS = "tests/characterization/specs"
_COMMANDS = (
    "show {studies} {before}", "show {studies} {before} --why", "suspects {studies} --why", "place {studies}",
    "trend {studies} --all", "compare {before} {after}", "gate {before} {after}", "why {before} {after} --all",
    "regoal {before}", "answer {before} --rate 100kpps --p99 1ms", "profile {points}",
    "profile small={points} large={points} --rate 0.1 --loss 1",
    "profile --chain a={points},b={points} --path {points} --rate 0.1", "explain pdr", "plan {sim} --cells 1x1,10x10",
    "plan {sim} --cell 'CSC 2x2 1c'", "plan {lab} --cpus DUT1={cpus} --cell 'CSC 2x2 1c'", "doctor {sim}",
    "status {sim}", "qualify {sim} --frames 64B --flows 2 --brief",
    "night {sim} --hours 1 --cells 1x1,2x1 --data {before}", "chains chains/four-vnfs.yaml",
    "interference interference/pairs.yaml", "outage outage/routers.yaml", "outage outage/routers.yaml --list",
    "stateful stateful/nat.yaml", "size clearwater/deployment.json clearwater/workload.json",
    "bisect {bisection} --list",
)  # fmt: skip
_MESSAGES = (
    "cleanup {sim}", "prepare {sim} --dry-run", "reserve {sim} --reason test", "release {sim}",
    "emulate status --name none", "import {studies} {before} -o history", "export {before} {studies} --uti -o uti",
    "report {before} -o page.html",
)  # fmt: skip
"""Those that print sentences."""
_ERRORS = (
    "show {before}/no/such/folder/of/results/that/anyone/ever/measured/on/this/machine/output.xml",
    "show {specs}/chains/four-vnfs.yaml", "plan {sim} --cells 1x1,2x2,3x3x3,4x4,5x5",
    "plan {specs}/chains/four-vnfs.yaml", "plan -v CELL:1x1", "plan --cells 0x1", "plan --cell 'CSC 1x2 1c+2c+1c'",
    "answer x --rate 1kpps --p99 soon", "answer x --rate 1kpps --goal MRR", "answer x --rate 1kpps --layer L3",
    "convert {points} -o lab.yaml", "outcome {before}", "schema none", "explain speed",
    "place {studies} --server gateway+x", "place {studies} --study other", "profile", "profile nowhere.csv",
    "profile {before}", "profile {points} {points}", "profile {points} --rate 1", "profile {points} --vcpus nat=2",
    "profile {pair} --vcpus pair=2", "profile --chain {points}", "profile --chain {points} --rate 1 --shares 1,1",
    "interference {specs}/chains/four-vnfs.yaml", "outage {specs}/chains/four-vnfs.yaml",
    "stateful {specs}/chains/four-vnfs.yaml", "chains {sim}",
    "size {specs}/snort/workload.json {specs}/snort/deployment.json", "regoal {before} --goal mine",
    "compare night=2026-01-01", "compare {before} {before} --outcome worse", "gate {before} {before} --tolerance much",
    "gate before=none x.xml", "place {before}", "suspects {before}", "night", "night --hours x",
    "trend {before} --false-alarms 2", "export {before} -o uti",
)  # fmt: skip
"""Those that are refused in one sentence, and write nothing."""
_STATUS = {"gate {before} {after}": 1, "emulate status --name none": 1}
"""Where that is not 0, nor 2 of `_ERRORS`."""
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
        begun = record.model_copy(update={"started_at": f"2026-01-01T00:0{number}:00+00:00"})
        (folder / "studies" / f"{number}.json").write_text(begun.model_dump_json(), encoding="utf-8")
    for name, night, polls in (("before", 20, 100), ("after", 21, 500)):
        stacks = sampled({"nf-1-1;poll;filter_of_a_long_name_that_no_column_has_room_for": polls, "vswitch;poll": 500})
        results = [
            result(
                ServiceType.CSC, chains, stacks=stacks, stacks_sampled=described(stacks),
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
        f"source: {{versions: [v1, {'v' * 90}, v3]}}\ninstall: ['true', '{{revision}}']\n"
        f"topology: {PROJECT}/topologies/sim.yaml\ncell: CSC 1x1 1c\nmetric: MRR\nchange: 2%\n",
        encoding="utf-8",
    )
    cpus = [f"{cpu},{cpu % 32},0,0" for cpu in range(64)]  # as `lscpu -p` prints them
    (folder / "cpus.txt").write_text("\n".join(["# CPU,Core,Socket,Node", *cpus]) + "\n", encoding="utf-8")
    pair = [head.replace("firewall", "router_cpu_percent,firewall"), *(f"1,{row}" for row in rows)]
    (folder / "pair.csv").write_text("\n".join(pair) + "\n", encoding="utf-8")
    names = ("cpus.txt", "pair.csv", "studies", "before.xml", "after.xml", "points.csv", "bisection.yaml")
    files = {"sim": "topologies/sim.yaml", "lab": "topologies/available/lab-2n-vpp.yaml", "specs": _SPECS}
    own = {name.partition(".")[0]: str(folder / name) for name in names}
    return own | {name: str(PROJECT / path) for name, path in files.items()}


def printed(
    command: str, inputs: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str, object]:
    """Output, error, and the status."""
    monkeypatch.setattr(sys, "argv", ["csit", *shlex.split(command.format(**inputs))])
    try:
        status: object = cli.main()
    except SystemExit as ended:
        status = ended.code
    out, err = capsys.readouterr()
    assert "internal error" not in err
    return out, err, status


def test_every_command_is_shown_on_a_terminal() -> None:
    assert {command.split()[0] for command in (*_COMMANDS, *_MESSAGES, *_ERRORS)} | set(_OTHERS) == set(cli.COMMANDS)


@pytest.mark.parametrize("command", [*_COMMANDS, *_MESSAGES, *_ERRORS])
def test_commands_say_what_is_approved_and_fit_a_terminal_of_80_columns(  # noqa: PLR0917 - fixtures
    command: str,
    inputs: dict[str, str],
    approved: SnapshotAssertion,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(_WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    out, err, status = printed(command, inputs, capsys, monkeypatch)
    assert (status or 0) == _STATUS.get(command, 2 if command in _ERRORS else 0), err
    assert command in _MESSAGES or bool(out) == (command in _COMMANDS), err
    piped = (out + err).splitlines()
    text = re.sub(r"(CSIT_RESERVATION=)\S+", r"\1...", "\n".join(piped))
    for place, name in ((PROJECT, "project"), (tmp_path, "here"), (Path(inputs["studies"]).parent, "inputs")):
        text = text.replace(str(place), f"<{name}>")
    if command in _ERRORS:
        assert (len(piped), [*tmp_path.iterdir()]) == (1, [])
        assert text == approved
    elif not command.startswith("emulate"):  # whatever runs here
        assert wording(text) == approved
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    again = "".join(printed(command, inputs, capsys, monkeypatch)[:2])
    shown = [re.sub(r"\x1b\[[\d;]*[mK]", "", line) for line in again.splitlines()]
    assert [line for line in shown if len(line) > _WIDTH and " " in line.strip()] == []  # a word alone may be longer
    assert not any("\x1b" in line for line in piped)
    if any("\t" in line for line in piped):  # a table, of which a pipe gets every row in one line
        assert len(piped) <= len(shown)


_GROUP = "/sys/fs/cgroup/csit-density/" + "container-of-an-instance/" * 4
_BOOT = "isolcpus=managed_irq,domain,2-63 nohz_full=2-63 rcu_nocbs=2-63 " * 2
_WHY = "of data threads, which must not be interrupted, and whose memory is on their own NUMA node"

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


def fits(piped: list[str], terminal: list[str], *whole: str) -> None:
    """Check that a terminal shows the words of a pipe, each line within its width, and some texts on one line."""
    assert " ".join(terminal).split() == " ".join(piped).split()
    assert any(len(line) > _WIDTH for line in piped), "nothing had to be wrapped"
    kept = [line for line in terminal if any(text in line for text in whole)]
    assert len(kept) >= len(whole)
    assert [line for line in terminal if len(line) > _WIDTH and line not in kept and " " in line.strip()] == []


def test_cleanup(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    left = Leftovers(
        in_use=True, problem=None,
        owner=Owner(pid=7, start_ticks=1, command="robot " * 20, alive=True, user="root", since="now"),
        namespaces=("csit-nf-1-1",), processes=(LeftProcess(pid=9, command="qemu-system-x86_64 " + "-device x " * 12),),
        groups=(_GROUP,), settings={}, ports=(), bindings=(), unclaimed=("csit-of-an-other-clone-" + "x" * 40,),
        runtimes=(), prepared=PreparedSettings(by="an engineer of the team for nights", since="now", settings=9),
    )  # fmt: skip
    found = MachineLeftovers("DUT1", left, (StoredRuntime(name="runtime-" + "0" * 12, mb=90, unused_days=44),))
    monkeypatch.setattr(cleanup, "find", lambda *_, **__: [found])
    piped, terminal = shown("cleanup", str(LOCAL_TOPOLOGY))
    fits(piped, terminal, _GROUP, f"ip netns del {left.unclaimed[0]}")


def test_prepare(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    wanted = Preparation((), stop_irqbalance=True, unavailable=(f"governor: none {_WHY}",), boot=_BOOT.strip())
    change = SettingChange("CPUs of interrupts", tuple(range(24, 90, 2)), "0-63", "0-1", _WHY)
    proposal = Proposal("DUT1", wanted, (change,), "a run is alive there, pid 13085 of root", prepared=False)
    monkeypatch.setattr(preparation, "propose", lambda *_: [proposal])
    fits(*shown("prepare", str(LOCAL_TOPOLOGY), "--dry-run"), wanted.boot)
    done = PreparationResult(proposal, (f"CPUs 24-90: 0-63 -> 0-1 ({_WHY})",), ("huge pages: 100 of 4096",))
    monkeypatch.setattr(preparation, "apply", lambda *_, **__: ("token", [done]))
    piped, terminal = shown("prepare", str(LOCAL_TOPOLOGY))
    fits(piped, terminal, wanted.boot)
    assert piped[-1] == terminal[-1] == "CSIT_RESERVATION=token"


def test_release(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    strange = ("DUT1: reserved by another user, " + "for measurements of a customer " * 4,)
    monkeypatch.setattr(reservation, "release", lambda *_: strange)
    fits(*shown("release", str(LOCAL_TOPOLOGY), "--token", "token"))


def test_emulate(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    states = [State(name=name, port=2022, pid=77, memory_mb=900, answers=True) for name in ("TG", "DUT1")]
    monkeypatch.setattr(EmulatedTestbed, "states", lambda _: states)
    piped, terminal = shown("emulate", "status")
    login = [line.partition(" MB: ")[2] for line in piped[:2]]
    assert all(text.startswith("ssh -p 2022 -i ") for text in login)
    fits(piped, terminal, *login)


@pytest.mark.parametrize(
    "error",
    [
        ConfigError(f"{_GROUP}lab.yaml: nodes.DUT1.interfaces.port1.pci_address: no PCI address, such as 0000:3b:00.0"),
        HostRefused("DUT1 shows another host key than line 3 of known_hosts has: ", f"ssh-keygen -R dut1 -f {_GROUP}"),
    ],
)
def test_errors(monkeypatch: pytest.MonkeyPatch, shown: Shown, error: ConfigError) -> None:
    def fail(_: object) -> object:
        raise error

    monkeypatch.setattr(cli, "make_app", fail)
    piped, terminal = shown("show")
    assert piped == [str(error)]
    fits(piped, terminal, *filter(None, [error.command]))
    assert _GROUP not in str(error) or any(_GROUP in line for line in terminal)


def test_a_failure_that_robot_shows_ends_with_a_command_that_can_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Shown
) -> None:
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
