"""What the command line refuses, in one sentence with an exit status: words, paths, defects, ended terminals."""

import io
import os
import re
import signal
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from csit_utils import cli
from csit_utils.cli import make_app
from csit_utils.commands.results.selections import parse_chosen
from csit_utils.commands.runs import local as module
from csit_utils.commands.runs.night import OPENING_S
from csit_utils.commands.testbeds.reserve import seconds
from csit_utils.studies.density.answer_command import parse_rate, parse_time_ns
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.density.planning.extras import Extras
from resources.libraries.python.studies.density.planning.extras import test_s as planned_test_s
from resources.libraries.python.studies.density.planning.selection import parse_selection
from tests.unit.csit_utils.builders import CSC, VSC, result
from tests.unit.csit_utils.histories import row
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.unwritable import UNWRITABLE, unwritable


def ran(monkeypatch: pytest.MonkeyPatch, command: Callable[..., object], *arguments: str) -> int:
    """The status of the command line whose command is a function."""
    monkeypatch.setattr(cli, "make_app", lambda _: command)
    monkeypatch.setattr("sys.argv", ["csit", *arguments])
    return cli.main()


def ended(monkeypatch: pytest.MonkeyPatch, error: Exception, *arguments: str) -> int:
    def fail(*_: object, **__: object) -> object:
        raise error

    return ran(monkeypatch, fail, *arguments)


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (ConfigError("lab.yaml:1: unknown key"), 2, "lab.yaml:1: unknown key"),
        (CsitError("node said \x1b[2J"), 1, "node said \\x1b[2J"),
        (ConfigError("x" * 900), 2, f"{'x' * 387}… (900 characters) …{'x' * 193}"),
        (OSError(36, "File name too long", "x" * 300), 1, f"{'x' * 200}… (300 characters): File name too long"),
    ],
)
def test_expected_errors_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, status: int, sentence: str
) -> None:
    assert ended(monkeypatch, error) == status
    assert capsys.readouterr().err == f"{sentence}\n"


def test_a_defect_is_one_sentence_with_a_log_for_its_owner_and_debug_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, KeyError("colour"), "show", "a.xml") == 70
    said = capsys.readouterr().err
    found = re.fullmatch(r"internal error: KeyError: 'colour'; its traceback is in (\S+)\n", said)
    assert found is not None, said
    log = Path(found[1])
    text, mode = log.read_text(encoding="utf-8"), stat.S_IMODE(log.stat().st_mode)
    log.unlink()
    assert "Traceback" in text and "a.xml" in text and mode == 0o600
    assert ended(monkeypatch, CsitError("no space"), "--debug", "show") == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and said.endswith("\nno space\n")


@pytest.mark.parametrize("in_the_command", [True, False])
def test_ctrl_c_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_the_command: bool
) -> None:
    """SIGINT ends the process at once while it starts; in a command it raises, so that what was made is removed."""
    removed = []

    def command(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            removed.append(True)

    def making(_: object) -> object:
        if in_the_command:
            return command
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "make_app", making)
    monkeypatch.setattr("sys.argv", ["csit", "show"])
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        assert cli.main() == 130
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
    assert removed == [True] * in_the_command
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("closed", [("stdout",), ("stderr",), ("stdin", "stdout", "stderr")])
def test_closed_streams_are_no_defect(monkeypatch: pytest.MonkeyPatch, closed: tuple[str, ...]) -> None:
    for name in closed:
        monkeypatch.setattr(sys, name, None)
        monkeypatch.setattr(sys, f"__{name}__", None)
    assert ended(monkeypatch, CsitError("no space")) == 1
    for name in closed:
        getattr(sys, name).close()


@pytest.mark.parametrize("lack", UNWRITABLE)
@pytest.mark.parametrize(
    ("command", "lost", "status"),
    [
        *((command, ("stdout", "stderr"), 0) for command in ("robot", "local")),
        ("show", ("stderr",), 0),
        ("show", ("stdout",), 1),
    ],
)
def test_a_run_goes_on_without_its_console_and_a_result_is_written_or_fails(
    monkeypatch: pytest.MonkeyPatch, lack: str, command: str, lost: tuple[str, ...], status: int
) -> None:
    went_on = []

    def run(*_: object, **__: object) -> None:
        for name in lost:
            for stream in (getattr(sys, f"__{name}__"), getattr(sys, name)):
                stream.write("x" * 10_000 + "\n")
                stream.flush()
        went_on.append(True)

    with unwritable(lack) as stream:
        for name in lost:
            monkeypatch.setattr(sys, name, stream)
            monkeypatch.setattr(sys, f"__{name}__", stream)
        with pytest.raises(SystemExit) as ended:
            sys.exit(ran(monkeypatch, run, command))
    assert ended.value.code == (128 + signal.SIGPIPE if status and lack == "closed pipe" else status)
    assert went_on == [True] * (not status)


