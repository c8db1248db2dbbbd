"""An error of a command is one sentence and an exit status; a defect leaves a log, and --debug shows its traceback."""

import io
import os
import re
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from csit_utils import cli
from resources.libraries.python.errors import ConfigError, CsitError
from tests.unit.unwritable import UNWRITABLE, unwritable


def of_its_own_causes() -> CsitError:
    refused = CsitError("the rows cannot be made")
    refused.__cause__ = CsitError("the run is refused")
    refused.__cause__.__cause__ = refused
    return refused


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
        (CsitError("no space"), 1, "no space"),
        (CsitError("node said \x1b[2J"), 1, "node said \\x1b[2J"),
        (ConfigError("x" * 900), 2, f"{'x' * 387}… (900 characters) …{'x' * 193}"),
        (OSError(36, "File name too long", "x" * 300), 1, f"{'x' * 200}… (300 characters): File name too long"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (of_its_own_causes(), 1, "the rows cannot be made"),
    ],
)
def test_expected_errors_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, status: int, sentence: str
) -> None:
    assert ended(monkeypatch, error) == status
    assert capsys.readouterr().err == f"{sentence}\n"


@pytest.mark.parametrize("wrong", [["--cells"], ["--hours", "x"], ["--cell", "1x1"], ["a", "b"], []])
def test_a_wrong_command_line_names_the_help_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["csit", "night", *wrong])
    assert cli.main() == 2
    said = capsys.readouterr().err
    assert said.endswith(" (see ./csit night --help)\n") and said.count("\n") == 1


def test_a_defect_is_one_sentence_with_a_log_for_its_owner(
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


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
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
        ("\x1b[8mconcealed\x1b[1;8m", "\\x1b[8mconcealed\\x1b[1;8m"),
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