@pytest.mark.parametrize(("before", "goes_on"), [(signal.SIG_DFL, False), (signal.SIG_IGN, True)])
def test_the_end_of_the_terminal_ends_a_command_unless_it_is_ignored(
    monkeypatch: pytest.MonkeyPatch, before: signal.Handlers, *, goes_on: bool
) -> None:
    went_on = []

    def run(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGHUP)
        went_on.append(True)

    earlier = {signal.SIGTERM: signal.getsignal(signal.SIGTERM), signal.SIGHUP: signal.signal(signal.SIGHUP, before)}
    try:
        status = ran(monkeypatch, run, "robot")
    except SystemExit as ended:
        status = ended.code
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    assert (status, went_on) == ((0, [True]) if goes_on else (143, []))


def test_no_character_is_refused_by_the_encoding_of_a_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii", errors="strict"))
    assert ran(monkeypatch, lambda *_, **__: print("1\u20132 \ud800"), "show") == 0
    assert written.getvalue() == b"1\\u20132 \\ud800\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a name\x1b[2J\x1b]0;title\x07\rx\n", "a name\\x1b[2J\\x1b]0;title\\x07\\rx\n"),
        ("\x1b]8;;file:///x\x1b\\x\x1b]8;;\x1b\\", "\x1b]8;;file:///x\x1b\\x\x1b]8;;\x1b\\"),
        ("\x1b]8;;https://x\x1b\\x", "\\x1b]8;;https://x\\x1b\\x"),
        ("\r\x1b[K3 of 5", "\r\x1b[K3 of 5"),
        ("\x1b[1;31mFAIL\x1b[0m\tx\n", "\x1b[1;31mFAIL\x1b[0m\tx\n"),
    ],
)
def test_control_characters_are_visible_on_a_terminal(monkeypatch: pytest.MonkeyPatch, text: str, shown: str) -> None:
    for stream, said in ((Terminal(), shown), (io.StringIO(), text)):
        monkeypatch.setattr("sys.stdout", stream)
        assert ran(monkeypatch, lambda *_, **__: print(text, end=""), "show") == 0
        assert stream.getvalue() == said


SIM = str(PROJECT / "topologies" / "sim.yaml")
SPECS = PROJECT / "tests" / "characterization" / "specs"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_output_xml(tmp_path_factory.mktemp("run") / "output.xml", [result(CSC, 1, 1)])


@pytest.mark.parametrize(
    "line",
    [
        "answer {nix} --rate 1kpps", "bisect {nix}", "compare {nix} {output}", "compare {output} {output} --data {nix}",
        "export {nix} --uti -o {tmp}", "import {nix} -o {tmp}/set", f"local -t {SIM} --priors {{nix}}",
        "local --resume {nix}", f"night {SIM} --data {{output}} --data {{nix}}", "outcome {nix}", "place {nix}",
        "profile {nix}", "regoal {nix}", "show {nix}", "report {nix} -o {tmp}/p", "suspects {nix}", "trend {nix}",
        "why {output} {output} --data {nix}", f"size {{nix}} {SPECS / 'snort' / 'workload.json'}", "chains {nix}",
        "interference {nix}", "outage {nix}", "stateful {nix}", "plan {nix}", "convert {nix}", "robot --resume {nix}",
    ],
)  # fmt: skip
def test_a_missing_path_is_refused(line: str, output: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nix = tmp_path / "nix"
    words = line.format(nix=nix, output=output, tmp=tmp_path).split()
    try:
        status, said = make_app(words)(words, standalone_mode=False), ""
    except CsitError as error:
        status, said = 2, str(error)
    said += capfd.readouterr().err
    assert str(nix) in said
    assert ("--data" in said) <= ("--data" in line)
    assert status


def test_data_of_which_nothing_can_be_read_plan_no_night(tmp_path: Path) -> None:
    (first := tmp_path / "first").mkdir()
    words = ["night", SIM, "--cells", "1x1", "--types", "CSC", "--tests", "MRR", "--data"]
    assert make_app(words)([*words, str(first)], standalone_mode=False) in {None, 0}
    (first / "output.xml").write_text("<html/>", encoding="utf-8")
    for data in (first, first / "output.xml"):
        with pytest.raises(ConfigError, match=r"output\.xml: no result, looks like"):
            make_app(words)([*words, str(data)], standalone_mode=False)


def test_all_texts_say_how_long_the_default_matrix_is_planned_to_take() -> None:
    topology = load_topology(LOCAL_TOPOLOGY)
    cells = parse_selection(service_types="CSC,CSP,VSC", cells=module.CELLS, nf_sizes="1c").cells()
    chosen = [each for each in cells if each.service_type is not VSC or each.locator == "1R1C"]
    planned_s = sum(planned_test_s(topology, cell, QUICK, TestType.NDRPDR, Extras()) for cell in chosen)
    assert round((OPENING_S[World.LOCAL] + planned_s) / 60) == 6
    for path in ("README.md", "docs/how-to/run-on-a-laptop.md"):
        assert "six minutes" in (PROJECT / path).read_text(encoding="utf-8")
    assert "six minutes" in " ".join((module.local.__doc__ or "").split())


def test_without_root_this_machine_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    refusals = {"local-vpp": "^local needs root to make network namespaces; as another user: ", "sim": "nix"}
    for topology, sentence in refusals.items():  # the simulated testbed needs none
        words = ["local", "--topology", str(PROJECT / "topologies" / f"{topology}.yaml"), "--types", "nix"]
        with pytest.raises(ConfigError, match=sentence):
            make_app(["local"])(words, standalone_mode=False)


least_10_s = partial(seconds, option="--lease", least_s=10.0)


def test_rates_times_and_durations_as_people_write_them() -> None:
    rates = {"500kpps": 5e5, "1.2Mpps": 1.2e6, "1Gbit/s": 1e9 / 512, "64 kb/s": 125}
    assert {text: parse_rate(text).pps(64, "L2") for text in rates} == pytest.approx(rates)
    assert parse_rate("1Gbps").pps(64, "L1") == pytest.approx(1e9 / 672)
    assert [parse_time_ns(text) for text in ("80us", "1.5 ms", "2s", "7ns", "80µs")] == [8e4, 1.5e6, 2e9, 7.0, 8e4]
    durations_s = {
        "90": 90,
        "90s": 90,
        "30m": 1800,
        "8h": 28800,
        "1h30m": 5400,
        "0.5h": 1800,
        "1d": 86400,
        " 2H ": 7200,
    }
    assert {text: seconds(text, "--lease") for text in durations_s} == durations_s


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        *((parse_rate, text, "no unit") for text in ("500", "1.5m")),
        *((parse_rate, text, "no rate") for text in ("", "fast", "-3kpps", "0", "1kbyte")),
        (parse_time_ns, "80", "no time"),
        *((least_10_s, text, "^--lease: .*no duration") for text in ("8 hours", "h", "", "-1")),
        *((least_10_s, text, f"^--lease: .*{said}") for text, said in (("5s", "must be 10 s"), ("31d", "30 days"))),
    ],
)
def test_what_is_no_rate_time_or_duration_is_refused(parse: Callable[[str], object], text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(text)


ROWS = [row(1e6, night, testbed) for testbed in ("lab-a", "lab-b") for night in range(4)]


def chosen(text: str) -> list[str]:
    return [each.run.removesuffix("/output.xml") for each in parse_chosen(text).of(ROWS)]


def test_keys_are_anded_values_ored_patterns_match_and_a_night_is_that_of_its_evening() -> None:
    assert chosen("testbed=lab-a") == ["lab-a/0", "lab-a/1", "lab-a/2", "lab-a/3"]
    assert chosen("testbed=lab-a,night=2026-11-02") == ["lab-a/1"]
    assert chosen("run=*/1/*|*/2/*, testbed=*b") == ["lab-b/1", "lab-b/2"]
    assert chosen("night=2026-11-02..2026-11-03,testbed=lab-b") == ["lab-b/1", "lab-b/2"]
    times = "2026-11-20T23:10:00+00:00", "2026-11-21T04:10:00+00:00", "2026-11-21T14:10:00+00:00", None
    rows = [row(1e6, started_at=time) for time in times]
    assert parse_chosen("night=2026-11-20").of(rows) == rows[:2]
    assert parse_chosen("night=0001-01-01..9999-12-31").of(rows) == rows[:3], "one without a time is of no night"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("testbet=lab-a", "did you mean 'testbed'"),
        ("monday/output.xml", "no file 'monday/output.xml'"),
        ("testbed=", "say testbed=VALUE"),
        ("night=yesterday", "'yesterday' is no date"),
        ("night=2026-11-02..", "'' is no date"),
        ("label=*", "the label of all tests is unknown"),
        ("testbed=lab-c,night=2026-11-02", "testbed is one of lab-a, lab-b"),
    ],
)
def test_what_means_no_test_is_refused_and_existing_values_are_listed(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        chosen(text)
